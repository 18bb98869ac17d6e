// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Free: the life of a buffer ends, then its memory goes to whoever needs it next.

#include "runtime/buffer_sizes.hpp"
#include "runtime/capture_scope.hpp"
#include "runtime/clock.hpp"
#include "runtime/context_scope.hpp"
#include "runtime/device.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr unsigned char kFreedPattern = 0xDB;

}  // namespace

CUresult Device::mem_free(CUdeviceptr ptr) {
    const PageTag tag = space_.find(ptr);
    const CaptureScope relaxed(driver_, capturing());
    if (tag & kSlabTag) {
        SlabPiece piece;
        if (!slabs_.end((tag & ~kSlabTag) - 1, ptr, &piece)) return CUDA_ERROR_INVALID_VALUE;
        wait_for_streams();
        free_piece(ptr, piece);
        return CUDA_SUCCESS;
    }
    if (tag == 0) return CUDA_ERROR_INVALID_VALUE;
    Buffer& buffer = blocks_.buffer_of(blocks_.block(tag - 1));
    if (buffer.base != ptr || !buffer.live.exchange(false)) return CUDA_ERROR_INVALID_VALUE;
    wait_for_streams();
    free_now(buffer);
    return CUDA_SUCCESS;
}

void Device::free_now(Buffer& buffer) {
    end_blocks(buffer);
    if (buffer.pool) buffer.pool->count_release(buffer.span_bytes);
    settle_blocks(buffer);
    recycle(buffer);
}

void Device::free_piece(CUdeviceptr ptr, const SlabPiece& piece) {
    edges_.overwrite(ptr, piece.bytes);
    (void)slabs_.free((space_.find(ptr) & ~kSlabTag) - 1, ptr);
    count_free(piece.bytes, 0);
    Counters::subtract(counters_.slab_asked_bytes, piece.bytes);
    if (!piece.pool) return;
    piece.pool->count_free(piece.bytes);
    piece.pool->count_release(SlabHeap::rounded(piece.bytes));
}

void Device::wait_for_streams() {
    bool waited = false;
    std::uint64_t begun = 0;
    for (StreamIndex i = 0; i < streams_.count(); ++i) {
        const std::uint64_t last = streams_.last_place(i);
        if (streams_.is_complete(Use::make(i, last)) || last == 0) continue;
        if (!waited) begun = now_ns();
        waited = true;
        wait_for_stream(i, last);
    }
    if (!waited) return;
    Counters::add(counters_.free_waits);
    Counters::add(counters_.free_wait_ns, now_ns() - begun);
}

void Device::wait_for_stream(StreamIndex stream, std::uint64_t place) {
    const ContextScope scope(driver_, streams_.context(stream));
    // A stream of another thread has no name here, and one that is gone has none at all.
    const bool named = streams_.may_record(stream);
    const CUresult code =
        named ? driver_.cuStreamSynchronize(streams_.handle(stream)) : driver_.cuCtxSynchronize();
    if (code == CUDA_SUCCESS) streams_.mark_complete(stream, place);
}

/// From here on nobody finds the buffer. Jobs of the worker on it may still be ending.
void Device::end_blocks(Buffer& buffer) {
    edges_.overwrite(buffer.base, buffer.span_bytes);
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        if (log_) log_->free(block.id.load());
        note_block_free(block.id.load());
        if (block.stays_because.load() != StayReason::None) {
            const StayReason reason = block.stays_because.exchange(StayReason::None);
            Counters::subtract(counters_.for_good_bytes, block.bytes());
            Counters::subtract(counters_.stay_bytes[static_cast<std::size_t>(reason)],
                               block.bytes());
        }
        Residency before = Residency::Free;
        // Pins of other threads are about to go, and a remap is short.
        while (!block.cell.free(&before)) {
            if (worker_->lost() && block.cell.load().remapping()) break;
            const std::uint32_t seen = worker_->progress();
            worker_->wait_progress(seen, 100);
        }
    }
    count_free(buffer.asked_bytes, buffer.span_bytes);
    if (buffer.pool) buffer.pool->count_free(buffer.asked_bytes);
}

/// Waits until the worker has ended its jobs on the blocks.
void Device::settle_blocks(Buffer& buffer) {
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        while (block.busy.load()) {
            const std::uint32_t seen = worker_->progress();
            worker_->kick();
            worker_->wait_progress(seen, 1000);
        }
    }
}

/// The memory of a buffer that has ended, and that nobody uses, is free for others.
void Device::recycle(Buffer& buffer) {
    bool all_mapped = true;
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        block.id.store(0, std::memory_order_release);
        block.record_valid.store(false, std::memory_order_release);
        all_mapped &= block.has_device();
    }
    if (worker_->lost()) return;  // what is mapped where is not certain: nobody else gets it
    if (!all_mapped) {
        worker_->note_wait();
        release_range(buffer);
        worker_->kick();
        return;
    }
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        Block& block = blocks_.block(buffer.first + i);
        if (block.has_host()) host_pool_.give_back(block.host_chunks());
        block.host.fill(nullptr);
        if (config_.verify) fill_now(block.base, kFreedPattern, block.bytes());
    }
    const bool has_gap = buffer.range_bytes != buffer.span_bytes;
    {
        std::lock_guard lock(buffers_mutex_);
        cached_[size_key(buffer.span_bytes, has_gap)].push_back(&buffer);
        cached_bytes_.fetch_add(buffer.span_bytes);
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
    const CaptureScope relaxed(driver_, capturing());
    Buffer* buffer = nullptr;
    {
        std::lock_guard lock(buffers_mutex_);
        for (auto& [span, buffers] : cached_) {
            if (buffers.empty()) continue;
            buffer = buffers.back();
            buffers.pop_back();
            cached_bytes_.fetch_sub(buffer->span_bytes);
            break;
        }
    }
    if (!buffer) return reclaim_freed();
    release_range(*buffer);
    return true;
}

}  // namespace libswap
