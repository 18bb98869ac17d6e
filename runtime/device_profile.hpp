// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What `swapctl bench` measured of a device, cached per device and driver.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cost/machine.hpp"

namespace libswap {

/// $XDG_CACHE_HOME/libswap or ~/.cache/libswap, and UUID-DRIVER.json in it; "" where neither
/// variable is set, or the process gained privileges.
std::string device_profile_path(std::string_view uuid, int driver_version);
/// The folder of device_profile_path, or "".
std::string device_profile_folder();

/// The profile in that folder that was written last, or "".
std::string newest_device_profile();

/// The folders above a profile. False where the last one cannot be written to.
bool make_device_profile_folder(const std::string& path);

/// Writes it whole or not at all; makes the folder. False: errno says why.
bool save_device_profile(const std::string& path, std::string_view text);

/// Reads the text of a profile; nullopt unless it is one and its figures make sense.
std::optional<cost::Machine> parse_device_profile(std::string_view text);

/// A file is a profile that can be read.
bool is_device_profile(const std::string& path);

/// The profile of a device, or nullopt. `device_name` must be the one that was measured.
std::optional<cost::Machine> load_device_profile(const std::string& path,
                                                 std::string_view device_name);

}  // namespace libswap
