// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "runtime/driver.hpp"

namespace libswap {

/// Makes a context current for a while, if another one is.
class ContextScope {
  public:
    ContextScope(const Driver& driver, CUcontext context) noexcept : driver_(driver) {
        CUcontext current = nullptr;
        if (!context || driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == context)
            return;
        pushed_ = driver_.cuCtxPushCurrent(context) == CUDA_SUCCESS;
    }
    ~ContextScope() {
        CUcontext popped = nullptr;
        if (pushed_) LIBSWAP_CU_IGNORE(driver_.cuCtxPopCurrent(&popped));
    }
    ContextScope(const ContextScope&) = delete;
    ContextScope& operator=(const ContextScope&) = delete;

  private:
    const Driver& driver_;
    bool pushed_ = false;
};

}  // namespace libswap
