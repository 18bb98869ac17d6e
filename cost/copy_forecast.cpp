// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/copy_forecast.hpp"

#include <algorithm>
#include <limits>

namespace libswap::cost {

namespace {

/// Where the other direction's bytes move next, from a time on: [begin, end), or never.
struct Stretch {
    double begin_us = std::numeric_limits<double>::infinity();
    double end_us = std::numeric_limits<double>::infinity();
};

Stretch next_stretch(const LinkModel& link, std::span<const CopySpan> spans, Direction own,
                     double from_us) {
    Stretch next;
    for (const CopySpan& span : spans) {
        if (span.direction == own || span.end_us <= from_us) continue;
        const double moving_us = span.begin_us + link.direction(span.direction).setup_us();
        if (moving_us >= span.end_us || moving_us >= next.begin_us) continue;
        next = {std::max(moving_us, from_us), span.end_us};
    }
    return next;
}

}  // namespace

CopyForecast forecast_copy(const LinkModel& link, std::span<const CopySpan> spans,
                           std::size_t which) {
    const CopySpan& copy = spans[which];
    const LogGp& model = link.direction(copy.direction);
    const double alone = link.rate(copy.direction, copy.message_bytes, false);
    const double busy = link.rate(copy.direction, copy.message_bytes, true);
    // Behind the first, a message only adds its gap and its bytes.
    const double setup_us = model.setup_us() + (copy.messages - 1) * model.gap_us;
    double left_bytes = static_cast<double>(copy.message_bytes) * copy.messages;
    double now_us = copy.begin_us + setup_us;
    double busy_us = 0;
    while (left_bytes > 0) {
        const Stretch other = next_stretch(link, spans, copy.direction, now_us);
        const bool both = other.begin_us <= now_us;
        const double rate = both ? busy : alone;
        const double until_us = both ? other.end_us : other.begin_us;
        const double step_us = std::min(left_bytes / rate, until_us - now_us);
        if (both) busy_us += step_us;
        // The last step leaves nothing, whatever rounding says.
        left_bytes = now_us + step_us < until_us ? 0 : left_bytes - step_us * rate;
        now_us += step_us;
    }
    const double moving_us = now_us - copy.begin_us - setup_us;
    return {now_us - copy.begin_us, moving_us > 0 ? busy_us / moving_us : 0};
}

}  // namespace libswap::cost
