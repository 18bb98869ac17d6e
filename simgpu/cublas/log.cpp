// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cublas/log.hpp"

#include "simgpu/cublas/api.hpp"
#include "simgpu/library_log.hpp"

namespace libswap::simgpu::cublas {

void say(const char* text) { simgpu::say("cublas", text); }

int unbuilt(const char* name) {
    say_unbuilt("cublas", name);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace libswap::simgpu::cublas
