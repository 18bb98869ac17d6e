// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/page_table.hpp"

#include <new>

#include <sys/mman.h>

namespace simgpu {

PageTable::PageTable(std::size_t pages) : pages_(pages) {
    void* p = mmap(nullptr, pages, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    bits_ = static_cast<std::atomic<std::uint8_t>*>(p);
}

PageTable::~PageTable() { munmap(bits_, pages_); }

}  // namespace simgpu
