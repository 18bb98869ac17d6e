// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/swap_engine.hpp"

#include <algorithm>

#include "runtime/clock.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

/// How often an event may answer with an error before the context counts as dead.
constexpr std::uint8_t kMaxEventFailures = StreamTable::kMaxQueryFailures;
/// After this many evictions in a row that found a block changed, digests are tried only now and
/// then.
constexpr std::uint32_t kDirtyBlockEvictions = 3;
constexpr std::uint32_t kDirtyRetry = 16;
/// After this many moves in a row that the driver refused, no more are tried.
constexpr std::uint32_t kMaxFailedMoves = 64;

/// `first`: its kernels go before those of the program, where the driver has that. Digests are
/// short, and the link waits for them: behind a program's long kernels it would idle.
Status make_stream(const Driver& driver, bool first, CUstream* stream) noexcept {
    int least = 0;
    int greatest = 0;
    const bool ranked = first && driver.cuStreamCreateWithPriority &&
                        driver.cuCtxGetStreamPriorityRange &&
                        LIBSWAP_CU(driver.cuCtxGetStreamPriorityRange(&least, &greatest));
    if (ranked &&
        LIBSWAP_CU(driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, greatest)))
        return {};
    return LIBSWAP_CU(driver.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
}

}  // namespace

SwapEngine::SwapEngine(const Parts& parts) noexcept
    : parts_(parts),
      driver_(*parts.driver),
      digester_(*parts.driver),
      remap_turn_(*parts.believed) {
    jobs_.reserve(kMaxJobs);
    events_.reserve(kMaxJobs);
}

Status SwapEngine::open() noexcept {
    if (is_open()) return {};
    for (CUstream* stream : {&out_, &in_, &check_out_, &check_in_}) {
        const bool checks = stream == &check_out_ || stream == &check_in_;
        const Status status = make_stream(driver_, checks, stream);
        if (status) continue;
        *stream = nullptr;
        close(false);
        return status;
    }
    parts_.copy_times->open(out_, in_);
    if (Status status = digester_.start(); !status)
        LIBSWAP_LOG(Warning,
                    "no digests ({}): every eviction copies, and nothing is double-checked",
                    error_name(status.error().code));
    return {};
}

void SwapEngine::close(bool context_gone) noexcept {
    digester_.stop(context_gone);
    parts_.copy_times->close(context_gone);
    if (!context_gone) {
        for (CUevent event : events_) LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(event));
        for (CUstream stream : {out_, in_, check_out_, check_in_})
            if (stream) LIBSWAP_CU_IGNORE(driver_.cuStreamDestroy(stream));
    }
    events_.clear();
    out_ = in_ = check_out_ = check_in_ = nullptr;
}

SwapEngine::Job& SwapEngine::add_job(Block& block, bool is_evict, bool careful,
                                     std::uint64_t after_serial) noexcept {
    Job& job = jobs_.emplace_back();
    job.block = &block;
    job.is_evict = is_evict;
    job.careful = careful;
    job.after_serial = after_serial;
    job.start_ns = now_ns();
    if (careful) parts_.gate->close();
    if (is_evict) {
        ++evictions_;
        leaving_bytes_ += block.bytes();
    }
    return job;
}

/// Until the job is over. False where one is about, or might be.
bool SwapEngine::keep_out_unexplained(Job& job) noexcept {
    if (job.holds_gate) return true;
    parts_.gate->close();
    job.holds_gate = !parts_.gate->maybe_busy(*parts_.streams);
    if (!job.holds_gate) parts_.gate->open();
    return job.holds_gate;
}

bool SwapEngine::shifts(const Job& job) const noexcept {
    return parts_.blocks->buffer_of(*job.block).shifts.load();
}

/// Launches that are believed to use other parts of the buffer may read this one: nobody sees that,
/// and for a moment there is nothing to be read. They are kept out then.
bool SwapEngine::may_remap(const Job& job) noexcept {
    return !shifts(job) || !still_mine(job) || remap_turn_.ask(*parts_.streams, now_ns());
}

Status SwapEngine::order_after(Use use, CUstream stream, bool* waits) noexcept {
    if (!use || parts_.streams->is_complete(use)) return {};
    CUevent event = parts_.streams->covering_event(use);
    Status recorded;
    if (!event && parts_.streams->may_record(use.stream())) {
        recorded = parts_.streams->record(use.stream());
        if (recorded) event = parts_.streams->covering_event(use);
    }
    if (event) {
        *waits = true;
        return LIBSWAP_CU(driver_.cuStreamWaitEvent(stream, event, 0));
    }
    if (parts_.streams->is_complete(use)) return {};
    return recorded ? fail(CUDA_ERROR_NOT_READY, "a use without an event") : recorded;
}

