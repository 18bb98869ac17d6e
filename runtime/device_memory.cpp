// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Allocation, and what programs are told about memory.

#include <algorithm>
#include <cstring>

#include "runtime/buffer_sizes.hpp"
#include "runtime/capture_scope.hpp"
#include "runtime/clock.hpp"
#include "runtime/context_scope.hpp"
#include "runtime/device.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

/// An allocation waits so long while nothing moves, and so long in all: what moves may free memory,
/// however slow the device, or the computer, is.
constexpr std::uint64_t kMemoryWaitNs = 2'000'000'000;
constexpr std::uint64_t kLongestMemoryWaitNs = 10 * kMemoryWaitNs;
/// An allocation lets fetches go first for so long while nothing moves: longer than any copy.
constexpr std::uint64_t kMostYieldNs = 1'000'000'000;

}  // namespace

void Device::count_alloc(std::uint64_t asked, std::uint64_t span) {
    Counters::add(counters_.asked_bytes, asked);
    if (span) Counters::add(counters_.span_bytes, span);
    Counters::raise(counters_.peak_asked_bytes, counters_.asked_bytes.load());
    Counters::raise(counters_.peak_span_bytes, counters_.span_bytes.load());
}

void Device::count_free(std::uint64_t asked, std::uint64_t span) {
    Counters::subtract(counters_.asked_bytes, asked);
    if (span) Counters::subtract(counters_.span_bytes, span);
}

bool Device::is_small(std::uint64_t bytes) const noexcept {
    return bytes < config_.min_swap_bytes && bytes <= kPageBytes;
}

bool Device::stays(std::uint64_t bytes) const noexcept {
    return bytes < config_.min_swap_bytes || config_.mode == Mode::Observe;
}

CUresult Device::mem_alloc(CUdeviceptr* ptr, std::size_t bytes, CUcontext context) {
    revive(context);
    const CaptureScope relaxed(driver_, capturing());
    return allocate(ptr, {bytes, context, nullptr, kNoStream, {}});
}

CUresult Device::allocate(CUdeviceptr* ptr, const Birth& birth) {
    const auto attempt = [&] {
        return is_small(birth.bytes) ? alloc_small(ptr, birth) : alloc_buffer(ptr, birth);
    };
    const CUresult result = attempt();
    // What was freed in stream order may be all that is missing.
    return result != CUDA_SUCCESS && wait_for_freed() ? attempt() : result;
}

CUresult Device::alloc_small(CUdeviceptr* ptr, const Birth& birth) {
    std::uint64_t base = slabs_.take(birth.bytes, birth.context, birth.pool);
    while (!base) {
        if (!extend_slabs(birth.bytes)) return CUDA_ERROR_NOT_READY;
        base = slabs_.take(birth.bytes, birth.context, birth.pool);
    }
    if (config_.fill.is_set) fill_now(base, config_.fill.value, birth.bytes);
    count_alloc(birth.bytes, 0);
    Counters::add(counters_.slab_asked_bytes, birth.bytes);
    *ptr = base;
    return CUDA_SUCCESS;
}

/// For small buffers, which never leave. The driver's own would be beyond the budget as well, and
/// look like other buffers to who learns the iteration.
bool Device::take_beyond_budget(std::span<Chunk*> chunks) {
    const std::uint64_t bytes = chunks.size() * kChunkBytes[0];
    const bool limited = device_pool_.existing_bytes() + bytes > device_pool_.limit_bytes();
    return limited && exceed_budget(bytes, "buffers too small to be moved need more") &&
           device_pool_.take_or_grow(0, chunks);
}

bool Device::extend_slabs(std::uint64_t bytes) {
    SlabHeap::Claim claim = slabs_.claim(bytes);
    while (claim.pages == 0) {
        const auto base = space_.take(SlabHeap::kSlabBytes);
        if (!base) return false;
        const std::uint32_t index = slabs_.add_slab(*base);
        space_.tag(*base, SlabHeap::kSlabBytes, kSlabTag | (index + 1));
        claim = slabs_.claim(bytes);
    }
    std::array<Chunk*, 2> chunks{};
    const std::span<Chunk*> wanted(chunks.data(), claim.pages);
    if (!wait_for_memory(0, wanted) && !take_beyond_budget(wanted)) return false;
    if (!remapper_.map(claim.base, wanted)) {
        device_pool_.give_back(wanted);
        return false;
    }
    slabs_.publish(claim);
    return true;
}

