// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>

#include <cstdio>
#include <string>

// Two libraries with a function of the same name, as cuDNN's front and its parts: INNER, OUTER,
// which looks its own name up in the inner one; and, by neither macro, a program that calls the
// outer one.

#if defined(INNER)

extern "C" __attribute__((visibility("default"))) int cudnnCreate() { return 42; }

#elif defined(OUTER)

extern "C" __attribute__((visibility("default"))) int cudnnCreate() {
    static int depth = 0;
    if (++depth > 1) return -1;
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&cudnnCreate), &info) == 0) return -2;
    const std::string folder(info.dli_fname, std::string(info.dli_fname).rfind('/') + 1);
    void* inner = dlopen((folder + "libcudnn_inner.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!inner) return -3;
    // No handle means the scope of the caller: this library itself.
    void* own = dlsym(nullptr, "cudnnCreate");
    asm volatile("" : "+r"(own));
    if (own != reinterpret_cast<void*>(&cudnnCreate)) return -4;
    return reinterpret_cast<int (*)()>(dlsym(inner, "cudnnCreate"))();
}

#else

int main(int, char** arguments) {
    void* outer = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!outer) return std::puts(dlerror()), 1;
    const int result = reinterpret_cast<int (*)()>(dlsym(outer, "cudnnCreate"))();
    std::puts(result == 42 ? "inner" : std::to_string(result).c_str());
    return result == 42 ? 0 : 1;
}

#endif
