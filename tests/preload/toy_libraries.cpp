// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Small libraries that tests preload or link with, by a macro.

#if defined(EMPTY_DL)
// A libdl of glibc 2.34: no dlsym of its own, but one that it needs.
#include <dlfcn.h>
extern "C" __attribute__((visibility("default"))) void* empty_dl_uses() {
    void* found = dlsym(RTLD_DEFAULT, "malloc");
    asm volatile("" : "+r"(found));
    return found;
}
#elif defined(NO_THREADS)
// A limit on threads, reached by whoever is not the driver's stand-in.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
    Dl_info info;
    if (dladdr(__builtin_return_address(0), &info) != 0 && strstr(info.dli_fname, "/libswap.so"))
        return EAGAIN;
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    return real(thread, attributes, start, argument);
}
#elif defined(SLOW_SETTINGS)
// Settings that take their time to be read: others get ahead.
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
extern "C" __attribute__((visibility("default"))) char* secure_getenv(const char* name) {
    using Get = char* (*)(const char*);
    static const auto real = reinterpret_cast<Get>(dlsym(RTLD_NEXT, "secure_getenv"));
    if (strcmp(name, "LIBSWAP_BUDGET") == 0) usleep(300'000);
    return real(name);
}
#endif
