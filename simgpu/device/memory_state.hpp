// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/device/access_set.hpp"
#include "simgpu/device/memory.hpp"
#include "simgpu/device/page_table.hpp"
#include "simgpu/device/physical.hpp"
#include "simgpu/device/window.hpp"

namespace simgpu {

enum class RangeUse : std::uint8_t { Reservation, Plain, Slab };

/// A piece of the window that is spoken for.
struct Range {
    std::uint64_t bytes = 0;
    RangeUse use = RangeUse::Reservation;
    std::uint64_t asked_bytes = 0;  ///< Plain: what the program asked for.
    std::uint64_t buffer_id = 0;
};

struct Mapping {
    std::uint64_t bytes = 0;
    std::shared_ptr<Physical> physical;
};

/// A 2 MiB page that small allocations share.
struct Slab {
    int device = 0;
    struct Piece {
        std::uint64_t bytes = 0, asked_bytes = 0, buffer_id = 0;
    };
    std::map<std::uint64_t, Piece> pieces;          ///< By address.
    std::map<std::uint64_t, std::uint64_t> spaces;  ///< Free ones, address to bytes.
};

struct HostRange {
    std::uint64_t bytes = 0;
    bool pinned = false;  ///< Ours (cuMemHostAlloc), else registered.
    unsigned flags = 0;
    std::uint64_t buffer_id = 0;
    std::uint64_t mapped_bytes = 0;  ///< Of the mmap, when ours.
};

/// Everything below `lock`, which is a leaf: nothing else is locked while it is held.
struct Memory::State {
    explicit State(const MemoryConfig& config);

    /// What a call of the program holds: the lock, and a mark that somebody is in here, who may
    /// look asleep while he waits for the lock.
    class Guard {
      public:
        explicit Guard(State& state) : state_(state) {
            // In this order: who reads an old count and then finds nobody inside will see it
            // change.
            state_.inside.fetch_add(1);
            state_.calls.fetch_add(1);
            state_.lock.lock();
        }
        ~Guard() {
            state_.lock.unlock();
            state_.inside.fetch_sub(1);
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

      private:
        State& state_;
    };

    MemoryConfig config;
    Window window;
    std::atomic<int> inside{0};
    std::atomic<std::uint64_t> calls{0};
    mutable std::mutex lock;
    PhysicalStore store;
    std::vector<std::unique_ptr<PageTable>> tables;  ///< One per device.
    std::map<std::uint64_t, Range> ranges;
    std::map<std::uint64_t, Mapping> mappings;
    std::map<std::uint64_t, Slab> slabs;
    std::map<std::uint64_t, HostRange> host_ranges;
    std::array<std::array<bool, kMaxDevices>, kMaxDevices> peers{};  ///< [owner][device]
    std::vector<AccessSet*> active;
    std::vector<std::unique_ptr<PageTable>> spare_seen;
    std::uint64_t cursor = 0;  ///< Where the next search for free addresses begins.
    std::uint64_t next_buffer_id = 1;

    std::uint64_t find_space(std::uint64_t bytes, std::uint64_t alignment);
    std::uint64_t search(std::uint64_t from, std::uint64_t to, std::uint64_t bytes,
                         std::uint64_t alignment) const;
    bool is_free(std::uint64_t va, std::uint64_t bytes) const;
    std::map<std::uint64_t, Range>::const_iterator range_at(std::uint64_t va) const;
    std::map<std::uint64_t, Mapping>::const_iterator mapping_at(std::uint64_t va) const;
    std::map<std::uint64_t, HostRange>::const_iterator host_range_at(std::uint64_t va) const;
    std::map<std::uint64_t, Slab>::iterator slab_at(std::uint64_t va);
    /// Whether whole mappings cover exactly [va, va + bytes).
    bool covered_exactly(std::uint64_t va, std::uint64_t bytes) const;
    ChunkState* chunk_at(std::uint64_t va);

    bool attach(std::uint64_t va, const std::shared_ptr<Physical>& physical);
    void detach(std::uint64_t va);
    void set_bits(std::uint64_t va, std::uint64_t bytes, int device, std::uint8_t bits);
    std::uint8_t location_bits(const Location& location) const;
    void grant_plain(std::uint64_t va, std::uint64_t bytes, int device);
    /// Tells the operations that have used these addresses that they are going.
    void revoke(std::uint64_t va, std::uint64_t bytes);
    void fill(std::uint64_t va, ChunkState& chunk);

    Result<std::uint64_t> allocate_pages(int device, std::uint64_t bytes, RangeUse use);
    void free_pages(std::uint64_t va);
    Result<std::uint64_t> allocate_small(int device, std::uint64_t bytes);
    bool free_small(std::uint64_t va);
};

inline std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}
inline bool whole_pages(std::uint64_t va, std::uint64_t bytes) {
    return bytes != 0 && va % kPageBytes == 0 && bytes % kPageBytes == 0;
}

}  // namespace simgpu
