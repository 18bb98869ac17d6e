// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A weak body for every exported function. The files that build one for real define it strongly and
// win; for the others this is what a program gets: the name, once, and CUDA_ERROR_NOT_SUPPORTED.

#include "simgpu/driver/calls.hpp"

// cuda.h stays out of this file: the bodies take no arguments, which the C ABI allows.
extern "C" {
#define SIMGPU_API(symbol, base, version, per_thread)                    \
    __attribute__((weak, visibility("default"))) int symbol() {          \
        return ::simgpu::driver::unbuilt(::simgpu::driver::Api::symbol); \
    }
#include "simgpu/driver/api.def"
#undef SIMGPU_API
}
