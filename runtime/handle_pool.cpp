// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/handle_pool.hpp"

#include <algorithm>
#include <array>

#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kAliasStepBytes = std::uint64_t{16} << 30;
constexpr std::uint32_t kMaxBatch = kGroupChunks;
constexpr std::uint64_t kLargestBlockBytes = std::uint64_t{64} << 20;

}  // namespace

ChunkClass largest_class(std::uint64_t budget_bytes) noexcept {
    ChunkClass best = 0;
    for (ChunkClass i = 1; i < kChunkBytes.size(); ++i)
        if (kChunkBytes[i] <= budget_bytes / 4096) best = i;
    return best;
}

ChunkRun largest_run(std::uint64_t budget_bytes) noexcept {
    const ChunkClass size_class = largest_class(budget_bytes);
    const std::uint64_t bytes = std::min(budget_bytes / 15, kLargestBlockBytes);
    const std::uint64_t count =
        std::clamp<std::uint64_t>(bytes / kChunkBytes[size_class], 1, kMaxChunksPerBlock);
    return {size_class, static_cast<std::uint32_t>(count)};
}

void split_into_runs(std::uint64_t bytes, ChunkRun largest, std::vector<ChunkRun>* runs) {
    runs->clear();
    std::uint64_t pages = (bytes + kChunkBytes[0] - 1) / kChunkBytes[0];
    for (int i = largest.size_class; i >= 0; --i) {
        const std::uint64_t chunk_pages = kChunkBytes[i] / kChunkBytes[0];
        const auto size_class = static_cast<ChunkClass>(i);
        std::uint64_t count = pages / chunk_pages;
        pages -= count * chunk_pages;
        const std::uint64_t most =
            std::clamp<std::uint64_t>(largest.bytes() / kChunkBytes[i], 1, kMaxChunksPerBlock);
        for (std::uint64_t blocks = (count + most - 1) / most; blocks != 0; --blocks) {
            const std::uint64_t run = (count + blocks - 1) / blocks;
            runs->push_back({size_class, static_cast<std::uint32_t>(run)});
            count -= run;
        }
    }
}

HandlePool::HandlePool(const Driver& driver, const Settings& settings) noexcept
    : driver_(driver),
      settings_(settings),
      limit_bytes_(settings.limit_bytes),
      aliases_(driver, kAliasStepBytes) {}

HandlePool::~HandlePool() {
    // Only what is free: a chunk that somebody still has is mapped, and the process is ending.
    trim(0);
}

bool HandlePool::take(ChunkClass size_class, std::span<Chunk*> out) noexcept {
    std::lock_guard lock(mutex_);
    return groups_.take(size_class, out);
}

void HandlePool::give_back(std::span<Chunk* const> chunks) noexcept {
    std::lock_guard lock(mutex_);
    for (Chunk* chunk : chunks)
        if (chunk) groups_.give_back(chunk);
}

bool HandlePool::take_or_grow(ChunkClass size_class, std::span<Chunk*> out) noexcept {
    // Another thread may take what this one made: a few tries, then say no.
    for (int tries = 0; tries < 4; ++tries) {
        if (take(size_class, out)) return true;
        const std::uint32_t have = free_count(size_class);
        const auto want = static_cast<std::uint32_t>(out.size());
        const auto made = grow(size_class, want > have ? want - have : 1);
        if (!made || *made == 0) return take(size_class, out);
    }
    return false;
}

bool HandlePool::reserve_growth(ChunkClass size_class) noexcept {
    for (;;) {
        Chunk* victim = nullptr;
        {
            std::lock_guard lock(mutex_);
            if (existing_bytes_ + kChunkBytes[size_class] <= limit_bytes_.load() &&
                (!settings_.shared || settings_.shared->take(kChunkBytes[size_class]))) {
                existing_bytes_ += kChunkBytes[size_class];
                return true;
            }
            victim = take_other_class(size_class);
        }
        if (!victim) return false;
        release(victim);
    }
}

std::uint32_t HandlePool::reserve_growth(ChunkClass size_class, std::uint32_t count) noexcept {
    std::uint32_t reserved = 0;
    while (reserved < count && reserve_growth(size_class)) ++reserved;
    return reserved;
}

