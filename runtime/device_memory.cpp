// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Allocation, free, and what programs are told about memory.

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "runtime/clock.hpp"
#include "runtime/context_scope.hpp"
#include "runtime/device.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMemoryWaitUs = 2'000'000;
constexpr unsigned char kFreedPattern = 0xDB;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
    return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void Device::count_alloc(std::uint64_t asked, std::uint64_t span) {
    Counters::add(counters_.asked_bytes, asked);
    Counters::add(counters_.span_bytes, span);
    Counters::raise(counters_.peak_asked_bytes, counters_.asked_bytes.load());
    Counters::raise(counters_.peak_span_bytes, counters_.span_bytes.load());
}

void Device::count_free(std::uint64_t asked, std::uint64_t span) {
    Counters::subtract(counters_.asked_bytes, asked);
    Counters::subtract(counters_.span_bytes, span);
}

CUresult Device::mem_alloc(CUdeviceptr* ptr, std::size_t bytes, CUcontext context) {
    revive(context);
    const bool small = bytes < config_.min_swap_bytes;
    return small && bytes <= kPageBytes ? alloc_small(ptr, bytes, context)
                                        : alloc_buffer(ptr, bytes, context);
}

CUresult Device::alloc_small(CUdeviceptr* ptr, std::size_t bytes, CUcontext context) {
    std::uint64_t base = slabs_.take(bytes, context);
    while (!base) {
        if (!extend_slabs(bytes)) return CUDA_ERROR_NOT_READY;
        base = slabs_.take(bytes, context);
    }
    if (config_.fill.is_set) fill_now(base, config_.fill.value, bytes);
    count_alloc(bytes, 0);
    Counters::add(counters_.slab_asked_bytes, bytes);
    *ptr = base;
    return CUDA_SUCCESS;
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
    if (!wait_for_memory(0, wanted)) return false;
    if (!remapper_.map(claim.base, wanted)) {
        device_pool_.give_back(wanted);
        return false;
    }
    slabs_.publish(claim);
    return true;
}

bool Device::wait_for_memory(ChunkClass size_class, std::span<Chunk*> out) {
    const std::uint64_t deadline = now_ns() + kMemoryWaitUs * 1000;
    for (;;) {
        if (device_pool_.take_or_grow(size_class, out)) return true;
        if (reclaim_cached()) continue;
        if (!worker_->running() || worker_->lost() || worker_->gave_up() || capturing() ||
            now_ns() > deadline)
            return false;
        const std::uint32_t seen = worker_->progress();
        worker_->want_memory(size_class, static_cast<std::uint32_t>(out.size()));
        worker_->wait_progress(seen, 10'000);
    }
}

CUresult Device::alloc_buffer(CUdeviceptr* ptr, std::size_t bytes, CUcontext context) {
    const std::uint64_t span = round_up(bytes, kPageBytes);
    // Two of the largest blocks' worth of host memory stays free, or nothing could change places.
    const std::uint64_t slack = std::min(2 * kChunkBytes[largest_class_], host_limit_bytes_);
    const std::uint64_t capacity = budget_bytes_ + host_limit_bytes_ - slack;
    const std::uint64_t used =
        counters_.span_bytes.load() + slabs_.mapped_bytes() + counters_.external_bytes.load();
    if (span < bytes || span > capacity || used + span > std::max(capacity, budget_bytes_))
        return CUDA_ERROR_OUT_OF_MEMORY;

    const bool stays = bytes < config_.min_swap_bytes || config_.mode == Mode::Observe;
    Buffer* buffer = take_cached(span);
    if (!buffer) {
        std::vector<ChunkRun> runs;
        split_into_runs(bytes, largest_class_, largest_block_bytes(budget_bytes_), &runs);
        const std::uint64_t range = span == bytes ? span + kPageBytes : span;
        const auto base = space_.take(range);
        if (!base) return CUDA_ERROR_NOT_READY;
        buffer = blocks_.add(*base, bytes, runs);
        if (!buffer) {
            space_.give_back(*base, range);
            return CUDA_ERROR_NOT_READY;
        }
        buffer->range_bytes = range;
        if (!give_memory(*buffer, stays)) {
            space_.give_back(*base, range);
            blocks_.remove(buffer);
            return CUDA_ERROR_NOT_READY;
        }
        // The gap belongs to the last block: an end pointer names its own buffer.
        for (std::uint32_t i = 0; i < buffer->count; ++i) {
            const Block& block = blocks_.block(buffer->first + i);
            const std::uint64_t gap = i + 1 == buffer->count ? range - span : 0;
            space_.tag(block.base, block.bytes() + gap, 1 + buffer->first + i);
        }
    }
    buffer->asked_bytes = bytes;
    buffer->context = context;
    buffer->sync_memops = false;
    fill(*buffer);
    const std::uint64_t now = ops_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < buffer->count; ++i) {
        Block& block = blocks_.block(buffer->first + i);
        block.reset_uses();
        block.last_touch.store(now);
        block.refused.store(false);
        block.for_good.store(stays);
        block.fresh.store(!config_.fill.is_set);
        block.record_valid.store(false);
        block.dirty_evictions = 0;
        blocks_.name_anew(block);
        if (log_) log_->alloc(block.id.load(), block.bytes(), i == 0 ? bytes : 0);
        block.cell.born(block.has_device() ? Residency::Resident : Residency::Host);
    }
    buffer->id = blocks_.block(buffer->first).id.load();
    buffer->live.store(true);
    count_alloc(bytes, span);
    if (counters_.span_bytes.load() > budget_bytes_ / 2) start_tracking();
    *ptr = buffer->base;
    return CUDA_SUCCESS;
}

