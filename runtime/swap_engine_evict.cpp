// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Evictions: resident -> digest, copy out -> remap -> on the host.

#include "runtime/swap_engine.hpp"

namespace libswap {

SwapEngine::Start SwapEngine::evict(Block& block, bool careful,
                                    std::uint64_t after_serial) noexcept {
    if (jobs_.size() == kMaxJobs || lost() || gave_up() || block.busy.load()) return Start::NotNow;
    if (block.for_good.load() || block.cell.load().pins() != 0) return Start::NotNow;
    block.busy.store(true);
    // Freed before it was busy: its chunks are somebody else's. Freed from here on: that waits for
    // us.
    if (block.cell.load().state() != Residency::Resident) {
        block.busy.store(false);
        return Start::NotNow;
    }
    if (!block.has_host() &&
        !parts_.host_pool->take_or_grow(block.run().size_class, block.host_chunks())) {
        block.busy.store(false);
        return Start::NoHostMemory;
    }
    std::uint64_t generation = 0;
    if (!block.cell.begin_evict(&generation)) {
        block.busy.store(false);
        return Start::NotNow;
    }
    Job& job = add_job(block, true, careful, after_serial);
    job.generation = generation;
    job.hand_over = !careful && !parts_.blocks->buffer_of(block).in_parts.load();
    job.stage = Stage::EvictQuiet;
    if (!careful && begin_evict_work(job) == Next::Done) {
        finish(job);
        jobs_.pop_back();
        return Start::NotNow;
    }
    return job.stage == Stage::Drain ? Start::NotNow : Start::Started;
}

SwapEngine::Next SwapEngine::begin_evict_work(Job& job) noexcept {
    Block& block = *job.block;
    job.event_set = false;
    // Without digests the closed gate has to do.
    const bool digest_first = digester_.ready() && (job.careful || block.record_valid.load());
    job.last_stream = digest_first ? check_out_ : out_;
    if (Status ordered = order_after_users(job, job.last_stream); !ordered)
        return give_up(job, ordered.error());
    if (block.fresh.load() && !job.careful) {
        Counters::add(parts_.counters->bytes_fresh, block.bytes());
        block.record_valid.store(false);
        job.stage = Stage::EvictCopy;
        const Status set = set_event(job, job.last_stream);
        return set ? Next::Wait : give_up(job, set.error());
    }
    if (digest_first) {
        if (Status added = submit_digest_in_place(job, check_out_); !added)
            return give_up(job, added.error());
        (void)set_event(job, check_out_);
        job.stage = Stage::EvictDigest;
        return Next::Wait;
    }
    if (Status copied = submit_copy_out(job); !copied) return give_up(job, copied.error());
    job.stage = Stage::EvictCopy;
    return Next::Wait;
}

SwapEngine::Next SwapEngine::after_digest(Job& job) noexcept {
    Block& block = *job.block;
    job.waits = false;  // what it waited for was before the digest
    job.first = digester_.result(job.slot);
    if (!still_mine(job)) return Next::Done;
    if (block.record_valid.load() && job.first == block.record) {
        block.dirty_evictions = 0;
        return remap_out(job);
    }
    ++block.dirty_evictions;
    if (Status copied = submit_copy_out(job); !copied) return give_up(job, copied.error());
    job.stage = Stage::EvictCopy;
    return Next::Wait;
}

Status SwapEngine::submit_copy_out(Job& job) noexcept {
    Block& block = *job.block;
    // From here on the host copy may be anything (rule 7).
    block.record_valid.store(false);
    job.event_set = false;
    job.copied = true;
    job.last_stream = out_;
    const bool verify = parts_.verify && digester_.ready();
    if (verify) LIBSWAP_TRY(submit_digest_in_place(job, out_));
    LIBSWAP_TRY(copy_out(block));
    if (verify) LIBSWAP_TRY(submit_digest(job, &job.second_slot, block.host_chunks(), out_));
    return set_event(job, out_);
}

/// Until it has left, the block lies side by side at its own address, wherever its chunks' aliases
/// are: one copy for all that does in the host's memory too. By aliases it took two to six copies,
/// each with the link's latency (ResNet-152, batch 16, at 60 %: 172 instead of 165 ms).
Status SwapEngine::copy_out(Block& block) noexcept {
    const std::uint64_t bytes = kChunkBytes[block.run().size_class];
    const bool timed = parts_.copy_times->begin(cost::Direction::ToHost);
    std::uint32_t pieces = 0;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < block.run().count; i += count, ++pieces) {
        count = neighbours(block.host_chunks(), i);
        LIBSWAP_TRY(
            LIBSWAP_CU(driver_.cuMemcpyDtoHAsync(reinterpret_cast<void*>(block.host[i]->alias),
                                                 block.base + i * bytes, count * bytes, out_)));
    }
    if (timed) parts_.copy_times->end(block.bytes() / pieces, pieces);
    return {};
}

