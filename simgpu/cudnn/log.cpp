// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/log.hpp"

#include "simgpu/cudnn/api.hpp"
#include "simgpu/library_log.hpp"

namespace libswap::simgpu::cudnn {

void say(const char* text) { simgpu::say("cudnn", text); }

int unbuilt(const char* name) {
    say_unbuilt("cudnn", name);
    return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace libswap::simgpu::cudnn