void HandlePool::cancel_growth(ChunkClass size_class) noexcept {
    if (settings_.shared) settings_.shared->give_back(kChunkBytes[size_class]);
    std::lock_guard lock(mutex_);
    existing_bytes_ -= kChunkBytes[size_class];
}

/// Under the lock.
Chunk* HandlePool::take_other_class(ChunkClass keep) noexcept {
    // Pinned memory is cut from larger pieces and cannot be given back in parts.
    return settings_.kind == Kind::Pinned ? nullptr : groups_.take_other_class(keep);
}

Result<std::uint32_t> HandlePool::grow(ChunkClass size_class, std::uint32_t count) noexcept {
    count = std::min(count, kMaxBatch);
    return settings_.kind == Kind::Pinned ? grow_pinned(size_class, count)
                                          : grow_mapped(size_class, count);
}

/// Side by side if that can be had, else as many as are.
Result<ChunkPlaces> HandlePool::claim_places(ChunkClass size_class, std::uint32_t count) noexcept {
    {
        std::lock_guard lock(mutex_);
        if (const ChunkPlaces places = groups_.claim(size_class, count, false); places.count)
            return places;
    }
    const auto base = aliases_.take(kChunkBytes[size_class] * kGroupChunks);
    std::lock_guard lock(mutex_);
    if (base) return groups_.add_group(size_class, *base, kGroupChunks, count, nullptr);
    const ChunkPlaces places = groups_.claim(size_class, count, true);
    if (places.count == 0) return tl::unexpected(base.error());
    return places;
}

Result<std::uint32_t> HandlePool::grow_mapped(ChunkClass size_class, std::uint32_t count) noexcept {
    const std::uint64_t bytes = kChunkBytes[size_class];
    const std::uint32_t reserved = reserve_growth(size_class, count);
    if (reserved == 0) return fail(CUDA_ERROR_OUT_OF_MEMORY, "limit of a pool");
    std::array<CUmemGenericAllocationHandle, kMaxBatch> handles{};
    std::uint32_t created = 0;
    ChunkPlaces places;
    Status status;
    if (const Result<ChunkPlaces> claimed = claim_places(size_class, reserved); claimed) {
        places = *claimed;
        while (created < places.count && (status = create(places, created, &handles[created])))
            ++created;
        if (created != 0) {
            if (Status granted = grant(places.alias(), bytes * created); !granted) {
                for (std::uint32_t i = 0; i < created; ++i) {
                    LIBSWAP_CU_IGNORE(driver_.cuMemUnmap(places.alias() + i * bytes, bytes));
                    LIBSWAP_CU_IGNORE(driver_.cuMemRelease(handles[i]));
                }
                status = granted;
                created = 0;
            }
        }
    } else {
        status = tl::unexpected<Error>(claimed.error());
    }
    for (std::uint32_t i = created; i < reserved; ++i) cancel_growth(size_class);
    {
        std::lock_guard lock(mutex_);
        for (std::uint32_t i = 0; i < created; ++i) groups_.add(places, i, handles[i]);
        for (std::uint32_t i = created; i < places.count; ++i) groups_.cancel(places, i);
    }
    refused_.store(!status);
    if (created == 0) return tl::unexpected<Error>(status.error());
    return created;
}

Status HandlePool::create(const ChunkPlaces& places, std::uint32_t index,
                          CUmemGenericAllocationHandle* handle) noexcept {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    const bool on_host = settings_.kind == Kind::Host;
    prop.location.type = on_host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = on_host ? settings_.numa_node : settings_.device;
    const std::uint64_t bytes = places.bytes();
    const CUdeviceptr alias = places.alias() + index * bytes;
    LIBSWAP_TRY(LIBSWAP_CU(driver_.cuMemCreate(handle, bytes, &prop, 0)));
    Status mapped = LIBSWAP_CU(driver_.cuMemMap(alias, bytes, 0, *handle, 0));
    if (!mapped) LIBSWAP_CU_IGNORE(driver_.cuMemRelease(*handle));
    return mapped;
}

