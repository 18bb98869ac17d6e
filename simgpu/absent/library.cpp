// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A library that programs bind, but of which nothing is built: every function says its name once
// and answers with the library's code for that. Compiled once per library, with ABSENT_LIST (the
// functions), ABSENT_LIBRARY (its name) and ABSENT_STATUS (its code).

#include <atomic>
#include <cstdio>
#include <cstdlib>

// The vendors' headers stay out of this file: the bodies take no arguments, which the C ABI allows.
namespace {

void say_unbuilt(std::atomic<bool>& said, const char* name) {
    if (!said.exchange(true))
        std::fprintf(stderr, "simgpu: " ABSENT_LIBRARY ": %s is not built, NOT_SUPPORTED\n", name);
    const char* strict = std::getenv("SIMGPU_STRICT");
    if (strict != nullptr && *strict != '\0' && *strict != '0') std::abort();
}

}  // namespace

#define ABSENT(name)                                                     \
    extern "C" __attribute__((weak, visibility("default"))) int name() { \
        static std::atomic<bool> said{false};                            \
        say_unbuilt(said, #name);                                        \
        return ABSENT_STATUS;                                            \
    }
#define ABSENT_TEXT(name)                                                        \
    extern "C" __attribute__((weak, visibility("default"))) const char* name() { \
        return "not supported by the stand-in for " ABSENT_LIBRARY;              \
    }
#include ABSENT_LIST
