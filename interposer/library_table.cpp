// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/cudnn_table.hpp"

#include "interposer/dlsym_route.hpp"

#include <dlfcn.h>

// Addresses only: the definitions have the vendor's parameters.
extern "C" {
#define CUDNN(name) [[gnu::visibility("default")]] void name();
#include "interposer/cudnn_exports.def"
#undef CUDNN
}

namespace libswap {
namespace {

struct CudnnHook {
    std::string_view name;
    void (*address)();
};

constexpr CudnnHook kHooks[] = {
#define CUDNN(name) {#name, &::name},
#include "interposer/cudnn_exports.def"
#undef CUDNN
};

}  // namespace

void* find_cudnn_hook(std::string_view name) noexcept {
    if (!name.starts_with("cudnn")) return nullptr;
    for (const CudnnHook& hook : kHooks)
        if (hook.name == name) return reinterpret_cast<void*>(hook.address);
    return nullptr;
}

void* find_cudnn_function(const char* name) noexcept {
    if (void* next = real_dlsym(RTLD_NEXT, name)) return next;
    // Loaded by a library of the program's, for itself alone.
    for (const char* library : {"libcudnn.so.9", "libcudnn.so.8"}) {
        void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) continue;
        void* const function = real_dlsym(handle, name);
        dlclose(handle);
        if (function) return function;
    }
    return nullptr;
}

}  // namespace libswap
