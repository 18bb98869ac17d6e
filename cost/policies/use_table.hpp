// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/machine.hpp"
#include "cost/workload.hpp"

namespace libswap::cost {

/// An idle stretch of a tensor, after operation `from` until operation `to`. Operations of the next
/// iteration count on past the end.
struct IdleSpan {
    TensorIndex tensor = 0;
    OpIndex from = 0;
    OpIndex to = 0;
};

/// What the rivals look up: where each tensor is used, when operations run, what memory they take.
class UseTable {
  public:
    struct At {
        OpIndex op = 0;
        bool read = false;
        bool write = false;
    };

    /// Keeps a reference to the workload.
    explicit UseTable(const Workload& workload);

    const Workload& workload() const { return workload_; }
    /// In order of operations.
    std::span<const At> uses(TensorIndex tensor) const;
    /// The next use of a tensor after operation `op`, counting on into the next iteration where it
    /// lives across; UINT32_MAX if there is none.
    OpIndex next_use(TensorIndex tensor, OpIndex op) const;
    /// Lives across the end of the iteration: persistent, or never freed.
    bool lives_across(TensorIndex tensor) const { return across_[tensor]; }

    /// When operation `op` begins if nothing is ever waited for; op_count() gives the end. Unit us.
    double start_us(std::size_t op) const { return start_us_[op]; }
    /// Device memory while each operation runs and nothing is swapped.
    const std::vector<std::uint64_t>& live_bytes() const { return live_bytes_; }

    /// Stretches of at least one whole operation; those over the end of the iteration where asked.
    std::vector<IdleSpan> idle_spans(bool with_wrap) const;

    /// The operation before which most bytes of tensors that do not persist lie idle: where the
    /// forward pass turns into the backward pass.
    OpIndex turning_point() const;

  private:
    const Workload& workload_;
    std::vector<std::uint32_t> ends_;
    std::vector<At> uses_;
    std::vector<bool> across_;
    std::vector<double> start_us_;
    std::vector<std::uint64_t> live_bytes_;
};

}  // namespace libswap::cost
