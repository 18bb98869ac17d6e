// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/handle_pool.hpp"

#include <algorithm>

#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kAliasStepBytes = std::uint64_t{16} << 30;
constexpr std::uint32_t kMaxBatch = 32;

}  // namespace

ChunkClass largest_class(std::uint64_t budget_bytes) noexcept {
    ChunkClass best = 0;
    for (ChunkClass i = 1; i < kChunkBytes.size(); ++i)
        if (kChunkBytes[i] <= budget_bytes / 64) best = i;
    return best;
}

std::uint64_t largest_block_bytes(std::uint64_t budget_bytes) noexcept {
    return std::min(budget_bytes / 15, kChunkBytes.back());
}

void split_into_runs(std::uint64_t bytes, ChunkClass largest, std::uint64_t block_bytes,
                     std::vector<ChunkRun>* runs) {
    runs->clear();
    std::uint64_t pages = (bytes + kChunkBytes[0] - 1) / kChunkBytes[0];
    for (int i = largest; i >= 0; --i) {
        const std::uint64_t chunk_pages = kChunkBytes[i] / kChunkBytes[0];
        const auto size_class = static_cast<ChunkClass>(i);
        std::uint64_t count = pages / chunk_pages;
        pages -= count * chunk_pages;
        const std::uint64_t most =
            std::clamp<std::uint64_t>(block_bytes / kChunkBytes[i], 1, kMaxChunksPerBlock);
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
    if (free_count_[size_class] < out.size()) return false;
    for (Chunk*& chunk : out) {
        chunk = free_[size_class];
        free_[size_class] = chunk->next_free;
        chunk->next_free = nullptr;
    }
    free_count_[size_class] -= static_cast<std::uint32_t>(out.size());
    return true;
}

void HandlePool::give_back(std::span<Chunk* const> chunks) noexcept {
    std::lock_guard lock(mutex_);
    for (Chunk* chunk : chunks) {
        if (!chunk) continue;
        chunk->next_free = free_[chunk->size_class];
        free_[chunk->size_class] = chunk;
        ++free_count_[chunk->size_class];
    }
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
            victim = pop_other_class(size_class);
        }
        if (!victim) return false;
        release(victim);
    }
}

void HandlePool::cancel_growth(ChunkClass size_class) noexcept {
    if (settings_.shared) settings_.shared->give_back(kChunkBytes[size_class]);
    std::lock_guard lock(mutex_);
    existing_bytes_ -= kChunkBytes[size_class];
}

Chunk* HandlePool::pop_other_class(ChunkClass keep) noexcept {
    // Pinned memory is cut from larger pieces and cannot be given back in parts.
    if (settings_.kind == Kind::Pinned) return nullptr;
    for (ChunkClass i = 0; i < kChunkBytes.size(); ++i) {
        if (i == keep || !free_[i]) continue;
        Chunk* chunk = free_[i];
        free_[i] = chunk->next_free;
        --free_count_[i];
        return chunk;
    }
    return nullptr;
}

Result<std::uint32_t> HandlePool::grow(ChunkClass size_class, std::uint32_t count) noexcept {
    count = std::min(count, kMaxBatch);
    return settings_.kind == Kind::Pinned ? grow_pinned(size_class, count)
                                          : grow_mapped(size_class, count);
}

Result<std::uint32_t> HandlePool::grow_mapped(ChunkClass size_class, std::uint32_t count) noexcept {
    const std::uint64_t bytes = kChunkBytes[size_class];
    std::uint32_t reserved = 0;
    while (reserved < count && reserve_growth(size_class)) ++reserved;
    if (reserved == 0) return fail(CUDA_ERROR_OUT_OF_MEMORY, "limit of a pool");
    const auto aliases = aliases_.take(bytes * reserved);
    std::array<Chunk, kMaxBatch> made{};
    std::uint32_t created = 0;
    Status status;
    if (aliases) {
        while (created < reserved) {
            made[created].size_class = size_class;
            status = create(&made[created], *aliases + bytes * created);
            if (!status) break;
            ++created;
        }
        if (created) {
            if (Status granted = grant(*aliases, bytes * created); !granted) {
                for (std::uint32_t i = 0; i < created; ++i) {
                    LIBSWAP_CU_IGNORE(driver_.cuMemUnmap(made[i].alias, bytes));
                    LIBSWAP_CU_IGNORE(driver_.cuMemRelease(made[i].handle));
                }
                status = granted;
                created = 0;
            }
        }
        if (created < reserved)
            aliases_.give_back(*aliases + bytes * created, bytes * (reserved - created));
    } else {
        status = tl::unexpected<Error>(aliases.error());
    }
    for (std::uint32_t i = created; i < reserved; ++i) cancel_growth(size_class);
    for (std::uint32_t i = 0; i < created; ++i) add(&made[i]);
    refused_.store(created < reserved);
    if (created == 0) return tl::unexpected<Error>(status.error());
    return created;
}

