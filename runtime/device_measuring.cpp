// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A device without a profile is measured once, from when a program has taken half of its budget:
// then memory may not do, half of it is free yet, and nothing moves so far. One that takes less
// never has it measured.

#include <new>

#include "runtime/clock.hpp"
#include "runtime/device.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

/// The measurement's context and its buffers, and as much again for the program.
constexpr std::uint64_t kRoomBytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kLeastBudgetBytes = 2 * kRoomBytes;

}  // namespace

bool Device::may_be_measured() const {
    return config_.mode == Mode::Swap && config_.measure != Measure::Off &&
           (config_.measure == Measure::On || budget_bytes_ >= kLeastBudgetBytes) &&
           !machine_.is_measured() && !machine_.profile_path.empty();
}

bool Device::has_room_for_measuring() const noexcept {
    if (config_.measure == Measure::On) return true;
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    return driver_.cuMemGetInfo(&free_bytes, &total_bytes) == CUDA_SUCCESS &&
           free_bytes >= kRoomBytes;
}

void Device::look_at_measuring() noexcept try {
    if (!measuring_) return;
    const std::uint64_t now = now_ns();
    if (measuring_->is_idle()) {
        if (!measuring_wanted_.load(std::memory_order_relaxed) || capturing()) return;
        const std::string swapctl = find_swapctl();
        if (swapctl.empty() || !has_room_for_measuring()) {
            LIBSWAP_LOG(Info, "device {} is not measured: {}", ordinal_,
                        swapctl.empty() ? "swapctl is not where it was built or installed"
                                        : "too little of its memory is free");
            measuring_.reset();
            return;
        }
        LIBSWAP_LOG(Info, "device {} has no profile: {} measures it", ordinal_, swapctl);
        measuring_->start(swapctl, ordinal_, machine_.profile_path, now);
    }
    switch (measuring_->look(now)) {
        case Measuring::State::Done:
            take_profile();
            measuring_.reset();
            break;
        case Measuring::State::Failed:
            // Of no interest where memory does.
            if (counters_.evictions.load(std::memory_order_relaxed) == 0) return;
            LIBSWAP_LOG(Warning,
                        "device {} could not be measured ({}): planning with the figures built in",
                        ordinal_, measuring_->reason());
            measuring_.reset();
            break;
        default:
            break;
    }
} catch (const std::bad_alloc&) {
    measuring_.reset();
}

void Device::take_profile() {
    {
        std::lock_guard lock(machine_mutex_);
        if (!machine_.read_profile()) return;
        link_drift_.begin_anew(machine_.machine.link);
    }
    copy_times_.begin_anew(machine_.machine.link);
    learning_->launches_take(machine_.machine.ceilings.launch_us);
    LIBSWAP_LOG(Info, "device {} was measured: planning with {}", ordinal_, machine_.source);
    learning_->plan_again();
}

std::string Device::machine_source() const {
    std::lock_guard lock(machine_mutex_);
    return machine_.source;
}

}  // namespace libswap
