// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>

// Small libraries, by the macro FIRST, SECOND, LOCAL or DEEP: what dlsym answers depends on who
// asks.

#define EXPORT extern "C" __attribute__((visibility("default"), noinline))

extern "C" int libswap_test_second();

#if defined(FIRST)
EXPORT void* libswap_test_tool() { return nullptr; }
/// The next definition of a function that this library defines too.
EXPORT void* libswap_test_forward() {
    void* next = dlsym(RTLD_NEXT, "libswap_test_tool");
    asm volatile("" : "+r"(next));  // no sibling call: dlsym returns here
    return next;
}
EXPORT int cudnnCreate() { return libswap_test_second(); }
EXPORT int cuMemFree_v2() { return 0; }
#elif defined(SECOND)
EXPORT int libswap_test_second() { return 0; }
EXPORT void* libswap_test_tool() { return nullptr; }
#elif defined(LOCAL)
EXPORT void libswap_test_local_only() {}
EXPORT void* libswap_test_find(const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    asm volatile("" : "+r"(found));
    return found;
}
#else
EXPORT void* libswap_test_find_in_driver(const char* name) {
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}
#endif
