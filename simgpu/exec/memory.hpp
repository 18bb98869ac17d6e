// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu::exec {

/// Bytes of a page, the unit in which `Memory` answers.
inline constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

/// What a kernel sees of memory outside its CTA: device memory, and host memory it was granted.
/// Called from the thread that called `run`.
class Memory {
  public:
    virtual ~Memory() = default;

    /// Host address of the first byte of the 2 MiB page that holds `va`, or nullptr if that page is
    /// not mapped or the access is not granted. The answer may be kept until `run` returns.
    virtual std::byte* page(std::uint64_t va, bool write) = 0;
};

}  // namespace simgpu::exec
