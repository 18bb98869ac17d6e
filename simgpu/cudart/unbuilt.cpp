// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A weak definition of every function that the vendor's library exports. Those that are built
// override theirs; the others say so. No CUDA header here: the true signatures differ, but a
// function that reads no arguments and returns an error code does not care.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr int kNotSupported = 801;

int say_unbuilt(const char* name, std::atomic<bool>& said) {
    if (!said.exchange(true)) {
        char line[160];
        const int length = snprintf(
            line, sizeof line, "simgpu: %s is not built; it returns cudaErrorNotSupported\n", name);
        if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) {
            // Nobody to tell.
        }
    }
    const char* strict = getenv("SIMGPU_STRICT");
    if (strict != nullptr && strcmp(strict, "0") != 0 && *strict != '\0') {
        abort();
    }
    return kNotSupported;
}

}  // namespace

#define CUDART_EXPORT(name)                                                       \
    extern "C" __attribute__((weak, visibility("default"))) int name() noexcept { \
        static std::atomic<bool> said{false};                                     \
        return say_unbuilt(#name, said);                                          \
    }
#include "simgpu/cudart/exports.def"
#undef CUDART_EXPORT
