// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/nvml/driver.hpp"

#include <dlfcn.h>

#include <cstring>

namespace simgpu::nvml {

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
    look_up(library, "simgpuDeviceCount", side.device_count);
    look_up(library, "simgpuDeviceState", side.device_state);
    look_up(library, "simgpuDriverVersion", side.driver_version);
    return side;
}

}  // namespace

const DriverSide& driver_side() {
    static const DriverSide kSide = find();
    return kSide;
}

}  // namespace simgpu::nvml
