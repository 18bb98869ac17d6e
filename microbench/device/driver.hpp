// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The driver, opened at run time: nothing here is linked against CUDA.
#pragma once

#include <cuda.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace libswap::bench {

/// A driver call that failed. Caught once per measurement, which is then reported as not measured.
struct CudaError : std::runtime_error {
    CudaError(CUresult code_of, const std::string& text)
        : std::runtime_error(text), code(code_of) {}
    CUresult code;
};

/// The driver's functions. Made by open_driver.
struct Driver {
#define BENCH_FUNCTION(name, symbol) decltype(&::name) name = nullptr;
#include "microbench/device/driver.def"
#undef BENCH_FUNCTION
    void* library = nullptr;

    /// Throws CudaError unless `code` is success; `call` names what was called.
    void check(CUresult code, const char* call) const;
};

/// libcuda.so.1 as the loader finds it. Throws CudaError (NOT_FOUND) with what is missing.
std::unique_ptr<Driver> open_driver();

}  // namespace libswap::bench

/// driver.NAME(...), checked.
#define BENCH_CU(driver, call) (driver).check((driver).call, #call)