Status SwapEngine::order_after_users(Job& job, CUstream stream) noexcept {
    Block& block = *job.block;
    if (block.many_streams.load()) {
        for (StreamIndex i = 0; i < parts_.streams->count(); ++i)
            LIBSWAP_TRY(
                order_after(Use::make(i, parts_.streams->last_place(i)), stream, &job.waits));
        return {};
    }
    for (auto& use : block.uses) LIBSWAP_TRY(order_after(Use{use.load()}, stream, &job.waits));
    return {};
}

bool SwapEngine::digest_is_worth_it(const Block& block) const noexcept {
    if (!digester_.ready()) return false;
    return block.dirty_evictions < kDirtyBlockEvictions || block.dirty_evictions % kDirtyRetry == 0;
}

Status SwapEngine::begin_digest(Job& job, std::uint32_t* slot, CUstream stream) noexcept {
    if (*slot == Digester::kNoSlot) *slot = digester_.take_slot();
    if (*slot == Digester::kNoSlot) return fail(CUDA_ERROR_NOT_READY, "digest slots");
    job.event_set = false;
    job.last_stream = stream;
    return {};
}

/// By the chunks' aliases.
Status SwapEngine::submit_digest(Job& job, std::uint32_t* slot, std::span<Chunk* const> chunks,
                                 CUstream stream) noexcept {
    LIBSWAP_TRY(begin_digest(job, slot, stream));
    const std::uint64_t bytes = kChunkBytes[chunks[0]->size_class];
    const std::uint64_t low = parts_.space->low();
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < chunks.size(); i += count) {
        count = neighbours(chunks, i);
        LIBSWAP_TRY(digester_.add(*slot, chunks[i]->alias, count * bytes, i * bytes / 8, low,
                                  parts_.space->high() - low, i + count == chunks.size(), stream));
    }
    return {};
}

/// Of a block that is at its own address, in one piece.
Status SwapEngine::submit_digest_in_place(Job& job, CUstream stream) noexcept {
    LIBSWAP_TRY(begin_digest(job, &job.slot, stream));
    const std::uint64_t low = parts_.space->low();
    return digester_.add(job.slot, job.block->base, job.block->bytes(), 0, low,
                         parts_.space->high() - low, true, stream);
}

Status SwapEngine::set_event(Job& job, CUstream stream) noexcept {
    if (!job.event) {
        if (!events_.empty()) {
            job.event = events_.back();
            events_.pop_back();
        } else {
            LIBSWAP_TRY(LIBSWAP_CU(driver_.cuEventCreate(&job.event, CU_EVENT_DISABLE_TIMING)));
        }
    }
    LIBSWAP_TRY(LIBSWAP_CU(driver_.cuEventRecord(job.event, stream)));
    job.event_set = true;
    return {};
}

bool SwapEngine::event_done(Job& job, bool* failed) noexcept {
    *failed = false;
    if (!job.event_set && !set_event(job, job.last_stream)) {
        *failed = ++job.failures >= kMaxEventFailures;
        return false;
    }
    const CUresult code = driver_.cuEventQuery(job.event);
    if (code == CUDA_SUCCESS) return true;
    if (code != CUDA_ERROR_NOT_READY) *failed = ++job.failures >= kMaxEventFailures;
    return false;
}

bool SwapEngine::still_mine(const Job& job) const noexcept {
    const ResidencyWord word = job.block->cell.load();
    return word.generation() == job.generation &&
           word.state() == (job.is_evict ? Residency::Leaving : Residency::Coming);
}

void SwapEngine::verify_copy(Job& job) noexcept {
    if (!parts_.verify || !job.copied || job.slot == Digester::kNoSlot ||
        job.second_slot == Digester::kNoSlot)
        return;
    Counters::add(parts_.counters->verified);
    if (!(digester_.result(job.slot) == digester_.result(job.second_slot)))
        lose("a block and its copy have different digests");
}

SwapEngine::Next SwapEngine::give_up(Job& job, const Error& why) noexcept {
    job.block->cell.cancel(job.is_evict ? Residency::Leaving : Residency::Coming, job.generation,
                           job.is_evict ? Residency::Resident : Residency::Host);
    Counters::add(parts_.counters->cancels);
    note_failure(why);
    job.stage = Stage::Drain;
    // What was submitted before the failure still reads and writes the block's memory.
    job.event_set = false;
    return Next::Wait;
}