SwapEngine::Next SwapEngine::remap_out(Job& job) noexcept {
    if (!may_remap(job)) return Next::Wait;
    Block& block = *job.block;
    const Residency from = job.handed ? Residency::HandedOver : Residency::Leaving;
    if (!block.cell.begin_remap(from, job.generation)) {
        Counters::add(parts_.counters->cancels);
        return Next::Done;
    }
    job.waits = false;
    verify_copy(job);
    const bool mappable = parts_.host_pool->kind() == HandlePool::Kind::Host;
    // Explained: whoever waits for the memory has it as soon as it is unmapped, and the host copy
    // is mapped after that.
    if (job.handed) return unmap_handed(block) ? after_guard(job) : Next::Done;
    job.maps_at_once = job.careful || shifts(job);
    const bool map_now = mappable && job.maps_at_once;
    const std::span<Chunk* const> to =
        map_now ? std::span<Chunk* const>(block.host_chunks()) : std::span<Chunk* const>{};
    switch (parts_.remapper->change(block.base, block.device_chunks(), to)) {
        case RemapResult::Done:
            break;
        case RemapResult::Restored:
            Counters::add(parts_.counters->restored);
            note_failure({CUDA_ERROR_UNKNOWN, "a remap"});
            block.cell.end_remap(Residency::Resident);
            return Next::Done;
        case RemapResult::Lost:
            lose("a mapping could not be put back");
            return Next::Done;  // the remap bit stays: whoever names the block is told
    }
    if (job.careful && digester_.ready()) {
        job.stage = Stage::EvictGuard;
        if (submit_digest(job, &job.second_slot, block.device_chunks(), check_out_)) {
            (void)set_event(job, check_out_);
            return Next::Wait;
        }
        // Without a verdict, what was there before is the safe side.
        return map_back(job);
    }
    return after_guard(job);
}

/// Its address still shows memory that is another block's: there is no way back.
bool SwapEngine::unmap_handed(Block& block) noexcept {
    for (int tries = 0; tries < 3; ++tries)
        if (parts_.remapper->unmap(block.base, block.device_chunks()) == RemapResult::Done)
            return true;
    lose("memory that was handed over could not be unmapped");
    return false;
}

SwapEngine::Next SwapEngine::map_back(Job& job) noexcept {
    Block& block = *job.block;
    const bool mappable = parts_.host_pool->kind() == HandlePool::Kind::Host;
    const std::span<Chunk* const> from =
        mappable ? std::span<Chunk* const>(block.host_chunks()) : std::span<Chunk* const>{};
    block.record_valid.store(false);
    if (parts_.remapper->change(block.base, from, block.device_chunks()) == RemapResult::Done)
        block.cell.end_remap(Residency::Resident);
    else
        lose("a block that was written while it left could not be kept");
    return Next::Done;
}

SwapEngine::Next SwapEngine::after_guard(Job& job) noexcept {
    Block& block = *job.block;
    if (job.stage == Stage::EvictGuard) {
        Counters::add(parts_.counters->guards);
        if (!(job.first == digester_.result(job.second_slot))) {
            Counters::add(parts_.counters->guard_hits);
            guard_hit_ = true;
            block.for_good.store(true);
            // If that came of a belief about parts, it was wrong.
            parts_.blocks->buffer_of(block).whole.store(true);
            return map_back(job);
        }
    }
    if (job.copied) {
        Counters::add(parts_.counters->bytes_out, block.bytes());
    } else if (!block.fresh.load()) {
        Counters::add(parts_.counters->bytes_clean, block.bytes());
    }
    Counters::add(parts_.counters->evictions);
    failed_moves_ = 0;
    log_move(job.copied ? MoveKind::EvictCopied : MoveKind::EvictClean, job);
    if (!job.handed) {
        parts_.device_pool->give_back(block.device_chunks());
        leaving_bytes_ -= block.bytes();
        job.left = true;
    }
    block.device.fill(nullptr);
    block.reset_uses();
    if (!job.maps_at_once && parts_.host_pool->kind() == HandlePool::Kind::Host) {
        job.stage = Stage::EvictMap;
        return Next::Wait;
    }
    block.cell.end_remap(Residency::Host);
    return Next::Done;
}

bool SwapEngine::map_one() noexcept {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
        Job& job = jobs_[i];
        if (job.stage != Stage::EvictMap) continue;
        Block& block = *job.block;
        bool mapped = false;
        for (int tries = 0; tries < 3 && !mapped; ++tries)
            mapped = parts_.remapper->map(block.base, block.host_chunks()).has_value();
        if (mapped)
            block.cell.end_remap(Residency::Host);
        else
            lose("a host copy could not be mapped");
        finish(job);
        jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
    }
    return false;
}

}  // namespace libswap
