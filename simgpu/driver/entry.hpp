// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <new>

#include "simgpu/driver/activity.hpp"
#include "simgpu/driver/calls.hpp"

#ifndef __CUDA_API_VERSION_INTERNAL
#error \
    "compile with -D__CUDA_API_VERSION_INTERNAL: this folder defines every version of a call by its own name"
#endif

namespace simgpu::driver {

/// Which stream a NULL handle means: decided by the variant of the call.
enum class DefaultStream { Legacy, PerThread };

/// Runs a call's body: no exception leaves the library.
template <typename Body>
CUresult guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

}  // namespace simgpu::driver

// Definitions of exported functions. The body (the rest of the arguments) returns a CUresult and
// sees the parameters by name; in the _PTDS and _PTSZ forms, which define both variants, also
// `default_stream`.
#define SIMGPU_DEFINE_(symbol, params, mode, ...)                                            \
    extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI symbol params {       \
        namespace driver = ::simgpu::driver;                                                 \
        if (int refused = driver::enter(driver::Api::symbol); refused != 0)                  \
            return CUresult(refused);                                                        \
        [[maybe_unused]] constexpr auto default_stream = driver::DefaultStream::mode;        \
        return driver::told(driver::Api::symbol,                                             \
                            [&] { return driver::guarded([&]() -> CUresult __VA_ARGS__); }); \
    }

#define SIMGPU_CALL(symbol, params, ...) SIMGPU_DEFINE_(symbol, params, Legacy, __VA_ARGS__)

#define SIMGPU_CALL_PTDS(symbol, params, ...)           \
    SIMGPU_DEFINE_(symbol, params, Legacy, __VA_ARGS__) \
    SIMGPU_DEFINE_(symbol##_ptds, params, PerThread, __VA_ARGS__)

#define SIMGPU_CALL_PTSZ(symbol, params, ...)           \
    SIMGPU_DEFINE_(symbol, params, Legacy, __VA_ARGS__) \
    SIMGPU_DEFINE_(symbol##_ptsz, params, PerThread, __VA_ARGS__)