SwapEngine::Next SwapEngine::advance(Job& job) noexcept {
    if (job.stage == Stage::EvictQuiet || job.stage == Stage::FetchQuiet) {
        if (!still_mine(job)) return Next::Done;
        if (!parts_.gate->quiet(*parts_.streams)) return Next::Wait;
        return job.is_evict ? begin_evict_work(job) : begin_fetch_work(job);
    }
    if (job.stage == Stage::EvictMap) return Next::Wait;
    if (job.stage == Stage::FetchRest) return arrived(job);
    bool failed = false;
    if (!event_done(job, &failed)) {
        if (!failed) return Next::Wait;
        lose("the device does not answer any more");
        return Next::Done;
    }
    switch (job.stage) {
        case Stage::EvictDigest:
            return after_digest(job);
        case Stage::EvictCopy:
            return remap_out(job);
        case Stage::EvictGuard:
            return after_guard(job);
        case Stage::FetchCopy:
            return remap_in(job);
        case Stage::FetchBack:
            return map_host_again(job);
        case Stage::AheadDigest:
            return begin_ahead_copy(job);
        case Stage::FetchArrive:
        case Stage::AheadCopy:
            return arrived(job);
        default:
            return Next::Done;
    }
}

void SwapEngine::finish(Job& job) noexcept {
    Block& block = *job.block;
    if (job.event) events_.push_back(job.event);
    digester_.give_slot(job.slot);
    digester_.give_slot(job.second_slot);
    if (!job.is_evict)
        parts_.device_pool->give_back(
            std::span<Chunk* const>(job.chunks.data(), block.run().count));
    if (job.is_evict) {
        --evictions_;
        if (!job.left) leaving_bytes_ -= block.bytes();
    }
    if (job.careful) parts_.gate->open();
    if (job.holds_gate) parts_.gate->open();
    block.busy.store(false);
}

bool SwapEngine::step() noexcept {
    if (!parts_.streams->answered()) lose("the device does not say what is done any more");
    // What an operation waits for goes first: each remap takes its time.
    bool changed = advance_jobs(true);
    changed |= advance_jobs(false);
    remap_turn_.end_step(now_ns());
    return changed;
}

bool SwapEngine::advance_jobs(bool wanted) noexcept {
    bool changed = false;
    for (std::size_t i = 0; i < jobs_.size();) {
        if ((jobs_[i].block->wanted.load(std::memory_order_relaxed) != 0) != wanted) {
            ++i;
            continue;
        }
        const Stage before = jobs_[i].stage;
        const Next next = advance(jobs_[i]);
        if (next != Next::Done) {
            changed |= jobs_[i].stage != before && jobs_[i].stage != Stage::Drain;
            ++i;
            continue;
        }
        finish(jobs_[i]);
        // That a move was given up brings nobody further.
        changed |= before != Stage::Drain;
        // Order matters to who waits longest: keep it.
        jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return changed;
}

void SwapEngine::abandon_all() noexcept {
    for (Job& job : jobs_) {
        job.event = nullptr;
        // Nobody may use what is in no certain place, and nobody waits for it: the remap bit stays.
        if (job.handed) (void)job.block->cell.begin_remap(Residency::HandedOver, job.generation);
        finish(job);
    }
    jobs_.clear();
    remap_turn_.give_up(now_ns());
}

bool SwapEngine::take_guard_hit() noexcept { return std::exchange(guard_hit_, false); }

void SwapEngine::log_move(MoveKind kind, const Job& job) noexcept {
    if (!parts_.log) return;
    parts_.log->move(kind, job.block->id.load(), job.block->bytes(), job.after_serial, job.start_ns,
                     now_ns());
}

void SwapEngine::check_device() noexcept {
    switch (driver_.cuStreamQuery(out_)) {
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
            lose("the device does not answer any more");
            break;
        default:
            break;
    }
}

void SwapEngine::note_failure(const Error& why) noexcept {
    // Nobody refused: what it needs, all of ours, is in use until something under way is done.
    if (why.code == CUDA_ERROR_NOT_READY) return;
    if (++failed_moves_ < kMaxFailedMoves || gave_up_.exchange(true)) return;
    LIBSWAP_LOG(
        Warning,
        "the driver refused {} moves in a row, the last by {} ({}); nothing moves from now on",
        kMaxFailedMoves, call_name(why.what), error_name(why.code));
}

void SwapEngine::stop_moving(const Error& why) noexcept {
    if (gave_up_.exchange(true)) return;
    LIBSWAP_LOG(Warning, "{} failed ({}); nothing moves from now on", call_name(why.what),
                error_name(why.code));
}

void SwapEngine::lose(const char* what) noexcept {
    if (lost_.exchange(true)) return;
    LIBSWAP_LOG(Error, "{}; nothing is swapped from now on", what);
}

}  // namespace libswap
