// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/window.hpp"

#include <algorithm>

#include <sys/mman.h>

namespace simgpu {

namespace {

constexpr std::uint64_t kWindowAlignment = 1ull << 30;

void* reserve(std::uint64_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
}

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

void* address(std::uint64_t va) { return reinterpret_cast<void*>(va); }

}  // namespace

Window::Window(std::uint64_t bytes) {
    for (bytes_ = std::max(bytes, kWindowAlignment); bytes_ >= kWindowAlignment; bytes_ /= 2) {
        bytes_ = align_up(bytes_, kWindowAlignment);
        raw_bytes_ = bytes_ + kWindowAlignment;
        raw_[0] = reserve(raw_bytes_);
        raw_[1] = raw_[0] == nullptr ? nullptr : reserve(raw_bytes_);
        if (raw_[1] != nullptr) break;
        if (raw_[0] != nullptr) munmap(raw_[0], raw_bytes_);
        raw_[0] = nullptr;
    }
    if (raw_[1] == nullptr) {
        bytes_ = 0;
        return;
    }
    base_ = align_up(reinterpret_cast<std::uint64_t>(raw_[0]), kWindowAlignment);
    delta_ = align_up(reinterpret_cast<std::uint64_t>(raw_[1]), kWindowAlignment) - base_;
    madvise(raw_[0], raw_bytes_, MADV_DONTDUMP);
    madvise(raw_[1], raw_bytes_, MADV_DONTDUMP);
}

Window::~Window() {
    for (void* raw : raw_) {
        if (raw != nullptr) munmap(raw, raw_bytes_);
    }
}

bool Window::show(std::uint64_t va, std::uint64_t bytes, int fd, off_t offset) {
    return mmap(host(va), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) !=
           MAP_FAILED;
}

void Window::hide(std::uint64_t va, std::uint64_t bytes) {
    // One call replaces the pages at once, so a kernel in flight sees either the old bytes or
    // scratch.
    mmap(host(va), bytes, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool Window::open_to_cpu(std::uint64_t va, std::uint64_t bytes, int fd, off_t offset,
                         int protection) {
    return mmap(address(va), bytes, protection, MAP_SHARED | MAP_FIXED, fd, offset) != MAP_FAILED;
}

void Window::close_to_cpu(std::uint64_t va, std::uint64_t bytes) {
    mmap(address(va), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
}

}  // namespace simgpu
