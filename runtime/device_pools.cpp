// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream-ordered allocation. A free takes a place on its stream, and what is freed goes to a list:
// it serves the next allocation of its size that comes after that place, and goes back to the
// device once the place is known to be complete. Nothing here waits for the device, except an
// allocation that could not be served otherwise.

#include <algorithm>

#include "runtime/buffer_sizes.hpp"
#include "runtime/capture_scope.hpp"
#include "runtime/device.hpp"
#include "runtime/log.hpp"

namespace libswap {

CUresult Device::pool_alloc(CUdeviceptr* ptr, std::size_t bytes, CUcontext context, CUstream stream,
                            Pool& pool) {
    revive(context);
    const CaptureScope relaxed(driver_, capturing());
    const bool small = is_small(bytes);
    const std::uint64_t span = small ? SlabHeap::rounded(bytes) : span_of(bytes);
    if (pool.max_bytes && pool.reserved_bytes.load() + span > pool.max_bytes)
        trim_pool(pool, pool.max_bytes - std::min(span, pool.max_bytes));
    Birth birth{bytes, context, &pool, streams_.find(context, stream), {}};
    FreedRange range;
    if (take_freed(pool, small ? span : size_key(bytes), birth.stream, &range)) {
        birth.after = range.freed;
        reuse(range, birth);
        *ptr = range.base;
        pool.count_release(range.bytes);
    } else {
        if (pool.max_bytes && pool.reserved_bytes.load() + span > pool.max_bytes)
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (const CUresult result = allocate(ptr, birth); result != CUDA_SUCCESS) return result;
    }
    pool.count_use(bytes, span);
    return CUDA_SUCCESS;
}

void Device::reuse(const FreedRange& range, const Birth& birth) {
    if (range.buffer) {
        begin_life(*range.buffer, birth);
        return;
    }
    const std::uint32_t slab = (space_.find(range.base) & ~kSlabTag) - 1;
    slabs_.begin_again(slab, {range.base, birth.bytes, birth.context, birth.pool});
    if (config_.fill.is_set) (void)fill_in_order(range.base, birth.bytes, birth);
    count_alloc(birth.bytes, 0);
    Counters::add(counters_.slab_asked_bytes, birth.bytes);
}

/// Behind the work on the memory that may be under way, so on the program's stream.
Use Device::fill_in_order(std::uint64_t base, std::uint64_t bytes, const Birth& birth) {
    const CUstream stream = streams_.handle(birth.stream);
    const Status status =
        LIBSWAP_CU(driver_.cuMemsetD8Async(base, config_.fill.value, bytes, stream));
    if (!status) Counters::add(counters_.fallbacks);
    const Use use = streams_.take_place(birth.stream);
    if (stream == CU_STREAM_PER_THREAD) (void)streams_.record(birth.stream);
    return use;
}

CUresult Device::pool_free(CUdeviceptr ptr, CUcontext context, CUstream stream) {
    Pool* const pool = pool_of(ptr);
    const StreamIndex index = pool ? streams_.find(context, stream) : kNoStream;
    if (index == kNoStream) return mem_free(ptr);
    const PageTag tag = space_.find(ptr);
    FreedRange range{pool, ptr, 0, 0, nullptr, {}};
    if (tag & kSlabTag) {
        SlabPiece piece;
        if (!slabs_.end((tag & ~kSlabTag) - 1, ptr, &piece)) return CUDA_ERROR_INVALID_VALUE;
        edges_.overwrite(ptr, piece.bytes);
        count_free(piece.bytes, 0);
        Counters::subtract(counters_.slab_asked_bytes, piece.bytes);
        pool->count_free(piece.bytes);
        range.bytes = range.size_key = SlabHeap::rounded(piece.bytes);
    } else {
        Buffer& buffer = blocks_.buffer_of(blocks_.block(tag - 1));
        if (buffer.base != ptr || !buffer.live.exchange(false)) return CUDA_ERROR_INVALID_VALUE;
        end_blocks(buffer);
        range.buffer = &buffer;
        range.bytes = buffer.span_bytes;
        range.size_key = size_key(buffer.span_bytes, buffer.range_bytes != buffer.span_bytes);
    }
    range.freed = streams_.take_place(index);
    // Nobody else can record on it.
    const bool own_thread_only = stream == CU_STREAM_PER_THREAD;
    // Where a plan is followed, what waits for this memory has it as soon as the stream has passed.
    const bool wanted_soon = range.buffer && learning_->follows_plan();
    if ((own_thread_only || wanted_soon) && !capturing()) (void)streams_.record(index);
    freed_.put(range);
    return CUDA_SUCCESS;
}

Pool* Device::pool_of(std::uint64_t address) {
    const PageTag tag = space_.find(address);
    if (tag == 0) return nullptr;
    if (!(tag & kSlabTag)) return blocks_.buffer_of(blocks_.block(tag - 1)).pool;
    SlabPiece piece;
    return slabs_.find((tag & ~kSlabTag) - 1, address, &piece) ? piece.pool : nullptr;
}

bool Device::settled(const FreedRange& range) {
    if (!range.buffer) return true;
    for (std::uint32_t i = 0; i < range.buffer->count; ++i)
        if (blocks_.block(range.buffer->first + i).busy.load()) return false;
    return true;
}

bool Device::take_freed(const Pool& pool, std::uint64_t key, StreamIndex stream, FreedRange* out) {
    if (freed_.empty() || stream == kNoStream || worker_->lost()) return false;
    const auto fits = [&](const FreedRange& range) {
        if (!settled(range)) return false;
        if (range.freed.stream() == stream) return true;
        if (pool.follows_events.load() && order_.ordered(range.freed, stream)) return true;
        return pool.opportunistic.load() && streams_.known_complete(range.freed);
    };
    if (freed_.take(&pool, key, stream, out, fits)) return true;
    if (!pool.opportunistic.load() || !freed_.has(&pool, key)) return false;
    look_at_frees();
    return freed_.take(&pool, key, stream, out, fits);
}

/// Asks the driver how far the streams of what was freed have got. Records events where there are
/// none, so that a later look knows more.
void Device::look_at_frees() {
    if (capturing()) return;
    std::vector<Use> frees;
    freed_.last_frees(&frees);
    for (const Use use : frees) {
        if (streams_.is_complete(use) || streams_.is_covered(use)) continue;
        if (!streams_.may_record(use.stream())) continue;
        if (streams_.record(use.stream())) (void)streams_.is_complete(use);
    }
}

bool Device::reclaim_freed() {
    const auto done = [&](const FreedRange& range) {
        return streams_.known_complete(range.freed) && settled(range);
    };
    FreedRange range;
    if (!freed_.take_any(&range, done)) {
        if (freed_.empty()) return false;
        look_at_frees();
        if (!freed_.take_any(&range, done)) return false;
    }
    recycle(range);
    return true;
}

/// What a stream has passed goes back to the device.
void Device::recycle(const FreedRange& range) {
    range.pool->count_release(range.bytes);
    if (range.buffer)
        recycle(*range.buffer);
    else
        (void)slabs_.free((space_.find(range.base) & ~kSlabTag) - 1, range.base);
}

bool Device::wait_for_freed() {
    if (freed_.empty() || capturing()) return false;
    std::vector<Use> frees;
    freed_.last_frees(&frees);
    for (const Use use : frees)
        if (!streams_.is_complete(use)) wait_for_stream(use.stream(), use.place());
    bool any = false;
    while (reclaim_freed()) any = true;
    return any;
}

void Device::trim_pool(Pool& pool, std::uint64_t keep_bytes) {
    if (freed_.empty() || pool.reserved_bytes.load() <= keep_bytes) return;
    look_at_frees();
    FreedRange range;
    while (pool.reserved_bytes.load() > keep_bytes &&
           freed_.take_any(&range, [&](const FreedRange& candidate) {
               return candidate.pool == &pool && streams_.known_complete(candidate.freed) &&
                      settled(candidate);
           }))
        recycle(range);
}

void Device::release_unused() {
    FreedRange range;
    while (freed_.take_any(&range, [&](const FreedRange& candidate) {
        const Pool& pool = *candidate.pool;
        return pool.reserved_bytes.load() > pool.release_threshold.load() &&
               streams_.known_complete(candidate.freed) && settled(candidate);
    }))
        recycle(range);
}

}  // namespace libswap
