// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <dlfcn.h>

#include <cstring>
#include <string>

/// What an address is: "libswap.so:cuMemAlloc_v2", "libcuda.so.1:cuMemAlloc_v2", "nothing".
inline std::string look(const void* address) {
    Dl_info info;
    if (!address || dladdr(address, &info) == 0) return "nothing";
    const char* slash = std::strrchr(info.dli_fname, '/');
    const std::string file = slash ? slash + 1 : info.dli_fname;
    return file + ":" + (info.dli_sname && info.dli_saddr == address ? info.dli_sname : "?");
}

template <class Function>
std::string look_at(Function* function) {
    return look(reinterpret_cast<const void*>(function));
}
