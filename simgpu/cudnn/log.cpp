// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "simgpu/cudnn/api.hpp"

namespace libswap::simgpu::cudnn {

void say(const char* text) {
    const std::string line = std::string("simgpu: cudnn: ") + text + "\n";
    std::fputs(line.c_str(), stderr);
}

int unbuilt(const char* name) {
    static std::mutex mutex;
    // Leaked on purpose: a program may still call us while it exits.
    static auto& said = *new std::set<std::string>;
    {
        std::lock_guard lock(mutex);
        if (said.insert(name).second) {
            say((std::string(name) + " is not built, NOT_SUPPORTED").c_str());
        }
    }
    const char* strict = std::getenv("SIMGPU_STRICT");
    if (strict != nullptr && *strict != '\0' && *strict != '0') {
        std::abort();
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace libswap::simgpu::cudnn
