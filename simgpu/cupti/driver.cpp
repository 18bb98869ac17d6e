// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cupti/driver.hpp"

#include <dlfcn.h>

#include <cstring>

namespace simgpu::cupti {

namespace {

template <typename Function>
void look_up(void* library, const char* name, Function& out) {
    void* address = dlsym(library, name);
    if (address != nullptr) std::memcpy(&out, &address, sizeof out);
}

DriverSide find() {
    DriverSide side;
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return side;
    look_up(library, "simgpuListen", side.listen);
    look_up(library, "simgpuClockNs", side.clock_ns);
    return side;
}

}  // namespace

const DriverSide& driver_side() {
    static const DriverSide kSide = find();
    return kSide;
}

}  // namespace simgpu::cupti
