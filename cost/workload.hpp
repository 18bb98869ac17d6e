// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace libswap::cost {

using TensorIndex = std::uint32_t;
using OpIndex = std::uint32_t;
inline constexpr TensorIndex kNoTensor = UINT32_MAX;
inline constexpr OpIndex kNoOperation = UINT32_MAX;

/// A piece of memory that an iteration uses. In the engine, one block.
struct Tensor {
    std::int64_t id = 0;      ///< the name it has in a libswap-workload/1 file
    std::uint64_t bytes = 0;  ///< device memory it takes
    bool persistent = false;  ///< lives across iterations; others begin at their first use
};

/// One tensor named by one operation.
struct Use {
    TensorIndex tensor = 0;
    bool read = false;
    bool write = false;
};

/// One iteration, in launch order on one stream (libswap-workload/1). Plain data, built once by
/// add_tensor and add_op; the lists of all operations share one array each.
class Workload {
  public:
    struct Op {
        double duration_us = 0;
        std::uint64_t workspace_bytes = 0;
        std::uint32_t uses_end = 0;   ///< the uses of op i begin where those of op i - 1 end
        std::uint32_t frees_end = 0;  ///< likewise
    };

    TensorIndex add_tensor(Tensor tensor);

    /// Appends an operation. A tensor named more than once is one use. Names are kept only if one
    /// is not empty.
    void add_op(double duration_us, std::uint64_t workspace_bytes, std::span<const Use> uses,
                std::span<const TensorIndex> frees, std::string_view name = {});

    const std::vector<Tensor>& tensors() const { return tensors_; }
    std::size_t op_count() const { return ops_.size(); }
    const Op& op(std::size_t index) const { return ops_[index]; }
    /// By tensor.
    std::span<const Use> uses(std::size_t index) const {
        const std::size_t begin = index == 0 ? 0 : ops_[index - 1].uses_end;
        return {uses_.data() + begin, ops_[index].uses_end - begin};
    }
    std::span<const TensorIndex> frees(std::size_t index) const {
        const std::size_t begin = index == 0 ? 0 : ops_[index - 1].frees_end;
        return {frees_.data() + begin, ops_[index].frees_end - begin};
    }
    std::string_view name(std::size_t index) const;

    /// Sum of the operations' times.
    double compute_us() const;
    /// Device memory that the iteration needs where nothing is swapped.
    std::uint64_t peak_bytes() const;
    /// Device memory of live tensors and workspace while each operation runs.
    std::vector<std::uint64_t> live_bytes() const;
    /// What one operation needs at once: the least budget any plan can have is the greatest of
    /// these.
    std::uint64_t op_bytes(std::size_t index) const;

  private:
    std::vector<Tensor> tensors_;
    std::vector<Op> ops_;
    std::vector<Use> uses_;
    std::vector<TensorIndex> frees_;
    std::vector<std::string> names_;
};

}  // namespace libswap::cost
