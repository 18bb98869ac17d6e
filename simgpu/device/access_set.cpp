// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/access_set.hpp"

#include <algorithm>

#include "simgpu/device/memory_state.hpp"
#include "simgpu/device/operation.hpp"

namespace simgpu {

namespace {

constexpr std::uint64_t page_of(std::uint64_t va) { return va / kPageBytes * kPageBytes; }

}  // namespace

AccessSet::AccessSet(Memory& memory, int device) : memory_(memory), device_(device) {
    auto& state = *memory_.state_;
    std::lock_guard guard(state.lock);
    if (!state.spare_seen.empty()) {
        seen_ = std::move(state.spare_seen.back());
        state.spare_seen.pop_back();
    } else {
        seen_ = std::make_unique<SeenTable>(state.window.page_count());
    }
    state.active.push_back(this);
}

AccessSet::~AccessSet() {
    work_over();
    auto& state = *memory_.state_;
    std::lock_guard guard(state.lock);
    std::erase(state.active, this);
}

void AccessSet::work_over() {
    if (seen_ == nullptr) return;
    for (const std::uint32_t page : touched_) seen_->set(page, 0);
    auto& state = *memory_.state_;
    std::lock_guard guard(state.lock);
    state.spare_seen.push_back(std::move(seen_));
}

void AccessSet::note_fault(std::uint64_t va) {
    std::uint64_t none = 0;
    fault_va_.compare_exchange_strong(none, va, std::memory_order_relaxed);
}

bool AccessSet::touch(std::size_t page, bool write, bool any_device, bool overwrite) {
    auto& state = *memory_.state_;
    const std::uint64_t va = state.window.base() + page * kPageBytes;
    const std::uint8_t need = write ? kPageWrite : kPageRead;
    std::lock_guard guard(state.lock);
    std::uint8_t bits = state.tables[device_]->get(page);
    if ((bits & need) == 0 && any_device) {
        for (const auto& table : state.tables) bits |= table->get(page);
    }
    if ((bits & need) == 0) return false;
    const std::uint8_t seen = seen_->get(page);
    if (seen == 0) touched_.push_back(static_cast<std::uint32_t>(page));
    if ((seen & need) != 0) return true;
    seen_->set(page, seen | need);
    ChunkState* chunk = state.chunk_at(va);
    if (!chunk->filled) {
        if (overwrite) {
            chunk->filled = true;
        } else {
            state.fill(va, *chunk);
        }
    }
    if (write) ++chunk->writes;
    if ((bits & kPageHost) != 0)
        (write ? host_write_bytes_ : host_read_bytes_) += static_cast<double>(kPageBytes);
    return true;
}

std::byte* AccessSet::host_page(std::uint64_t va, bool write) {
    auto& state = *memory_.state_;
    std::lock_guard guard(state.lock);
    const std::uint64_t page = page_of(va);
    // A page may hold several ranges, and a range may begin inside it: one byte in reach opens the
    // page.
    auto it = state.host_ranges.lower_bound(page + kPageBytes);
    if (it == state.host_ranges.begin()) return nullptr;
    --it;
    const std::uint64_t end = it->first + it->second.bytes;
    if (end <= page) return nullptr;
    const std::uint64_t key = page | (write ? 1 : 0);
    if (std::find(host_pages_.begin(), host_pages_.end(), key) == host_pages_.end()) {
        host_pages_.push_back(key);
        const std::uint64_t used = std::min(end, page + kPageBytes) - std::max(it->first, page);
        (write ? host_write_bytes_ : host_read_bytes_) += static_cast<double>(used);
    }
    return reinterpret_cast<std::byte*>(page);
}

std::byte* AccessSet::page(std::uint64_t va, bool write) {
    auto& state = *memory_.state_;
    if (!state.window.contains(va)) {
        std::byte* host = host_page(va, write);
        if (host == nullptr) note_fault(va);
        return host;
    }
    const std::size_t page = state.window.index(va);
    const std::uint8_t need = write ? kPageWrite : kPageRead;
    const bool granted = (state.tables[device_]->get(page) & need) != 0;
    if (!granted || ((seen_->get(page) & need) == 0 && !touch(page, write, false, false))) {
        note_fault(va);
        return nullptr;
    }
    return state.window.host(page_of(va));
}

std::byte* AccessSet::span(std::uint64_t va, std::uint64_t bytes, bool write) {
    auto& state = *memory_.state_;
    if (bytes == 0) return page(va, write);
    if (!state.window.contains(va)) {
        std::lock_guard guard(state.lock);
        const auto it = state.host_range_at(va);
        if (it == state.host_ranges.end() || bytes > it->second.bytes - (va - it->first)) {
            note_fault(it == state.host_ranges.end() ? va : it->first + it->second.bytes);
            return nullptr;
        }
        (write ? host_write_bytes_ : host_read_bytes_) += static_cast<double>(bytes);
        return reinterpret_cast<std::byte*>(va);
    }
    for (std::uint64_t at = va; at < va + bytes; at = page_of(at) + kPageBytes) {
        if (page(at, write) == nullptr) return nullptr;
    }
    return state.window.host(va);
}

Access AccessSet::copy_span(std::uint64_t va, std::uint64_t bytes, bool write, bool overwrite) {
    auto& state = *memory_.state_;
    if (!state.window.contains(va)) return {reinterpret_cast<std::byte*>(va), 0, true};
    for (std::uint64_t at = va; at < va + bytes; at = page_of(at) + kPageBytes) {
        const std::uint64_t page = page_of(at);
        const bool whole = overwrite && va <= page && page + kPageBytes <= va + bytes;
        if (!state.window.contains(at) || !touch(state.window.index(at), write, true, whole)) {
            note_fault(at);
            return {nullptr, at, false};
        }
    }
    return {state.window.host(va), 0, true};
}

void Memory::State::revoke(std::uint64_t va, std::uint64_t bytes) {
    const std::size_t first = window.index(va);
    const std::size_t last = first + bytes / kPageBytes;
    for (AccessSet* set : active) {
        const bool used =
            std::any_of(set->touched_.begin(), set->touched_.end(),
                        [&](std::uint32_t page) { return page >= first && page < last; });
        if (!used || set->revoked()) continue;
        set->revoked_va_ = va;
        set->revoked_.store(true, std::memory_order_release);
    }
}

bool AccessSet::has_bytes(std::uint64_t va) const {
    return !without_data() || !memory_.state_->window.contains(va);
}

std::byte* KernelMemory::page(std::uint64_t va, bool write) {
    std::byte* host = set_.page(va, write);
    return set_.has_bytes(va) ? host : nullptr;
}
std::byte* KernelMemory::span(std::uint64_t va, std::uint64_t bytes, bool write) {
    std::byte* host = set_.span(va, bytes, write);
    return set_.has_bytes(va) ? host : nullptr;
}
std::uint64_t KernelMemory::write_count(std::uint64_t va) const { return set_.write_count(va); }
std::uint64_t KernelMemory::fault_va() const { return set_.fault_va(); }
bool KernelMemory::without_data() const { return set_.without_data(); }

}  // namespace simgpu
