// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/nvml/driver.hpp"

#include "simgpu/driver_function.hpp"

namespace simgpu::nvml {

namespace {

DriverSide find() {
    using libswap::simgpu::find_in_driver;
    DriverSide side;
    find_in_driver("simgpuDeviceCount", side.device_count);
    find_in_driver("simgpuDeviceState", side.device_state);
    find_in_driver("simgpuDriverVersion", side.driver_version);
    return side;
}

}  // namespace

const DriverSide& driver_side() {
    static const DriverSide kSide = find();
    return kSide;
}

}  // namespace simgpu::nvml
