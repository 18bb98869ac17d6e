// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Fetches: on the host -> copy in -> swap the mapping -> resident, and what they take from
// evictions under way.

#include <algorithm>
#include <utility>

#include "runtime/swap_engine.hpp"

namespace libswap {

SwapEngine::Start SwapEngine::fetch(Block& block, Way way, std::uint64_t after_serial) noexcept {
    if (gave_up()) return Start::Failed;
    if (jobs_.size() == kMaxJobs || lost() || block.busy.load()) return Start::NotNow;
    const ResidencyWord word = block.cell.load();
    if (word.state() != Residency::Host || word.pins() != 0) return Start::NotNow;
    block.busy.store(true);
    std::array<Chunk*, kMaxChunksPerBlock> chunks{};
    const std::span<Chunk*> wanted(chunks.data(), block.run().count);
    const bool taken = parts_.device_pool->take_or_grow(block.run().size_class, wanted);
    if (!taken) chunks.fill(nullptr);
    const bool may_map_early = !parts_.verify && parts_.host_pool->kind() == HandlePool::Kind::Host;
    const bool may_hand_over = way == Way::HandOver && may_map_early;
    const std::size_t from = taken || !may_hand_over ? jobs_.size() : find_heritage(block);
    if (!taken && from == jobs_.size()) {
        block.busy.store(false);
        return Start::NoDeviceMemory;
    }
    std::uint64_t generation = 0;
    if (!block.cell.begin_fetch(&generation)) {
        parts_.device_pool->give_back(wanted);
        block.busy.store(false);
        return Start::NotNow;
    }
    Job& job = add_job(block, false, way == Way::Careful, after_serial);
    job.generation = generation;
    job.chunks = chunks;
    job.early = may_map_early && (way == Way::Early || way == Way::HandOver);
    job.stage = Stage::FetchQuiet;
    if (!taken && !inherit(job, from)) {
        block.cell.cancel(Residency::Coming, generation, Residency::Host);
        finish(job);
        jobs_.pop_back();
        return Start::NotNow;
    }
    if (way != Way::Careful && begin_fetch_work(job) == Next::Done) {
        finish(job);
        jobs_.pop_back();
        return Start::Failed;
    }
    return job.stage == Stage::Drain ? Start::NotNow : Start::Started;
}

bool SwapEngine::any_waits(bool is_evict) const noexcept {
    return std::any_of(jobs_.begin(), jobs_.end(),
                       [&](const Job& job) { return job.is_evict == is_evict && job.waits; });
}

/// A block of this shape whose copy out is under way, and waits for nothing but our own copies:
/// where its users were complete when it was submitted, whoever waits for it waits for no operation
/// of the program (rule 10). The number of jobs if there is none.
std::size_t SwapEngine::find_heritage(const Block& block) const noexcept {
    if (any_waits(true)) return jobs_.size();
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) {
        return job.stage == Stage::EvictCopy && job.hand_over && job.event_set && !job.handed &&
               job.block->run().size_class == block.run().size_class &&
               job.block->run().count == block.run().count && still_mine(job);
    });
    return static_cast<std::size_t>(found - jobs_.begin());
}

bool SwapEngine::inherit(Job& job, std::size_t from) noexcept {
    Job& last_owner = jobs_[from];
    if (!keep_out_unexplained(last_owner)) return false;
    if (!LIBSWAP_CU(driver_.cuStreamWaitEvent(in_, last_owner.event, 0))) return false;
    if (!last_owner.block->cell.hand_over(last_owner.generation)) return false;
    job.chunks = last_owner.block->device;
    last_owner.handed = true;
    last_owner.left = true;
    leaving_bytes_ -= last_owner.block->bytes();
    Counters::add(parts_.counters->hand_overs);
    return true;
}

