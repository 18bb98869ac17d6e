// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/device/memory.hpp"
#include "simgpu/device/page_table.hpp"

namespace simgpu {

/// The memory that one operation uses, from its start until its modelled end. While it lives,
/// taking away a page that it has used is noticed: a device would have faulted at the next use,
/// whenever in the operation that is.
class AccessSet {
  public:
    AccessSet(Memory& memory, int device);
    ~AccessSet();
    AccessSet(const AccessSet&) = delete;
    AccessSet& operator=(const AccessSet&) = delete;

    /// As a kernel's access. Safe from several threads.
    std::byte* page(std::uint64_t va, bool write);
    std::byte* span(std::uint64_t va, std::uint64_t bytes, bool write);
    /// As a copy's or memset's side: pageable host memory is allowed, and memory of other devices.
    /// `overwrite`: all of it will be written, so its old bytes do not matter.
    Access copy_span(std::uint64_t va, std::uint64_t bytes, bool write, bool overwrite);
    /// The operation's work is over: lets go of what only running work needs.
    void work_over();

    std::uint64_t fault_va() const { return fault_va_.load(std::memory_order_relaxed); }
    bool revoked() const { return revoked_.load(std::memory_order_acquire); }
    std::uint64_t revoked_va() const { return revoked_va_; }
    /// Upper bounds for the bytes used of host memory (whole pages, as far as they belong to the
    /// range).
    double host_read_bytes() const { return host_read_bytes_; }
    double host_write_bytes() const { return host_write_bytes_; }
    bool without_data() const { return memory_.without_data(); }
    /// Of device memory there are none without data; pinned and registered memory has its own.
    bool has_bytes(std::uint64_t va) const;
    std::uint64_t write_count(std::uint64_t va) const { return memory_.write_count(va); }

    /// One byte per window page; bits of accesses seen. Recycled, since it is as long as the
    /// window.
    using SeenTable = PageTable;

  private:
    friend class Memory;
    bool touch(std::size_t page, bool write, bool any_device, bool overwrite);
    std::byte* host_page(std::uint64_t va, bool write);
    void note_fault(std::uint64_t va);

    Memory& memory_;
    const int device_;
    std::unique_ptr<SeenTable> seen_;
    std::vector<std::uint32_t> touched_;
    std::vector<std::uint64_t> host_pages_;
    std::atomic<std::uint64_t> fault_va_{0};
    std::atomic<bool> revoked_{false};
    std::uint64_t revoked_va_ = 0;
    double host_read_bytes_ = 0;
    double host_write_bytes_ = 0;
};

}  // namespace simgpu