bool Device::wait_for_memory(ChunkClass size_class, std::span<Chunk*> out, bool patient) {
    if (device_pool_.take_or_grow(size_class, out)) return true;
    const std::uint64_t ticket = worker_->new_ticket();
    const std::uint64_t begun = now_ns();
    std::uint64_t last_change = begun;
    bool asked = false;
    bool taken = false;
    while (!(taken = device_pool_.take_or_grow(size_class, out))) {
        if (reclaim_cached()) continue;
        if (!worker_->running() || worker_->lost() || worker_->gave_up() || capturing()) break;
        const std::uint64_t now = now_ns();
        const bool too_long =
            now - last_change > kMemoryWaitNs || now - begun > kLongestMemoryWaitNs;
        if (asked && (worker_->refused_memory(ticket) || too_long)) break;
        const std::uint32_t seen = worker_->progress();
        worker_->want_memory(ticket, size_class, static_cast<std::uint32_t>(out.size()), patient);
        asked = true;
        worker_->wait_progress(seen, 10'000);
        if (worker_->progress() != seen) last_change = now_ns();
    }
    if (asked) worker_->end_want(ticket);
    return taken;
}

CUresult Device::alloc_buffer(CUdeviceptr* ptr, const Birth& birth) {
    const std::uint64_t span = span_of(birth.bytes);
    // Two of the largest blocks' worth of host memory stays free, or nothing could change places.
    const std::uint64_t slack = std::min(2 * largest_block_.bytes(), host_limit_bytes());
    const std::uint64_t host = host_room();
    const std::uint64_t capacity = budget_bytes_ + (host > slack ? host - slack : 0);
    const std::uint64_t used = taken_bytes();
    if (span < birth.bytes || span > capacity || used + span > std::max(capacity, budget_bytes_))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!stays(birth.bytes)) yield_to_fetches(span);
    Buffer* buffer = take_cached(size_key(birth.bytes));
    if (!buffer) {
        const Result<Buffer*> made = new_buffer(birth.bytes);
        if (!made) return CUDA_ERROR_NOT_READY;
        buffer = *made;
    }
    begin_life(*buffer, birth);
    *ptr = buffer->base;
    return CUDA_SUCCESS;
}

/// As long as fetches that cannot be late need what is there, and the device has enough to do; or
/// comes to an operation that needs one of them before anything that is not issued yet. For speed
/// only, so where nothing moves meanwhile (the device may wait for what this thread does next), it
/// is not done again in this run of the plan.
void Device::yield_to_fetches(std::uint64_t bytes) {
    const auto must = [&] {
        if (!learning_->follows_plan() || capturing() || !worker_->running() || worker_->lost() ||
            learning_->plan_run() == run_without_yield_.load())
            return false;
        const auto takes_reserved = [&](bool issued_only) {
            const std::uint64_t reserved =
                worker_->reserved_bytes(learning_->next_serial(), issued_only);
            return reserved != 0 &&
                   device_pool_.available_bytes() + cached_bytes_.load() < reserved + bytes;
        };
        return takes_reserved(false) && (!learning_->host_is_near() || takes_reserved(true));
    };
    std::uint64_t last_change = now_ns();
    for (std::uint32_t seen = worker_->progress(); must(); seen = worker_->progress()) {
        worker_->wait_progress(seen, 1000);
        if (worker_->progress() != seen) last_change = now_ns();
        if (now_ns() - last_change > kMostYieldNs) run_without_yield_ = learning_->plan_run();
    }
}

Result<Buffer*> Device::new_buffer(std::uint64_t bytes) {
    const std::uint64_t span = span_of(bytes);
    const std::uint64_t range = range_of_buffer(bytes);
    std::vector<ChunkRun> runs;
    split_into_runs(bytes, largest_block_, &runs);
    const auto base = space_.take(range);
    if (!base) return tl::unexpected(base.error());
    Buffer* buffer = blocks_.add(*base, bytes, runs);
    if (!buffer) {
        space_.give_back(*base, range);
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "table of blocks");
    }
    buffer->range_bytes = range;
    buffer->peers = remapper_.peers();
    // Making memory and mapping it takes time, which the device may wait for.
    worker_->note_wait();
    if (!give_memory(*buffer, stays(bytes))) {
        space_.give_back(*base, range);
        blocks_.remove(buffer);
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "memory of a buffer");
    }
    // The gap belongs to the last block: an end pointer names its own buffer.
    for (std::uint32_t i = 0; i < buffer->count; ++i) {
        const Block& block = blocks_.block(buffer->first + i);
        const std::uint64_t gap = i + 1 == buffer->count ? range - span : 0;
        space_.tag(block.base, block.bytes() + gap, 1 + buffer->first + i);
    }
    return buffer;
}

