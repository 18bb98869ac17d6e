// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "cost/link_model.hpp"
#include "runtime/copy_times.hpp"

namespace libswap {

/// The link's model, scaled to what copies take: by direction, alone and beside the other one.
class LinkDrift {
  public:
    explicit LinkDrift(const cost::LinkModel& model) : model_(model) {}

    /// True where copies have moved away from link() by more than ModelError::kDrift; then link()
    /// follows them. After each time it takes twice as many copies until the next one: a link that
    /// is never the same is none that one could plan with. @thread the worker
    bool look(const CopyTimes& times) noexcept;
    /// Another model, which nothing has moved away from so far; `times` begin anew too. Not while
    /// another thread calls link(). @thread the worker
    void begin_anew(const cost::LinkModel& model) noexcept;
    /// What to plan with. @thread any
    cost::LinkModel link() const noexcept;
    /// Time of copies by link(), as a multiple of what the model says. @thread any
    double ratio(cost::Direction direction, bool other_busy) const noexcept {
        return ratios_[static_cast<std::size_t>(direction)][other_busy ? 1 : 0].load(
            std::memory_order_relaxed);
    }

  private:
    cost::LinkModel model_;
    std::array<std::array<std::atomic<double>, 2>, 2> ratios_{{{1.0, 1.0}, {1.0, 1.0}}};
    std::uint64_t wanted_copies_ = 0;  ///< before it follows again
};

}  // namespace libswap
