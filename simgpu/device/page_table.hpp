// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace simgpu {

/// Access bits of a page for one device.
enum PageBits : std::uint8_t {
    kPageRead = 1,
    kPageWrite = 2,
    kPageMapped = 4,
    kPageHost = 8,  ///< The memory behind it is the host's: uses go over the link.
};

/// One byte per 2 MiB page of the program window. Read without locks by running kernels; written
/// under Memory's lock.
class PageTable {
  public:
    explicit PageTable(std::size_t pages);
    ~PageTable();
    PageTable(const PageTable&) = delete;
    PageTable& operator=(const PageTable&) = delete;

    std::uint8_t get(std::size_t page) const { return bits_[page].load(std::memory_order_acquire); }
    void set(std::size_t page, std::uint8_t bits) {
        bits_[page].store(bits, std::memory_order_release);
    }

  private:
    std::atomic<std::uint8_t>* bits_ =
        nullptr;  ///< From mmap, so that untouched parts cost nothing.
    std::size_t pages_ = 0;
};

}  // namespace simgpu
