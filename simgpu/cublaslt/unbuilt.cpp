// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A weak body for every exported function, as in libcublas: the files that build one for real
// define it strongly and win; for the others this says the name, once, and answers NOT_SUPPORTED.

#include "simgpu/cublas/log.hpp"

// cublasLt.h stays out of this file: the bodies take no arguments, which the C ABI allows.
extern "C" {
#define SIMGPU_CUBLASLT(name)                                 \
    __attribute__((weak, visibility("default"))) int name() { \
        return ::libswap::simgpu::cublas::unbuilt(#name);     \
    }
#include "simgpu/cublaslt/api.def"
#undef SIMGPU_CUBLASLT
}
