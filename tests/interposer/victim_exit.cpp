// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <unistd.h>

#include <cstdint>
#include <cstdio>

// Frees device memory from the last destructor of the program, when the driver has shut down.

extern "C" {
int cuInit(unsigned);
int cuMemAlloc_v2(std::uint64_t*, std::size_t);
int cuMemsetD32_v2(std::uint64_t, unsigned, std::size_t);
}

namespace {
std::uint64_t g_address = 0;
__attribute__((destructor(101))) void free_late() {
    char text[32];
    const int length =
        std::snprintf(text, sizeof text, "late free: %d\n", cuMemsetD32_v2(g_address, 0, 1));
    if (write(1, text, static_cast<std::size_t>(length)) != length) _exit(3);
}
}  // namespace

int main() { return cuInit(0) != 0 || cuMemAlloc_v2(&g_address, 512) != 0; }
