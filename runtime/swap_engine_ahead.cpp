// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Copies in advance: a resident block is copied to the host and stays. If it is unchanged when it
// leaves, it leaves without a copy.
//
//   resident, users complete -> digest -> no use since, no pins: (remap bit) copy out -> being
//   copied -> there
//
// Whoever uses the block while it is copied waits for that on the device (rule 10), so what the
// digest says is what the host has. The digest comes first: a write that nobody announced, behind
// it or during the copy, leaves another digest, and the eviction copies again.

#include <algorithm>

#include "runtime/swap_engine.hpp"

namespace libswap {
namespace {

/// One has the link, the next is ready for it.
constexpr std::size_t kMostCopyingAhead = 2;
/// A digest may have to wait for a long kernel.
constexpr std::ptrdiff_t kMostDigestsAhead = 6;

}  // namespace

/// No operation that names the block is under way, as far as events tell, which are recorded here
/// where there are none.
bool SwapEngine::users_done(const Block& block) noexcept {
    if (block.many_streams.load()) return false;
    bool done = true;
    for (const auto& raw : block.uses) {
        const Use use{raw.load()};
        if (use) done &= parts_.streams->look(use);
    }
    return done;
}

std::array<std::uint64_t, kUsesPerBlock> SwapEngine::uses_of(const Block& block) noexcept {
    std::array<std::uint64_t, kUsesPerBlock> uses{};
    for (std::size_t i = 0; i < uses.size(); ++i) uses[i] = block.uses[i].load();
    return uses;
}

SwapEngine::Start SwapEngine::copy_ahead(Block& block, std::uint64_t after_serial) noexcept {
    if (gave_up() || !digester_.ready()) return Start::Failed;
    if (jobs_.size() == kMaxJobs || lost() || block.busy.load()) return Start::NotNow;
    const auto uses = uses_of(block);
    if (block.cell.load().pins() != 0 || !users_done(block)) return Start::NotNow;
    block.busy.store(true);
    // Freed before it was busy: its chunks are somebody else's.
    if (block.cell.load().state() != Residency::Resident || block.fresh.load()) {
        block.busy.store(false);
        return Start::Failed;
    }
    if (!block.has_host() &&
        !parts_.host_pool->take_or_grow(block.run().size_class, block.host_chunks())) {
        block.busy.store(false);
        return Start::NoHostMemory;
    }
    Job& job = add_job(block, false, false, after_serial);
    job.uses = uses;
    job.stage = Stage::AheadDigest;
    if (Status added = submit_digest_in_place(job, check_out_); !added) {
        (void)stop_ahead(job, added.error());
        return Start::NotNow;
    }
    (void)set_event(job, check_out_);
    return Start::Started;
}

/// What was submitted reads memory that may be written now; nobody trusts what it read.
SwapEngine::Next SwapEngine::stop_ahead(Job& job, const Error& why) noexcept {
    Counters::add(parts_.counters->cancels);
    note_failure(why);
    job.event_set = false;
    job.stage = Stage::Drain;
    return Next::Wait;
}

/// The digest is there.
SwapEngine::Next SwapEngine::begin_ahead_copy(Job& job) noexcept {
    Block& block = *job.block;
    if (job.cancelled || block.cell.load().state() != Residency::Resident) return Next::Done;
    // Operations on the block wait as long as the copies before its own take.
    // Nor do they wait for operations of the program that they are not ordered after.
    if (copying_ahead() >= kMostCopyingAhead || any_waits(true)) return Next::Wait;
    if (!block.cell.begin_evict(&job.generation) ||
        !block.cell.begin_remap(Residency::Leaving, job.generation))
        return Next::Wait;
    // Nobody may pin from here on, and who did so before has published its use.
    if (block.many_streams.load() || uses_of(block) != job.uses) {
        block.cell.end_remap(Residency::Resident);
        return Next::Done;
    }
    block.record_valid.store(false);
    job.copied = true;
    job.last_stream = out_;
    job.event_set = false;
    Status submitted = copy_out(block);
    if (submitted) submitted = set_event(job, out_);
    if (submitted) {
        block.arriving.store(job.event, std::memory_order_release);
        job.stage = Stage::AheadCopy;
    } else {
        (void)stop_ahead(job, submitted.error());
    }
    block.cell.end_remap(Residency::Resident);
    return Next::Wait;
}

/// The host has the content of the record. What comes after it is compared with that.
void SwapEngine::note_copied_ahead(Job& job) noexcept {
    Block& block = *job.block;
    block.record = digester_.result(job.slot);
    block.record_valid.store(block.record.known());
    Counters::add(parts_.counters->bytes_out, block.bytes());
    Counters::add(parts_.counters->copies_ahead);
    failed_moves_ = 0;
    log_move(MoveKind::CopyAhead, job);
}

std::size_t SwapEngine::copying_out() const noexcept {
    return static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), [](const Job& job) {
        return job.stage == Stage::EvictCopy && job.copied;
    }));
}

std::size_t SwapEngine::copying_ahead() const noexcept {
    return static_cast<std::size_t>(std::count_if(
        jobs_.begin(), jobs_.end(), [](const Job& job) { return job.stage == Stage::AheadCopy; }));
}

bool SwapEngine::may_copy_ahead() const noexcept {
    return std::count_if(jobs_.begin(), jobs_.end(), [](const Job& job) {
               return job.stage == Stage::AheadDigest;
           }) < kMostDigestsAhead;
}

bool SwapEngine::end_copy_ahead(const Block& block) noexcept {
    if (!block.busy.load()) return true;
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) {
        return job.block == &block &&
               (job.stage == Stage::AheadDigest || job.stage == Stage::AheadCopy ||
                job.stage == Stage::FetchRest);
    });
    if (found == jobs_.end()) return true;
    found->cancelled = true;
    return false;
}

}  // namespace libswap
