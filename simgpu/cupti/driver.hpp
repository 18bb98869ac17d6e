// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

#include "simgpu/driver/activity.h"

namespace simgpu::cupti {

/// The stand-in driver's side, found when first asked for. Null members: another driver.
struct DriverSide {
    decltype(&simgpuListen) listen = nullptr;
    std::uint64_t (*clock_ns)() = nullptr;

    explicit operator bool() const { return listen != nullptr && clock_ns != nullptr; }
};
const DriverSide& driver_side();

}  // namespace simgpu::cupti