/// A copy in to the chunks' aliases needs nothing but their memory, so that it may begin before the
/// mapping is changed. But aliases seldom lie side by side: it takes two to eight copies, each with
/// the link's latency. Where the link is busy anyway, the mapping comes first, and one copy to the
/// block's own address does.
SwapEngine::Next SwapEngine::begin_fetch_work(Job& job) noexcept {
    job.event_set = false;
    job.stage = Stage::FetchCopy;
    job.last_stream = in_;
    if (Status ordered = order_after_users(job, in_); !ordered)
        return give_up(job, ordered.error());
    if (wants_one_copy(job) && may_map_early(job)) {
        if (!begin_mapping(job)) return Next::Wait;
        const Status submitted = submit_copy_in(job);
        return submitted ? expect_copy(job) : take_back(job, submitted.error());
    }
    if (Status submitted = submit_copy_in(job); !submitted) return give_up(job, submitted.error());
    return may_map_early(job) && begin_mapping(job) ? expect_copy(job) : Next::Wait;
}

/// There is something to copy, in pieces, and that has to wait for others.
bool SwapEngine::wants_one_copy(const Job& job) const noexcept {
    const Block& block = *job.block;
    if (has_no_content(job)) return false;
    const std::span<Chunk* const> chunks(job.chunks.data(), block.run().count);
    if (neighbours(chunks, 0) == chunks.size()) return false;
    return std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& other) {
        return &other != &job && other.copied && other.event_set &&
               (other.stage == Stage::FetchCopy || other.stage == Stage::FetchArrive);
    });
}

/// Without a host copy there is none: it never left, nor was it written on the host.
bool SwapEngine::has_no_content(const Job& job) const noexcept {
    return (job.block->fresh.load() && !job.careful) || !job.block->has_host();
}

Status SwapEngine::submit_copy_in(Job& job) noexcept {
    Block& block = *job.block;
    if (has_no_content(job)) {
        Counters::add(parts_.counters->bytes_fresh, block.bytes());
        return set_event(job, in_);
    }
    job.copied = true;
    LIBSWAP_TRY(copy_in(job));
    const std::span<Chunk* const> chunks(job.chunks.data(), block.run().count);
    const bool verify = parts_.verify && digester_.ready();
    if (verify || digest_is_worth_it(block)) {
        // The copy's event comes first, and serves again behind the digest.
        LIBSWAP_TRY(set_event(job, in_));
        LIBSWAP_TRY(LIBSWAP_CU(driver_.cuStreamWaitEvent(check_in_, job.event, 0)));
        LIBSWAP_TRY(job.mapped ? submit_digest_in_place(job, check_in_)
                               : submit_digest(job, &job.slot, chunks, check_in_));
    }
    if (verify) LIBSWAP_TRY(submit_digest(job, &job.second_slot, block.host_chunks(), check_in_));
    return set_event(job, job.last_stream);
}

Status SwapEngine::copy_in(Job& job) noexcept {
    Block& block = *job.block;
    const std::span<Chunk* const> chunks(job.chunks.data(), block.run().count);
    const std::uint64_t bytes = kChunkBytes[block.run().size_class];
    const bool timed = parts_.copy_times->begin(cost::Direction::ToDevice);
    std::uint32_t pieces = 0;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < block.run().count; i += count, ++pieces) {
        count = neighbours(block.host_chunks(), i);
        if (!job.mapped) count = std::min(count, neighbours(chunks, i));
        LIBSWAP_TRY(LIBSWAP_CU(driver_.cuMemcpyHtoDAsync(
            job.mapped ? block.base + i * bytes : chunks[i]->alias,
            reinterpret_cast<const void*>(block.host[i]->alias), count * bytes, in_)));
    }
    if (timed) parts_.copy_times->end(block.bytes() / pieces, pieces);
    return {};
}

/// Rule 10. Who waits for this copy must not wait for operations of the program that it is not
/// ordered after: neither this copy nor one before it on its stream waits for any.
bool SwapEngine::may_map_early(Job& job) noexcept {
    return job.early && !any_waits(false) && keep_out_unexplained(job);
}

/// The remap is under way then, and the new memory is mapped. Otherwise the fetch is over, or was
/// cancelled.
bool SwapEngine::begin_mapping(Job& job) noexcept {
    return job.block->cell.begin_remap(Residency::Coming, job.generation) && map_new(job);
}