Status HandlePool::grant(CUdeviceptr base, std::uint64_t bytes) noexcept {
    CUmemAccessDesc access[2]{};
    access[0].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[0].location.id = settings_.device;
    access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access[1].location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    access[1].location.id = settings_.numa_node;
    access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return LIBSWAP_CU(
        driver_.cuMemSetAccess(base, bytes, access, settings_.kind == Kind::Host ? 2 : 1));
}

Result<std::uint32_t> HandlePool::grow_pinned(ChunkClass size_class, std::uint32_t count) noexcept {
    const std::uint64_t bytes = kChunkBytes[size_class];
    const std::uint32_t reserved = reserve_growth(size_class, count);
    if (reserved == 0) return fail(CUDA_ERROR_OUT_OF_MEMORY, "limit of a pool");
    void* memory = nullptr;
    CUcontext context = nullptr;
    LIBSWAP_CU_IGNORE(driver_.cuCtxGetCurrent(&context));
    const Status status = LIBSWAP_CU(driver_.cuMemHostAlloc(
        &memory, bytes * reserved, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    if (!status) {
        for (std::uint32_t i = 0; i < reserved; ++i) cancel_growth(size_class);
        return tl::unexpected<Error>(status.error());
    }
    std::lock_guard lock(mutex_);
    const ChunkPlaces places = groups_.add_group(size_class, reinterpret_cast<CUdeviceptr>(memory),
                                                 reserved, reserved, context);
    for (std::uint32_t i = 0; i < reserved; ++i) groups_.add(places, i, 0);
    return reserved;
}

void HandlePool::release(Chunk* chunk) noexcept {
    const std::uint64_t bytes = kChunkBytes[chunk->size_class];
    LIBSWAP_CU_IGNORE(driver_.cuMemUnmap(chunk->alias, bytes));
    LIBSWAP_CU_IGNORE(driver_.cuMemRelease(chunk->handle));
    if (settings_.shared) settings_.shared->give_back(bytes);
    std::lock_guard lock(mutex_);
    groups_.remove(chunk);
    existing_bytes_ -= bytes;
}

void HandlePool::forget_context(CUcontext context) noexcept {
    if (settings_.kind != Kind::Pinned) return;
    std::lock_guard lock(mutex_);
    const std::uint64_t forgotten = groups_.forget_context(context);
    if (settings_.shared) settings_.shared->give_back(forgotten);
    existing_bytes_ -= forgotten;
}

std::uint64_t HandlePool::trim(std::uint64_t bytes) noexcept {
    std::uint64_t released = 0;
    for (;;) {
        Chunk* victim = nullptr;
        {
            std::lock_guard lock(mutex_);
            if (existing_bytes_ <= bytes) return released;
            victim = take_other_class(static_cast<ChunkClass>(kChunkBytes.size()));
        }
        if (!victim) return released;
        released += kChunkBytes[victim->size_class];
        release(victim);
    }
}

void HandlePool::set_limit(std::uint64_t bytes) noexcept { limit_bytes_.store(bytes); }

std::uint64_t HandlePool::free_bytes() noexcept {
    std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (ChunkClass i = 0; i < kChunkBytes.size(); ++i)
        bytes += groups_.free_count(i) * kChunkBytes[i];
    return bytes;
}

std::uint32_t HandlePool::free_count(ChunkClass size_class) noexcept {
    std::lock_guard lock(mutex_);
    return groups_.free_count(size_class);
}

std::uint64_t HandlePool::available_bytes() noexcept {
    std::uint64_t bytes = free_bytes();
    const std::uint64_t existing = existing_bytes();
    std::uint64_t limit = limit_bytes_.load();
    if (settings_.shared) limit = std::min(limit, existing + settings_.shared->room_bytes());
    if (limit > existing && !refused_.load()) bytes += limit - existing;
    return bytes;
}

bool HandlePool::is_valid() noexcept {
    std::uint64_t bytes = free_bytes();
    std::lock_guard lock(mutex_);
    return groups_.is_valid() && bytes <= existing_bytes_;
}

}  // namespace libswap