void Device::begin_life(Buffer& buffer, const Birth& birth) {
    // Nobody finds the buffer yet: born() and `live` publish all of it.
    constexpr auto kRelaxed = std::memory_order_relaxed;
    buffer.asked_bytes = birth.bytes;
    buffer.context = birth.context;
    buffer.sync_memops.store(false, kRelaxed);
    buffer.told.store(Buffer::Told::Unknown, kRelaxed);
    pieces_.forget(buffer.base, buffer.span_bytes);
    buffer.pool = birth.pool;
    if (buffer.peers != remapper_.peers()) grant_peers(buffer);
    const Use filled = fill(buffer, birth);
    const std::uint64_t now = stillness_.number();
    bool on_host = false;
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        on_host |= !block.has_device();
        block.reset_uses();
        if (birth.after) block.publish(birth.after);
        if (filled) block.publish(filled);
        block.last_touch.store(now, kRelaxed);
        block.refused.store(false, kRelaxed);
        block.for_good.store(stays(birth.bytes), kRelaxed);
        block.fresh.store(!config_.fill.is_set, kRelaxed);
        block.record_valid.store(false, kRelaxed);
        block.dirty_evictions = 0;
        blocks_.name_anew(block);
        if (log_) log_->alloc(block.id.load(), block.bytes(), i == 0 ? birth.bytes : 0);
        block.cell.born(block.has_device() ? Residency::Resident : Residency::Host);
    }
    buffer.id = blocks_.block(buffer.first).id.load(kRelaxed);
    buffer.live.store(true, std::memory_order_release);
    count_alloc(birth.bytes, buffer.span_bytes);
    if (!on_host && counters_.span_bytes.load() <= budget_bytes_ / 2) return;
    measuring_wanted_.store(true, std::memory_order_relaxed);
    start_tracking();
}

Buffer* Device::take_cached(std::uint64_t size_key) {
    std::lock_guard lock(buffers_mutex_);
    auto found = cached_.find(size_key);
    if (found == cached_.end() || found->second.empty()) return nullptr;
    Buffer* buffer = found->second.back();
    found->second.pop_back();
    cached_bytes_.fetch_sub(buffer->span_bytes);
    return buffer;
}

bool Device::give_memory(Buffer& buffer, bool must_be_device) {
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        if (give_block_memory(blocks_.block(buffer.first + i), must_be_device)) continue;
        take_memory_back(buffer);
        return false;
    }
    return true;
}

bool Device::give_block_memory(Block& block, bool must_be_device) {
    // By a plan there is memory for it when it is used. Born on the host, it would be mapped twice.
    const bool patient = !must_be_device && learning_->follows_plan();
    bool got = must_be_device || patient
                   ? wait_for_memory(block.run().size_class, block.device_chunks(), patient)
                   : device_pool_.take_or_grow(block.run().size_class, block.device_chunks());
    while (!got && !must_be_device && reclaim_cached())
        got = device_pool_.take_or_grow(block.run().size_class, block.device_chunks());
    if (got) {
        if (remapper_.map(block.base, block.device_chunks())) return true;
        device_pool_.give_back(block.device_chunks());
        block.device.fill(nullptr);
        return false;
    }
    block.device.fill(nullptr);
    if (must_be_device) return false;
    // Born on the host, and brought when it is first used. Where host memory cannot be mapped it
    // needs none until there is content to keep.
    if (host_pool_.kind() == HandlePool::Kind::Pinned && !config_.fill.is_set) return true;
    if (!host_pool_.take_or_grow(block.run().size_class, block.host_chunks())) {
        block.host.fill(nullptr);
        return false;
    }
    if (host_pool_.kind() == HandlePool::Kind::Pinned ||
        remapper_.map(block.base, block.host_chunks()))
        return true;
    host_pool_.give_back(block.host_chunks());
    block.host.fill(nullptr);
    return false;
}

