// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <vector>

#include "simgpu/device/graph.hpp"
#include "simgpu/driver/context.hpp"

namespace simgpu::driver {

/// What a CUgraphConditionalHandle names: a word in the memory of the device, which kernels set
/// with cudaGraphSetConditional. The handle is the word's address.
class Condition {
  public:
    static CUresult create(Context& context, unsigned default_value, unsigned flags,
                           std::shared_ptr<Condition>& out);
    ~Condition();
    Condition(const Condition&) = delete;
    Condition& operator=(const Condition&) = delete;

    CUgraphConditionalHandle handle() const { return va_; }
    Context& context() const { return context_; }
    /// What the word holds now. @thread any
    unsigned value() const;

    unsigned default_value = 0;
    unsigned flags = 0;
    bool used = false;  ///< A node has it.

  private:
    Condition(Context& context, std::uint64_t va) : context_(context), va_(va) {}

    Context& context_;
    const std::uint64_t va_;
};

/// For a step of kind Choice: goes through `bodies` as a conditional node of `type` does. Each copy
/// runs the node once.
std::function<const std::vector<GraphStep>*()> choice_of(
    std::shared_ptr<Condition> condition, CUgraphConditionalNodeType type,
    std::vector<std::vector<GraphStep>> bodies);

}  // namespace simgpu::driver
