// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/link_drift.hpp"

#include <algorithm>
#include <cmath>

namespace libswap {
namespace {

constexpr double kMostRatio = 8;
constexpr std::array<cost::Direction, 2> kDirections = {cost::Direction::ToHost,
                                                        cost::Direction::ToDevice};

/// Measured by model, alone and beside the other direction; of one that is not known the other.
std::array<double, 2> measured_ratios(const CopyTimes& times, cost::Direction direction,
                                      std::array<double, 2> known) {
    std::array<bool, 2> is_known{};
    for (const bool busy : {false, true}) {
        const ModelError error = times.error_where(direction, busy);
        is_known[busy] = error.is_enough();
        if (is_known[busy]) known[busy] = std::clamp(error.ratio(), 1 / kMostRatio, kMostRatio);
    }
    if (is_known[0] != is_known[1]) known[is_known[0] ? 1 : 0] = known[is_known[0] ? 0 : 1];
    return known;
}

}  // namespace

bool LinkDrift::look(const CopyTimes& times) noexcept {
    std::uint64_t copies = 0;
    for (const cost::Direction direction : kDirections) copies += times.error(direction).count();
    if (copies < wanted_copies_) return false;
    std::array<std::array<double, 2>, 2> now{};
    bool moved = false;
    for (std::size_t i = 0; i < kDirections.size(); ++i) {
        const std::array<double, 2> known = {ratio(kDirections[i], false),
                                             ratio(kDirections[i], true)};
        now[i] = measured_ratios(times, kDirections[i], known);
        for (std::size_t busy = 0; busy < 2; ++busy)
            moved |= std::abs(now[i][busy] / known[busy] - 1) > ModelError::kDrift;
    }
    if (!moved) return false;
    for (std::size_t i = 0; i < kDirections.size(); ++i)
        for (std::size_t busy = 0; busy < 2; ++busy)
            ratios_[i][busy].store(now[i][busy], std::memory_order_relaxed);
    wanted_copies_ = 2 * copies;
    return true;
}

void LinkDrift::begin_anew(const cost::LinkModel& model) noexcept {
    model_ = model;
    for (auto& ratios : ratios_)
        for (auto& ratio : ratios) ratio.store(1, std::memory_order_relaxed);
    wanted_copies_ = 0;
}

cost::LinkModel LinkDrift::link() const noexcept {
    cost::LinkModel link = model_;
    const auto scale = [&](cost::Direction direction, cost::LogGp& alone, double& busy_gbps) {
        alone.gbps /= ratio(direction, false);
        alone.small_gbps /= ratio(direction, false);
        busy_gbps /= ratio(direction, true);
    };
    scale(cost::Direction::ToHost, link.to_host, link.to_host_duplex_gbps);
    scale(cost::Direction::ToDevice, link.to_device, link.to_device_duplex_gbps);
    return link;
}

}  // namespace libswap
