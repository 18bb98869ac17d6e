// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>

#include "cost/link_model.hpp"

namespace libswap::cost {

/// Copies in a row of one block, as a device's clock saw them.
struct CopySpan {
    Direction direction = Direction::ToHost;
    double begin_us = 0;
    double end_us = 0;
    std::uint64_t message_bytes = 0;
    std::uint32_t messages = 1;
};

struct CopyForecast {
    double us = 0;          ///< from begin to end, by the model
    double busy_share = 0;  ///< of the time in which bytes move: the other direction moves some too
};

/// What the model says of span `which`, given when it began and when copies of the other direction
/// (all that overlap it are in `spans`, in any order) began and ended.
CopyForecast forecast_copy(const LinkModel& link, std::span<const CopySpan> spans,
                           std::size_t which);

}  // namespace libswap::cost
