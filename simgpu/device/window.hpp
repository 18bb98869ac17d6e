// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <cstdint>

#include "simgpu/device/memory.hpp"

namespace simgpu {

/// Two reservations of one size: the program window, whose addresses programs see, and the shadow
/// window behind it, where the bytes lie at the constant distance delta(). Not synchronised:
/// Memory's lock covers all changes.
class Window {
  public:
    /// Tries `bytes`, then halves until the address space (ulimit, sanitizer) has room. `bytes` is
    /// a multiple of 1 GiB.
    explicit Window(std::uint64_t bytes);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    std::uint64_t base() const { return base_; }
    std::uint64_t bytes() const { return bytes_; }
    bool contains(std::uint64_t va) const { return va - base_ < bytes_; }
    std::size_t index(std::uint64_t va) const { return (va - base_) / kPageBytes; }
    std::size_t page_count() const { return bytes_ / kPageBytes; }
    std::byte* host(std::uint64_t va) const { return reinterpret_cast<std::byte*>(va + delta_); }

    /// Puts the bytes of `fd` behind the addresses.
    bool show(std::uint64_t va, std::uint64_t bytes, int fd, off_t offset);
    /// Takes them away. What lies there afterwards is scratch memory, never a hole: threads may
    /// still hold its host address.
    void hide(std::uint64_t va, std::uint64_t bytes);
    /// Lets the CPU use the program's addresses themselves, and ends that.
    bool open_to_cpu(std::uint64_t va, std::uint64_t bytes, int fd, off_t offset, int protection);
    void close_to_cpu(std::uint64_t va, std::uint64_t bytes);

  private:
    std::uint64_t base_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t delta_ = 0;
    void* raw_[2] = {nullptr, nullptr};
    std::uint64_t raw_bytes_ = 0;
};

}  // namespace simgpu
