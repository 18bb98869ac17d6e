// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/driver/monitor.h"

namespace simgpu::nvml {

/// The stand-in driver's side, found when first asked for. Null members: another driver.
struct DriverSide {
    decltype(&simgpuDeviceCount) device_count = nullptr;
    decltype(&simgpuDeviceState) device_state = nullptr;
    decltype(&simgpuDriverVersion) driver_version = nullptr;

    explicit operator bool() const {
        return device_count != nullptr && device_state != nullptr && driver_version != nullptr;
    }
};
const DriverSide& driver_side();

}  // namespace simgpu::nvml
