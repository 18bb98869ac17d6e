// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>

// A program that works with and without a driver, on a machine without one.

extern "C" [[gnu::weak]] int cuInit(unsigned);

int main() {
    if (dlsym(RTLD_DEFAULT, "cuInit") || dlsym(RTLD_NEXT, "cuInit")) return 1;
    if (dlsym(dlopen(nullptr, RTLD_NOW), "cuMemAlloc_v2")) return 2;
    // A weak reference does find the preloaded name; calling it must fail as for a missing driver.
    if (cuInit && cuInit(0) == 0) return 3;
    return 0;
}
