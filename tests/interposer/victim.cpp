// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>

// A small CUDA program that gets at the driver by one of the ways there are: LINKED (-lcuda),
// LOOKED_UP (dlopen and dlsym for each function) or ASKED (dlopen, one dlsym, cuGetProcAddress for
// the rest). It initialises, allocates twice, copies once, and says what the driver saw.

extern "C" {
#if defined(LINKED)
int cuInit(unsigned);
int cuMemAlloc_v2(std::uint64_t*, std::size_t);
int cuMemcpyHtoD_v2(std::uint64_t, const void*, std::size_t);
int cuImportExternalMemory(void*, std::size_t);
#endif
}

namespace {

using Init = int (*)(unsigned);
using Alloc = int (*)(std::uint64_t*, std::size_t);
using Copy = int (*)(std::uint64_t, const void*, std::size_t);
using Trim = int (*)(void*, std::size_t);
using Calls = unsigned long (*)(const char*);

struct Functions {
    Init init;
    Alloc alloc;
    Copy copy;
    Trim trim;
};

Functions find(void* driver) {
#if defined(LINKED)
    (void)driver;
    return {&cuInit, &cuMemAlloc_v2, &cuMemcpyHtoD_v2, &cuImportExternalMemory};
#elif defined(LOOKED_UP)
    return {reinterpret_cast<Init>(dlsym(driver, "cuInit")),
            reinterpret_cast<Alloc>(dlsym(driver, "cuMemAlloc_v2")),
            reinterpret_cast<Copy>(dlsym(driver, "cuMemcpyHtoD_v2")),
            reinterpret_cast<Trim>(dlsym(driver, "cuImportExternalMemory"))};
#else
    using Ask = int (*)(const char*, void**, int, std::uint64_t, int*);
    const auto ask = reinterpret_cast<Ask>(dlsym(driver, "cuGetProcAddress_v2"));
    void* found[4] = {};
    const char* const names[4] = {"cuInit", "cuMemAlloc", "cuMemcpyHtoD", "cuImportExternalMemory"};
    for (int i = 0; i < 4; ++i) ask(names[i], &found[i], 12000, 0, nullptr);
    return {reinterpret_cast<Init>(found[0]), reinterpret_cast<Alloc>(found[1]),
            reinterpret_cast<Copy>(found[2]), reinterpret_cast<Trim>(found[3])};
#endif
}

}  // namespace

int main(int count, char** arguments) {
    const char* name = count > 1 ? arguments[1] : "libcuda.so.1";
    if (const char* probed =
            std::getenv("VICTIM_PROBES")) {  // another driver, looked at and closed again
        void* other = dlopen(probed, RTLD_NOW | RTLD_LOCAL);
        if (!other || !dlsym(other, "cuInit") || dlclose(other) != 0) return 1;
    }
    void* driver = std::getenv("VICTIM_NAMESPACE")
                       ? dlmopen(LM_ID_NEWLM, name, RTLD_NOW | RTLD_LOCAL)
                       : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        std::cout << dlerror() << std::endl;
        return 1;
    }
    const Functions cuda = find(driver);
    int result = cuda.init(0);
    std::uint64_t address = 0;
    for (int i = 0; i < 2; ++i) result |= cuda.alloc(&address, 4096);
    const char bytes[16] = {};
    result |= cuda.copy(address, bytes, sizeof bytes);
    result |= cuda.trim(nullptr, 0);
    const auto calls = reinterpret_cast<Calls>(dlsym(driver, "fake_calls"));
    std::cout << "driver saw " << calls("cuInit") << ' ' << calls("cuMemAlloc_v2") << ' '
              << calls("cuMemcpyHtoD_v2") << ' ' << calls("cuImportExternalMemory") << std::endl;
    return result;
}
