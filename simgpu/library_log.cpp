// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/library_log.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

namespace libswap::simgpu {

void say(const char* library, const char* text) {
    const std::string line = std::string("simgpu: ") + library + ": " + text + "\n";
    std::fputs(line.c_str(), stderr);
}

void say_unbuilt(const char* library, const char* name) {
    static std::mutex mutex;
    // Leaked on purpose: a program may still call us while it exits.
    static auto& said = *new std::set<std::string>;
    {
        std::lock_guard lock(mutex);
        if (said.insert(std::string(library) + ":" + name).second) {
            say(library, (std::string(name) + " is not built, NOT_SUPPORTED").c_str());
        }
    }
    const char* strict = std::getenv("SIMGPU_STRICT");
    if (strict != nullptr && *strict != '\0' && *strict != '0') {
        std::abort();
    }
}

}  // namespace libswap::simgpu
