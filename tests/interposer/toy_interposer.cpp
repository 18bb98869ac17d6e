// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

// Another interposer, to be preloaded beside libswap: counts cuMemAlloc and goes on to the next
// definition.

namespace {
int g_seen = 0;
__attribute__((destructor)) void say() {
    char text[32];
    const int length = std::snprintf(text, sizeof text, "toy saw %d\n", g_seen);
    if (write(1, text, static_cast<std::size_t>(length)) != length) _exit(3);
}
}  // namespace

extern "C" __attribute__((visibility("default"))) int cuMemAlloc_v2(std::uint64_t* address,
                                                                    std::size_t bytes) {
    ++g_seen;
    const auto next =
        reinterpret_cast<int (*)(std::uint64_t*, std::size_t)>(dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
    return next(address, bytes);
}