/// Within a remap, which a failure ends.
bool SwapEngine::map_new(Job& job) noexcept {
    Block& block = *job.block;
    const bool mappable = parts_.host_pool->kind() == HandlePool::Kind::Host;
    const std::span<Chunk* const> from =
        mappable ? std::span<Chunk* const>(block.host_chunks()) : std::span<Chunk* const>{};
    const std::span<Chunk* const> to(job.chunks.data(), block.run().count);
    const RemapResult result = parts_.remapper->change(block.base, from, to);
    if (result == RemapResult::Done) {
        block.device = job.chunks;
        job.chunks.fill(nullptr);
        job.mapped = true;
        return true;
    }
    job.stage = Stage::Drain;
    if (result == RemapResult::Lost) {
        lose("a mapping could not be put back");
        return false;
    }
    Counters::add(parts_.counters->restored);
    note_failure({CUDA_ERROR_UNKNOWN, "a remap"});
    block.cell.end_remap(Residency::Host);
    return false;
}

/// Mapped, and to be waited for on the device.
SwapEngine::Next SwapEngine::expect_copy(Job& job) noexcept {
    Block& block = *job.block;
    block.record_valid.store(false);
    block.reset_uses();
    block.arriving.store(job.event, std::memory_order_release);
    job.stage = Stage::FetchArrive;
    block.cell.end_remap(Residency::Resident);
    return Next::Wait;
}

/// Mapped, but not all of its copy was submitted. What was still writes there.
SwapEngine::Next SwapEngine::take_back(Job& job, const Error& why) noexcept {
    Counters::add(parts_.counters->cancels);
    note_failure(why);
    job.stage = Stage::FetchBack;
    job.event_set = false;
    return Next::Wait;
}

SwapEngine::Next SwapEngine::map_host_again(Job& job) noexcept {
    Block& block = *job.block;
    job.chunks = std::exchange(block.device, {});
    const std::span<Chunk* const> chunks(job.chunks.data(), block.run().count);
    for (int tries = 0; tries < 3; ++tries) {
        const RemapResult result = parts_.remapper->change(block.base, chunks, block.host_chunks());
        if (result == RemapResult::Lost) break;
        if (result != RemapResult::Done) continue;
        block.cell.end_remap(Residency::Host);
        return Next::Done;
    }
    lose("the host copy of a block that could not be fetched could not be mapped");
    return Next::Done;
}

SwapEngine::Next SwapEngine::arrived(Job& job) noexcept {
    if (job.stage != Stage::FetchRest) {
        if (job.stage == Stage::AheadCopy)
            note_copied_ahead(job);
        else
            note_content(job);
        job.block->arriving.store(nullptr, std::memory_order_seq_cst);
        job.stage = Stage::FetchRest;
    }
    // A launch that read the event just before is pinned: until it has gone out, the event is not
    // recorded again.
    return job.block->cell.load().pins() == 0 ? Next::Done : Next::Wait;
}

SwapEngine::Next SwapEngine::remap_in(Job& job) noexcept {
    if (!may_remap(job)) return Next::Wait;
    Block& block = *job.block;
    if (!block.cell.begin_remap(Residency::Coming, job.generation)) {
        Counters::add(parts_.counters->cancels);
        return Next::Done;
    }
    verify_copy(job);
    if (!map_new(job)) return Next::Done;
    note_content(job);
    block.reset_uses();
    block.cell.end_remap(Residency::Resident);
    return Next::Done;
}

/// What came is there.
void SwapEngine::note_content(Job& job) noexcept {
    Block& block = *job.block;
    // Without a digest of what came, what the record says of the host copy is of another time.
    block.record_valid.store(false);
    if (job.slot != Digester::kNoSlot) {
        block.record = digester_.result(job.slot);
        block.record_valid.store(block.record.known());
    }
    if (job.copied) Counters::add(parts_.counters->bytes_in, block.bytes());
    Counters::add(parts_.counters->fetches);
    failed_moves_ = 0;
    log_move(MoveKind::Fetch, job);
}

}  // namespace libswap
