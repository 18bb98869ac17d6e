// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A weak body for every exported function. The files that build one for real define it strongly and
// win; for the others this is what a program gets: the name, once, and NOT_SUPPORTED.

#include "simgpu/cudnn/log.hpp"

// cudnn.h stays out of this file: the bodies take no arguments, which the C ABI allows.
extern "C" {
#define SIMGPU_CUDNN(name)                                    \
    __attribute__((weak, visibility("default"))) int name() { \
        return ::libswap::simgpu::cudnn::unbuilt(#name);      \
    }
#include "simgpu/cudnn/api.def"
#undef SIMGPU_CUDNN
}