Buffer* Device::take_cached(std::uint64_t span_bytes) {
    std::lock_guard lock(buffers_mutex_);
    auto found = cached_.find(span_bytes);
    if (found == cached_.end() || found->second.empty()) return nullptr;
    Buffer* buffer = found->second.back();
    found->second.pop_back();
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
    bool got = must_be_device
                   ? wait_for_memory(block.run.size_class, block.device_chunks())
                   : device_pool_.take_or_grow(block.run.size_class, block.device_chunks());
    while (!got && !must_be_device && reclaim_cached())
        got = device_pool_.take_or_grow(block.run.size_class, block.device_chunks());
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
    if (!host_pool_.take_or_grow(block.run.size_class, block.host_chunks())) {
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

void Device::fill(Buffer& buffer) {
    if (!config_.fill.is_set) return;
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        if (!block.has_device() && host_pool_.kind() == HandlePool::Kind::Pinned) {
            for (Chunk* chunk : block.host_chunks())
                std::memset(reinterpret_cast<void*>(chunk->alias), config_.fill.value,
                            kChunkBytes[chunk->size_class]);
            continue;
        }
        fill_now(block.base, config_.fill.value, block.bytes());
    }
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

CUresult Device::mem_free(CUdeviceptr ptr) {
    const PageTag tag = space_.find(ptr);
    if (tag & kSlabTag) {
        SlabPiece piece;
        const std::uint32_t index = (tag & ~kSlabTag) - 1;
        if (!slabs_.find(index, ptr, &piece) || piece.base != ptr) return CUDA_ERROR_INVALID_VALUE;
        wait_for_streams();
        edges_.overwrite(ptr, piece.bytes);
        if (!slabs_.free(index, ptr)) return CUDA_ERROR_INVALID_VALUE;
        count_free(piece.bytes, 0);
        Counters::subtract(counters_.slab_asked_bytes, piece.bytes);
        return CUDA_SUCCESS;
    }
    if (tag == 0) return CUDA_ERROR_INVALID_VALUE;
    Buffer& buffer = blocks_.buffer_of(blocks_.block(tag - 1));
    if (buffer.base != ptr || !buffer.live.exchange(false)) return CUDA_ERROR_INVALID_VALUE;
    wait_for_streams();
    edges_.overwrite(ptr, buffer.span_bytes);
    free_blocks(buffer);
    return CUDA_SUCCESS;
}

void Device::wait_for_streams() {
    bool waited = false;
    std::uint64_t begun = 0;
    for (StreamIndex i = 0; i < streams_.count(); ++i) {
        const std::uint64_t last = streams_.last_place(i);
        if (streams_.is_complete(Use::make(i, last)) || last == 0) continue;
        if (!waited) begun = now_ns();
        waited = true;
        const ContextScope scope(driver_, streams_.context(i));
        // A stream of another thread has no name here, and one that is gone has none at all.
        const bool named = streams_.may_record(i);
        const CUresult code =
            named ? driver_.cuStreamSynchronize(streams_.handle(i)) : driver_.cuCtxSynchronize();
        if (code == CUDA_SUCCESS) streams_.mark_complete(i, last);
    }
    if (!waited) return;
    Counters::add(counters_.free_waits);
    Counters::add(counters_.free_wait_ns, now_ns() - begun);
}

void Device::free_blocks(Buffer& buffer) {
    bool all_mapped = true;
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        if (log_) log_->free(block.id.load());
        note_block_free(block.id.load());
        Residency before = Residency::Free;
        // Pins of other threads are about to go, and a remap is short.
        while (!block.cell.free(&before)) {
            if (worker_->lost() && block.cell.load().remapping()) break;
            const std::uint32_t seen = worker_->progress();
            worker_->wait_progress(seen, 100);
        }
        while (block.busy.load()) {
            const std::uint32_t seen = worker_->progress();
            worker_->kick();
            worker_->wait_progress(seen, 1000);
        }
        block.id.store(0);
        block.record_valid.store(false);
        all_mapped &= block.has_device();
    }
    count_free(buffer.asked_bytes, buffer.span_bytes);
    if (worker_->lost()) return;  // what is mapped where is not certain: nobody else gets it
    if (!all_mapped) {
        release_range(buffer);
        worker_->kick();
        return;
    }
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        host_pool_.give_back(block.host_chunks());
        block.host.fill(nullptr);
        if (config_.verify) fill_now(block.base, kFreedPattern, block.bytes());
    }
    {
        std::lock_guard lock(buffers_mutex_);
        cached_[buffer.span_bytes].push_back(&buffer);
    }
    worker_->kick();
}

