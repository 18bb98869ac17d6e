// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>

#include "runtime/config.hpp"
#include "runtime/driver.hpp"

namespace libswap {

/// Host memory that this process could still take, in bytes: what the system has available, within
/// the limit of its control group. Reads files of /proc and /sys: not for hot paths.
std::uint64_t available_host_bytes();

/// The same from given roots ("/proc", "/sys/fs/cgroup"), for tests.
std::uint64_t available_host_bytes(const char* proc, const char* cgroup);

/// Whether an address that is none of ours is the host's, as the driver knows it.
bool is_host_pointer(const Driver& driver, std::uint64_t address) noexcept;

/// What the settings allow all devices together to take, in whole pages.
std::uint64_t host_limit_of(const Config& config);

}  // namespace libswap
