// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>

#include "cost/machine.hpp"
#include "runtime/driver.hpp"

namespace libswap {

/// The machine that plans are made for, and where its figures are from, for people.
struct DeviceMachine {
    cost::Machine machine = cost::engine_machine();
    std::string source = "built in";
    /// Where `swapctl bench` keeps what it measures of this device, "" where nobody knows; and the
    /// name that it must be of.
    std::string profile_path, device_name;

    /// Takes the profile, if there is one by now.
    bool read_profile();
    bool is_measured() const { return source == profile_path && !source.empty(); }
};

/// What `swapctl bench` measured of this device with this driver, where it did; else the figures
/// built in. Reads a file.
DeviceMachine device_machine(const Driver& driver, CUdevice device);

}  // namespace libswap