void Device::release_range(Buffer& buffer) {
    take_memory_back(buffer);
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        // A block that could not be unmapped keeps its chunks, and with them the buffer its
        // addresses.
        Block& block = blocks_.block(buffer.first + i);
        if (block.has_device() || block.has_host()) return;
    }
    const std::uint64_t base = buffer.base;
    const std::uint64_t range = buffer.range_bytes;
    blocks_.remove(&buffer);
    space_.give_back(base, range);
}

bool Device::reclaim_cached() {
    Buffer* buffer = nullptr;
    {
        std::lock_guard lock(buffers_mutex_);
        for (auto& [span, buffers] : cached_) {
            if (buffers.empty()) continue;
            buffer = buffers.back();
            buffers.pop_back();
            break;
        }
    }
    if (!buffer) return false;
    release_range(*buffer);
    return true;
}

void Device::mem_info(std::size_t* free_bytes, std::size_t* total_bytes) {
    const std::uint64_t used =
        counters_.span_bytes.load() + slabs_.mapped_bytes() + counters_.external_bytes.load();
    const std::uint64_t total =
        config_.report == Report::Virtual ? budget_bytes_ + host_limit_bytes_ : budget_bytes_;
    *total_bytes = total;
    *free_bytes = used < total ? total - used : 0;
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
    const PageTag tag = space_.find(address);
    if (tag && !(tag & kSlabTag)) blocks_.buffer_of(blocks_.block(tag - 1)).sync_memops = on;
}

bool Device::sync_memops(std::uint64_t address) {
    const PageTag tag = space_.find(address);
    return tag && !(tag & kSlabTag) && blocks_.buffer_of(blocks_.block(tag - 1)).sync_memops;
}

void Device::external_allocated(std::uint64_t bytes) noexcept {
    Counters::add(counters_.external_bytes, bytes);
    Counters::add(counters_.asked_bytes, bytes);
    Counters::raise(counters_.peak_asked_bytes, counters_.asked_bytes.load());
    const std::uint64_t external = counters_.external_bytes.load();
    device_pool_.set_limit(budget_bytes_ > external ? budget_bytes_ - external : 0);
}

void Device::external_freed(std::uint64_t bytes) noexcept {
    Counters::subtract(counters_.external_bytes, bytes);
    Counters::subtract(counters_.asked_bytes, bytes);
    const std::uint64_t external = counters_.external_bytes.load();
    device_pool_.set_limit(budget_bytes_ > external ? budget_bytes_ - external : 0);
}

}  // namespace libswap
