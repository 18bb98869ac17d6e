// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/library_table.hpp"

#include "interposer/dlsym_route.hpp"

#include <dlfcn.h>

// Addresses only: the definitions have the vendor's parameters.
extern "C" {
#define CUDNN(name) [[gnu::visibility("default")]] void name();
#include "interposer/cudnn_exports.def"
#undef CUDNN
#define CUPTI(name, parameters, arguments) [[gnu::visibility("default")]] void name();
#include "interposer/cupti_exports.def"
#undef CUPTI
}

namespace libswap {
namespace {

struct LibraryHook {
    std::string_view name;
    void (*address)();
};

constexpr LibraryHook kHooks[] = {
#define CUDNN(name) {#name, &::name},
#include "interposer/cudnn_exports.def"
#undef CUDNN
#define CUPTI(name, parameters, arguments) {#name, &::name},
#include "interposer/cupti_exports.def"
#undef CUPTI
};

struct Library {
    std::string_view prefix;  ///< of its functions
    const char* names[2];     ///< as it is loaded, the newest first
};

constexpr Library kLibraries[] = {{"cudnn", {"libcudnn.so.9", "libcudnn.so.8"}},
                                  {"cupti", {"libcupti.so.13", "libcupti.so.12"}}};

}  // namespace

void* find_library_hook(std::string_view name) noexcept {
    for (const Library& library : kLibraries) {
        if (!name.starts_with(library.prefix)) continue;
        for (const LibraryHook& hook : kHooks)
            if (hook.name == name) return reinterpret_cast<void*>(hook.address);
    }
    return nullptr;
}

void* find_library_function(const char* name) noexcept {
    if (void* next = real_dlsym(RTLD_NEXT, name)) return next;
    // Loaded by a library of the program's, for itself alone.
    for (const Library& library : kLibraries) {
        if (!std::string_view(name).starts_with(library.prefix)) continue;
        for (const char* loaded : library.names) {
            void* const handle = dlopen(loaded, RTLD_LAZY | RTLD_NOLOAD);
            if (!handle) continue;
            void* const function = real_dlsym(handle, name);
            dlclose(handle);
            if (function) return function;
        }
    }
    return nullptr;
}

}  // namespace libswap
