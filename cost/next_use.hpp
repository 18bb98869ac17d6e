// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <vector>

#include "cost/workload.hpp"

namespace libswap::cost {

/// Which operation uses a tensor next. Built once, in the size of the workload; a question takes
/// the logarithm of the tensor's uses. @thread any, once built
class NextUse {
  public:
    explicit NextUse(const Workload& workload);

    /// The first operation from `from` on, going round, that uses the tensor. kNoOperation where
    /// none does.
    OpIndex of(TensorIndex tensor, OpIndex from) const;

  private:
    std::vector<OpIndex> ops_;         ///< that use each tensor, in order, tensor by tensor
    std::vector<std::uint32_t> ends_;  ///< those of tensor t begin where those of t - 1 end
};

}  // namespace libswap::cost