void Device::take_memory_back(Buffer& buffer) {
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        const bool host_mapped =
            block.has_host() && !block.has_device() && host_pool_.kind() == HandlePool::Kind::Host;
        RemapResult result = RemapResult::Done;
        for (int tries = 0; tries < 3; ++tries) {
            if (block.has_device())
                result = remapper_.unmap(block.base, block.device_chunks());
            else if (host_mapped)
                result = remapper_.unmap(block.base, block.host_chunks());
            if (result == RemapResult::Done) break;
        }
        if (result != RemapResult::Done) {
            // Its addresses still show these chunks: nobody else may have either. Lost to us, not
            // to the program, which has given the buffer back.
            LIBSWAP_LOG(Warning, "{} MiB could not be unmapped and are left unused",
                        block.bytes() >> 20);
            continue;
        }
        device_pool_.give_back(block.device_chunks());
        host_pool_.give_back(block.host_chunks());
        block.device.fill(nullptr);
        block.host.fill(nullptr);
    }
}

Use Device::fill(Buffer& buffer, const Birth& birth) {
    Use last;
    if (!config_.fill.is_set) return last;
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        if (!block.has_device() && host_pool_.kind() == HandlePool::Kind::Pinned) {
            for (Chunk* chunk : block.host_chunks())
                std::memset(reinterpret_cast<void*>(chunk->alias), config_.fill.value,
                            kChunkBytes[chunk->size_class]);
            continue;
        }
        if (birth.after)
            last = fill_in_order(block.base, block.bytes(), birth);
        else
            fill_now(block.base, config_.fill.value, block.bytes());
    }
    return last;
}

void Device::fill_now(std::uint64_t base, unsigned char value, std::uint64_t bytes) {
    // On a stream of its own, and waited for: a memset returns before it is done, and what is
    // filled may move at once.
    const ContextScope scope(driver_, home_);
    CUstream stream = nullptr;
    Status status;
    for (int tries = 0; tries < 2; ++tries) {
        if (!stream) status = LIBSWAP_CU(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        if (status) status = LIBSWAP_CU(driver_.cuMemsetD8Async(base, value, bytes, stream));
        if (status) status = LIBSWAP_CU(driver_.cuStreamSynchronize(stream));
        if (status) break;
    }
    if (!status) Counters::add(counters_.fallbacks);
    if (stream) LIBSWAP_CU_IGNORE(driver_.cuStreamDestroy(stream));
}

std::uint64_t Device::host_room() noexcept {
    return host_limit_.room_bytes() + host_pool_.existing_bytes();
}

void Device::mem_info(std::size_t* free_bytes, std::size_t* total_bytes) {
    const bool with_host = config_.report == Report::Virtual;
    const std::uint64_t used = taken_bytes();
    // Host memory that others have is not free, but was there: free + used never exceeds total.
    const std::uint64_t room = budget_bytes_ + (with_host ? host_room() : 0);
    *total_bytes = budget_bytes_ + (with_host ? host_limit_bytes() : 0);
    *free_bytes = used < room ? room - used : 0;
}

bool Device::range_of(std::uint64_t address, std::uint64_t* base, std::uint64_t* bytes,
                      std::uint64_t* id, CUcontext* context) {
    const PageTag tag = space_.find(address);
    if (tag == 0) return false;
    if (tag & kSlabTag) {
        SlabPiece piece;
        if (!slabs_.find((tag & ~kSlabTag) - 1, address, &piece)) return false;
        *base = piece.base;
        *bytes = piece.bytes;
        if (id) *id = piece.base;
        if (context) *context = piece.context;
        return true;
    }
    const Buffer& buffer = blocks_.buffer_of(blocks_.block(tag - 1));
    if (!buffer.live.load() || address - buffer.base >= buffer.asked_bytes) return false;
    *base = buffer.base;
    *bytes = buffer.asked_bytes;
    if (id) *id = buffer.id;
    if (context) *context = buffer.context;
    return true;
}

void Device::set_sync_memops(std::uint64_t address, bool on) {
    if (const Block* block = block_at(address)) blocks_.buffer_of(*block).sync_memops = on;
}

bool Device::sync_memops(std::uint64_t address) {
    const Block* const block = block_at(address);
    return block && blocks_.buffer_of(*block).sync_memops;
}

}  // namespace libswap
