// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simgpu::driver {

/// One enumerator per exported function, named like it.
enum class Api : std::uint16_t {
#define SIMGPU_API(symbol, base, version, per_thread) symbol,
#include "simgpu/driver/api.def"
#undef SIMGPU_API
    kCount
};

inline constexpr std::size_t kApiCount = static_cast<std::size_t>(Api::kCount);

/// What cuGetProcAddress must know of one exported function.
struct ApiRow {
    std::string_view symbol;
    std::string_view base;
    /// CUDA version that introduced this ABI, as in 12040.
    int version;
    /// For the per-thread default stream (_ptsz, _ptds).
    bool per_thread;
    void (*address)();
};

/// All exported functions, in Api's order: sorted by base, legacy before per-thread, then by
/// version.
/// @thread any
std::span<const ApiRow> api_rows();

/// The rows of one base name, empty if there is none. @thread any
std::span<const ApiRow> rows_of_base(std::string_view base);

}  // namespace simgpu::driver