Status HandlePool::create(Chunk* chunk, CUdeviceptr alias) noexcept {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    const bool on_host = settings_.kind == Kind::Host;
    prop.location.type = on_host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = on_host ? settings_.numa_node : settings_.device;
    const std::uint64_t bytes = kChunkBytes[chunk->size_class];
    LIBSWAP_TRY(LIBSWAP_CU(driver_.cuMemCreate(&chunk->handle, bytes, &prop, 0)));
    if (Status mapped = LIBSWAP_CU(driver_.cuMemMap(alias, bytes, 0, chunk->handle, 0)); !mapped) {
        LIBSWAP_CU_IGNORE(driver_.cuMemRelease(chunk->handle));
        return mapped;
    }
    chunk->alias = alias;
    return {};
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
    std::uint32_t reserved = 0;
    while (reserved < count && reserve_growth(size_class)) ++reserved;
    if (reserved == 0) return fail(CUDA_ERROR_OUT_OF_MEMORY, "limit of a pool");
    void* memory = nullptr;
    CUcontext context = nullptr;
    LIBSWAP_CU_IGNORE(driver_.cuCtxGetCurrent(&context));
    const Status status = LIBSWAP_CU(driver_.cuMemHostAlloc(
        &memory, bytes * reserved, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    for (std::uint32_t i = 0; i < reserved; ++i) {
        if (!status) {
            cancel_growth(size_class);
            continue;
        }
        Chunk chunk;
        chunk.size_class = size_class;
        chunk.context = context;
        chunk.alias = reinterpret_cast<CUdeviceptr>(memory) + bytes * i;
        add(&chunk);
    }
    if (!status) return tl::unexpected<Error>(status.error());
    return reserved;
}

void HandlePool::add(Chunk* made) noexcept {
    std::lock_guard lock(mutex_);
    Chunk* entry = nullptr;
    if (!unused_entries_.empty()) {
        entry = unused_entries_.back();
        unused_entries_.pop_back();
    } else {
        entry = &chunks_.emplace_back();
    }
    *entry = *made;
    entry->next_free = free_[entry->size_class];
    free_[entry->size_class] = entry;
    ++free_count_[entry->size_class];
}

void HandlePool::release(Chunk* chunk) noexcept {
    const std::uint64_t bytes = kChunkBytes[chunk->size_class];
    LIBSWAP_CU_IGNORE(driver_.cuMemUnmap(chunk->alias, bytes));
    LIBSWAP_CU_IGNORE(driver_.cuMemRelease(chunk->handle));
    aliases_.give_back(chunk->alias, bytes);
    std::lock_guard lock(mutex_);
    note_gone(chunk);
}

/// Under the lock.
void HandlePool::note_gone(Chunk* chunk) noexcept {
    const std::uint64_t bytes = kChunkBytes[chunk->size_class];
    if (settings_.shared) settings_.shared->give_back(bytes);
    existing_bytes_ -= bytes;
    chunk->handle = 0;
    unused_entries_.push_back(chunk);
}

void HandlePool::forget_context(CUcontext context) noexcept {
    if (settings_.kind != Kind::Pinned) return;
    std::lock_guard lock(mutex_);
    for (ChunkClass i = 0; i < free_.size(); ++i)
        for (Chunk** link = &free_[i]; *link;) {
            Chunk* const chunk = *link;
            if (chunk->context != context) {
                link = &chunk->next_free;
                continue;
            }
            *link = chunk->next_free;
            --free_count_[i];
            note_gone(chunk);
        }
}

std::uint64_t HandlePool::trim(std::uint64_t bytes) noexcept {
    std::uint64_t released = 0;
    for (;;) {
        Chunk* victim = nullptr;
        {
            std::lock_guard lock(mutex_);
            if (existing_bytes_ <= bytes) return released;
            victim = pop_other_class(static_cast<ChunkClass>(kChunkBytes.size()));
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
    for (std::size_t i = 0; i < free_count_.size(); ++i) bytes += free_count_[i] * kChunkBytes[i];
    return bytes;
}

std::uint32_t HandlePool::free_count(ChunkClass size_class) noexcept {
    std::lock_guard lock(mutex_);
    return free_count_[size_class];
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
    std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < free_.size(); ++i) {
        std::uint32_t count = 0;
        for (const Chunk* chunk = free_[i]; chunk; chunk = chunk->next_free) {
            if (chunk->size_class != i || chunk->alias == 0) return false;
            ++count;
        }
        if (count != free_count_[i]) return false;
        bytes += count * kChunkBytes[i];
    }
    return bytes <= existing_bytes_;
}

}  // namespace libswap
