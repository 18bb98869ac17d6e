// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cublas/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "simgpu/cublas/api.hpp"

namespace libswap::simgpu::cublas {

void say(const char* text) {
    std::string line = std::string("simgpu: cublas: ") + text + "\n";
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
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace libswap::simgpu::cublas
