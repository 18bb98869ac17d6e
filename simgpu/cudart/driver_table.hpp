// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

/// One request to cuGetProcAddress: name, version, flags.
enum class Entry : std::uint16_t {
#define CUDART_DRIVER_API(name, version, flags) name##_##version##_##flags,
#include "simgpu/cudart/driver_api.def"
#undef CUDART_DRIVER_API
    Count
};

/// Opens the driver and asks it for every entry point, once per process; says whether that went
/// well.
/// @thread any
cudaError_t open_driver_table() noexcept;

/// What the driver answered for this request, or null. Call open_driver_table() first.
void* driver_entry(Entry entry) noexcept;

}  // namespace libswap::simgpu::cudart

/// The driver's function `name` with the ABI of `version`, or null.
#define CUDART_DRIVER(name, version)                                                   \
    reinterpret_cast<PFN_##name##_v##version>(::libswap::simgpu::cudart::driver_entry( \
        ::libswap::simgpu::cudart::Entry::name##_##version##_0))

/// The same, in its variant for the per-thread default stream (requested as `thread_version`) if
/// asked.
#define CUDART_DRIVER_ON(per_thread, name, version, thread_version)                    \
    reinterpret_cast<PFN_##name##_v##version>(::libswap::simgpu::cudart::driver_entry( \
        (per_thread) ? ::libswap::simgpu::cudart::Entry::name##_##thread_version##_2   \
                     : ::libswap::simgpu::cudart::Entry::name##_##version##_0))
