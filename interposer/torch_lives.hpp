// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstddef>
#include <cstdint>

// PyTorch's caching allocator tells its profiler of each range that it gives out or takes back, by
// a function of another library, which therefore binds to the one here. It is the same for us as a
// free that the driver sees: nothing that is issued later uses what was there. The function is the
// profiler's own, so a PyTorch that no longer has it is as one that tells nothing.
namespace c10 {

/// As libc10 has it: part of the function's name and of how it is called.
struct Device {
    std::int8_t type;  ///< c10::DeviceType
    std::int8_t index;
};

/// @param change bytes; negative: they were given back. @thread any
void reportMemoryUsageToProfiler(void* address, std::int64_t change, std::size_t allocated,
                                 std::size_t reserved, Device device);

}  // namespace c10
