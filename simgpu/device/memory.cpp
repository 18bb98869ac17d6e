// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/memory_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace simgpu {

namespace {

std::uint64_t default_window_bytes() {
    if (const char* text = std::getenv("SIMGPU_WINDOW")) {
        char* end = nullptr;
        const std::uint64_t value = std::strtoull(text, &end, 0);
        const char* units = "KMGT";
        if (value != 0) {
            const char* unit = *end == '\0' ? nullptr : std::strchr(units, *end);
            return unit == nullptr ? value : value << (10 * (unit - units + 1));
        }
    }
#ifdef __SANITIZE_THREAD__
    return 64ull << 30;  // ThreadSanitizer leaves little address space.
#else
    return 1ull << 40;
#endif
}

}  // namespace

Memory::State::State(const MemoryConfig& given)
    : config(given),
      window(given.window_bytes != 0 ? given.window_bytes : default_window_bytes()),
      store(given),
      cursor(window.base()) {
    for (int i = 0; i < config.device_count; ++i) {
        tables.push_back(std::make_unique<PageTable>(window.page_count()));
    }
}

std::uint64_t Memory::State::search(std::uint64_t from, std::uint64_t to, std::uint64_t bytes,
                                    std::uint64_t alignment) const {
    std::uint64_t at = round_up(from, alignment);
    auto next = ranges.upper_bound(from);
    if (next != ranges.begin()) {
        const auto before = std::prev(next);
        at = round_up(std::max(from, before->first + before->second.bytes), alignment);
    }
    for (; at + bytes <= to; ++next) {
        if (next == ranges.end() || at + bytes <= next->first) return at;
        at = round_up(next->first + next->second.bytes, alignment);
    }
    return 0;
}

std::uint64_t Memory::State::find_space(std::uint64_t bytes, std::uint64_t alignment) {
    const std::uint64_t end = window.base() + window.bytes();
    if (bytes > window.bytes()) return 0;
    std::uint64_t va = search(cursor, end, bytes, alignment);
    // Addresses are reused as late as possible, so that stale pointers fault instead of finding
    // another's memory.
    if (va == 0) va = search(window.base(), end, bytes, alignment);
    if (va != 0) cursor = va + bytes;
    return va;
}

bool Memory::State::is_free(std::uint64_t va, std::uint64_t bytes) const {
    const auto next = ranges.lower_bound(va);
    if (next != ranges.end() && next->first < va + bytes) return false;
    if (next == ranges.begin()) return true;
    const auto before = std::prev(next);
    return before->first + before->second.bytes <= va;
}

namespace {

template <typename Map>
auto entry_at(Map& map, std::uint64_t va) {
    auto it = map.upper_bound(va);
    if (it == map.begin()) return map.end();
    --it;
    return va - it->first < it->second.bytes ? it : map.end();
}

}  // namespace

std::map<std::uint64_t, Range>::const_iterator Memory::State::range_at(std::uint64_t va) const {
    return entry_at(ranges, va);
}

std::map<std::uint64_t, Mapping>::const_iterator Memory::State::mapping_at(std::uint64_t va) const {
    return entry_at(mappings, va);
}

std::map<std::uint64_t, HostRange>::const_iterator Memory::State::host_range_at(
    std::uint64_t va) const {
    return entry_at(host_ranges, va);
}

std::map<std::uint64_t, Slab>::iterator Memory::State::slab_at(std::uint64_t va) {
    return slabs.find(va / kPageBytes * kPageBytes);
}

bool Memory::State::covered_exactly(std::uint64_t va, std::uint64_t bytes) const {
    const std::uint64_t end = va + bytes;
    auto it = mappings.find(va);
    for (; it != mappings.end() && it->first == va && va < end; ++it) va += it->second.bytes;
    return va == end;
}

ChunkState* Memory::State::chunk_at(std::uint64_t va) {
    const auto it = mapping_at(va);
    if (it == mappings.end()) return nullptr;
    return &it->second.physical->chunks[(va - it->first) / kPageBytes];
}

bool Memory::State::attach(std::uint64_t va, const std::shared_ptr<Physical>& physical) {
    if (!config.without_data &&
        !window.show(va, physical->bytes, store.fd(), static_cast<off_t>(physical->offset))) {
        return false;
    }
    mappings[va] = Mapping{physical->bytes, physical};
    ++physical->mappings;
    for (int device = 0; device < config.device_count; ++device) {
        set_bits(va, physical->bytes, device, location_bits(physical->location));
    }
    return true;
}

void Memory::State::detach(std::uint64_t va) {
    const auto it = mappings.find(va);
    const auto physical = it->second.physical;
    // First the bits, then the list of users: an access either finds the bits gone, or is found.
    for (int device = 0; device < config.device_count; ++device) {
        set_bits(va, physical->bytes, device, 0);
    }
    revoke(va, physical->bytes);
    if (!config.without_data) {
        window.hide(va, physical->bytes);
        if (physical->location.kind != Location::Kind::Device)
            window.close_to_cpu(va, physical->bytes);
    }
    mappings.erase(it);
    --physical->mappings;
    store.drop_if_unused(physical);
}

void Memory::State::set_bits(std::uint64_t va, std::uint64_t bytes, int device, std::uint8_t bits) {
    const std::size_t first = window.index(va);
    for (std::size_t page = first; page < first + bytes / kPageBytes; ++page) {
        tables[device]->set(page, bits);
    }
}

std::uint8_t Memory::State::location_bits(const Location& location) const {
    return location.kind == Location::Kind::Device ? kPageMapped : kPageMapped | kPageHost;
}

void Memory::State::grant_plain(std::uint64_t va, std::uint64_t bytes, int owner) {
    for (int device = 0; device < config.device_count; ++device) {
        const bool granted = device == owner || peers[owner][device];
        set_bits(va, bytes, device, granted ? kPageMapped | kPageRead | kPageWrite : kPageMapped);
    }
}

void Memory::State::fill(std::uint64_t va, ChunkState& chunk) {
    if (!config.without_data) std::memset(window.host(va), config.fill_byte, kPageBytes);
    chunk.filled = true;
}

Memory::Memory(const MemoryConfig& config) : state_(std::make_unique<State>(config)) {}
Memory::~Memory() = default;

std::uint64_t Memory::window_base() const { return state_->window.base(); }
std::uint64_t Memory::window_bytes() const { return state_->window.bytes(); }
bool Memory::without_data() const { return state_->config.without_data; }

bool Memory::busy() const { return state_->inside.load() != 0; }
std::uint64_t Memory::calls() const { return state_->calls.load(); }

Memory::Usage Memory::usage(int device) const {
    State::Guard guard(*state_);
    return state_->store.usage(device);
}

std::uint64_t Memory::write_count(std::uint64_t va) const {
    State::Guard guard(*state_);
    const ChunkState* chunk = state_->chunk_at(va);
    return chunk == nullptr ? 0 : chunk->writes;
}

Access Memory::resolve(int device, std::uint64_t va, std::uint64_t bytes, bool write) {
    AccessSet set(*this, device);
    std::byte* host = set.span(va, bytes, write);
    return {set.has_bytes(va) ? host : nullptr, set.fault_va(), host != nullptr};
}

}  // namespace simgpu
