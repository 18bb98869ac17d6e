// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/address_space.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "runtime/buffer_sizes.hpp"

namespace libswap {

AddressSpace::AddressSpace(const Driver& driver, std::uint64_t step_bytes) noexcept
    : driver_(driver), step_bytes_(step_bytes) {}

AddressSpace::~AddressSpace() {
    for (std::size_t i = 0; i < region_count_.load(); ++i) {
        LIBSWAP_CU_IGNORE(driver_.cuMemAddressFree(regions_[i].base, regions_[i].bytes));
        munmap(regions_[i].pages, regions_[i].bytes / kPageBytes * sizeof(PageTag));
    }
}

void AddressSpace::tag(std::uint64_t base, std::uint64_t bytes, PageTag tag) noexcept {
    const std::size_t count = region_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
        const Region& region = regions_[i];
        if (base - region.base >= region.bytes) continue;
        const std::uint64_t first = (base - region.base) / kPageBytes;
        for (std::uint64_t page = 0; page < bytes / kPageBytes; ++page)
            region.pages[first + page].store(tag, std::memory_order_release);
    }
}

bool AddressSpace::take_free(std::uint64_t bytes, std::uint64_t* base) noexcept {
    std::lock_guard lock(mutex_);
    auto found = std::find_if(free_.begin(), free_.end(),
                              [&](const auto& range) { return range.second >= bytes; });
    if (found == free_.end()) return false;
    *base = found->first;
    const std::uint64_t rest = found->second - bytes;
    free_.erase(found);
    if (rest) free_.emplace(*base + bytes, rest);
    return true;
}

Result<std::uint64_t> AddressSpace::take(std::uint64_t bytes) noexcept {
    std::uint64_t base = 0;
    if (take_free(bytes, &base)) return base;
    std::lock_guard growing(growth_);
    if (take_free(bytes, &base)) return base;
    LIBSWAP_TRY(grow(bytes));
    if (take_free(bytes, &base)) return base;
    return fail(CUDA_ERROR_OUT_OF_MEMORY, "address space");
}

void AddressSpace::give_back(std::uint64_t base, std::uint64_t bytes) noexcept {
    tag(base, bytes, 0);
    std::lock_guard lock(mutex_);
    auto next = free_.lower_bound(base);
    if (next != free_.end() && base + bytes == next->first) {
        bytes += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == base) {
            before->second += bytes;
            return;
        }
    }
    free_.emplace(base, bytes);
}

Status AddressSpace::grow(std::uint64_t bytes) noexcept {
    const std::size_t index = region_count_.load();
    if (index == kMaxRegions) return fail(CUDA_ERROR_OUT_OF_MEMORY, "address regions");
    // Double each time: the number of regions stays small whatever the program asks for.
    const std::uint64_t least = span_of(bytes);
    std::uint64_t want = std::max(least, span_of(step_bytes_ << std::min<std::size_t>(index, 8)));
    CUdeviceptr base = 0;
    const auto reserve = [&](CUdeviceptr near) {
        return LIBSWAP_CU(driver_.cuMemAddressReserve(&base, want, kPageBytes, near, 0));
    };
    Status reserved = reserve(high());
    // Where addresses are scarce: halves, not just what is asked for, or the regions would be used
    // up.
    while (!reserved && want > least) {
        want = std::max(least, span_of(want / 2));
        reserved = reserve(0);
    }
    LIBSWAP_TRY(reserved);
    void* pages = mmap(nullptr, want / kPageBytes * sizeof(PageTag), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        LIBSWAP_CU_IGNORE(driver_.cuMemAddressFree(base, want));
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "page table");
    }
    regions_[index] = {base, want, static_cast<std::atomic<PageTag>*>(pages)};
    region_count_.store(index + 1, std::memory_order_release);
    const std::uint64_t low = index == 0 ? base : std::min<std::uint64_t>(this->low(), base);
    const std::uint64_t high =
        index == 0 ? base + want : std::max<std::uint64_t>(this->high(), base + want);
    // In this order a reader between the two stores sees at least what it saw before; too much is
    // harmless, since the regions decide.
    span_.store(high - low, std::memory_order_relaxed);
    low_.store(low, std::memory_order_release);
    give_back(base, want);
    return {};
}

bool AddressSpace::is_valid() noexcept {
    std::lock_guard lock(mutex_);
    std::uint64_t end = 0;
    for (const auto& [base, bytes] : free_) {
        if (bytes == 0 || base < end) return false;
        end = base + bytes;
        for (std::uint64_t page = base; page < end; page += kPageBytes)
            if (find(page) != 0) return false;
    }
    return true;
}

}  // namespace libswap
