// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <dlfcn.h>

#include <cstring>

namespace libswap::simgpu {

/// Sets `out` to what the stand-in libcuda.so.1 exports beside the vendor's names. `out` stays as
/// it is where another driver, or none, is loaded. The library is never closed. @thread any
template <typename Function>
void find_in_driver(const char* name, Function& out) noexcept {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    void* address = library == nullptr ? nullptr : dlsym(library, name);
    if (address != nullptr) std::memcpy(&out, &address, sizeof out);
}

}  // namespace libswap::simgpu
