// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/link_model.hpp"

#include <algorithm>
#include <cmath>

namespace simgpu {

double LinkModel::rate(int direction) const {
    const double full = sides_[1 - direction].moving ? duplex_[direction] : single_[direction];
    return std::min(full, sides_[direction].limit);
}

void LinkModel::settle(std::uint64_t now_ns) {
    for (int i = 0; i < 2; ++i) {
        if (!sides_[i].moving) continue;
        const double moved = rate(i) * static_cast<double>(now_ns - last_ns_);
        sides_[i].remaining = std::max(0.0, sides_[i].remaining - moved);
    }
    last_ns_ = now_ns;
}

void LinkModel::forecast(std::uint64_t now_ns) {
    for (int i = 0; i < 2; ++i) {
        auto& side = sides_[i];
        side.finish_ns =
            side.moving ? now_ns + static_cast<std::uint64_t>(std::ceil(side.remaining / rate(i)))
                        : kNever;
    }
}

void LinkModel::begin(Direction direction, std::uint64_t now_ns, double bytes, double limit_gbps) {
    settle(now_ns);
    sides_[direction] = Side{true, bytes, limit_gbps, kNever};
    forecast(now_ns);
}

void LinkModel::end(Direction direction, std::uint64_t now_ns) {
    settle(now_ns);
    sides_[direction] = Side{};
    forecast(now_ns);
}

std::uint64_t LinkModel::finish_ns(Direction direction) const {
    return sides_[direction].finish_ns;
}

}  // namespace simgpu
