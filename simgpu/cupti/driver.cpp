// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cupti/driver.hpp"

#include "simgpu/driver_function.hpp"

namespace simgpu::cupti {

namespace {

DriverSide find() {
    using libswap::simgpu::find_in_driver;
    DriverSide side;
    find_in_driver("simgpuListen", side.listen);
    find_in_driver("simgpuClockNs", side.clock_ns);
    return side;
}

}  // namespace

const DriverSide& driver_side() {
    static const DriverSide kSide = find();
    return kSide;
}

}  // namespace simgpu::cupti
