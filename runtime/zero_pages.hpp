// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace libswap {

/// A large table of zeros: a page takes memory once it is written to. `T` must be good when all its
/// bytes are zero, or be made in its place before it is used; nothing is destroyed.
template <typename T>
class ZeroPages {
  public:
    /// Throws std::bad_alloc where there are no addresses left.
    explicit ZeroPages(std::size_t count) : count_(count) {
        void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        at_ = static_cast<T*>(memory);
    }
    ~ZeroPages() { munmap(at_, count_ * sizeof(T)); }
    ZeroPages(const ZeroPages&) = delete;
    ZeroPages& operator=(const ZeroPages&) = delete;

    T& operator[](std::size_t index) noexcept { return at_[index]; }
    const T& operator[](std::size_t index) const noexcept { return at_[index]; }
    T* data() noexcept { return at_; }
    const T* data() const noexcept { return at_; }

  private:
    T* at_ = nullptr;
    std::size_t count_ = 0;
};

}  // namespace libswap
