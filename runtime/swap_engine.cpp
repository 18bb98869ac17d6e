// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/swap_engine.hpp"

#include <algorithm>

#include "runtime/clock.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr std::size_t kMaxJobs = 256;
/// How often an event may answer with an error before the context counts as dead.
constexpr std::uint8_t kMaxEventFailures = 50;
/// After this many evictions in a row that found a block changed, digests are tried only now and
/// then.
constexpr std::uint32_t kDirtyBlockEvictions = 3;
constexpr std::uint32_t kDirtyRetry = 16;
/// After this many moves in a row that the driver refused, no more are tried.
constexpr std::uint32_t kMaxFailedMoves = 64;

}  // namespace

void Gate::note(Use use) noexcept {
    auto& place = use.stream() < places_.size() ? places_[use.stream()] : overflow_;
    std::uint64_t old = place.load(std::memory_order_relaxed);
    while (old < use.raw && !place.compare_exchange_weak(old, use.raw, std::memory_order_seq_cst)) {
    }
}

bool Gate::quiet(StreamTable& streams) noexcept {
    if (pending_.load(std::memory_order_seq_cst) != 0) return false;
    const std::size_t count = std::min<std::size_t>(streams.count(), places_.size());
    for (std::size_t i = 0; i <= count; ++i) {
        const Use use{i < count ? places_[i].load() : overflow_.load()};
        if (!use || streams.known_complete(use)) continue;
        if (!streams.is_covered(use) && streams.may_record(use.stream()))
            (void)streams.record(use.stream());
        if (!streams.is_complete(use)) return false;
    }
    return true;
}

bool Gate::maybe_busy(const StreamTable& streams) const noexcept {
    if (pending_.load(std::memory_order_seq_cst) != 0) return true;
    const std::size_t count = std::min<std::size_t>(streams.count(), places_.size());
    for (std::size_t i = 0; i < count; ++i)
        if (!streams.known_complete(Use{places_[i].load()})) return true;
    return !streams.known_complete(Use{overflow_.load()});
}

SwapEngine::SwapEngine(const Parts& parts) noexcept
    : parts_(parts), driver_(*parts.driver), digester_(*parts.driver) {
    jobs_.reserve(kMaxJobs);
    events_.reserve(kMaxJobs);
}

Status SwapEngine::open() noexcept {
    for (CUstream* stream : {&out_, &in_, &check_out_, &check_in_}) {
        const Status status = LIBSWAP_CU(driver_.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
        if (status) continue;
        *stream = nullptr;
        close(false);
        return status;
    }
    if (Status status = digester_.start(); !status)
        LIBSWAP_LOG(Warning,
                    "no digests ({}): every eviction copies, and nothing is double-checked",
                    error_name(status.error().code));
    return {};
}

void SwapEngine::close(bool context_gone) noexcept {
    digester_.stop(context_gone);
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
        !parts_.host_pool->take_or_grow(block.run.size_class, block.host_chunks())) {
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
    return Start::Started;
}

SwapEngine::Start SwapEngine::fetch(Block& block, Way way, std::uint64_t after_serial) noexcept {
    if (gave_up()) return Start::Failed;
    if (jobs_.size() == kMaxJobs || lost() || block.busy.load()) return Start::NotNow;
    const ResidencyWord word = block.cell.load();
    if (word.state() != Residency::Host || word.pins() != 0) return Start::NotNow;
    block.busy.store(true);
    std::array<Chunk*, kMaxChunksPerBlock> chunks{};
    const std::span<Chunk*> wanted(chunks.data(), block.run.count);
    const bool taken = parts_.device_pool->take_or_grow(block.run.size_class, wanted);
    if (!taken) chunks.fill(nullptr);
    const bool may_hand_over = way == Way::HandOver && !parts_.verify &&
                               parts_.host_pool->kind() == HandlePool::Kind::Host;
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
    job.hand_over = may_hand_over;
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
    return Start::Started;
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
               job.block->run.size_class == block.run.size_class &&
               job.block->run.count == block.run.count && still_mine(job);
    });
    return static_cast<std::size_t>(found - jobs_.begin());
}

/// Until the job is over. False where one is about, or might be.
bool SwapEngine::keep_out_unexplained(Job& job) noexcept {
    if (job.holds_gate) return true;
    parts_.gate->close();
    job.holds_gate = !parts_.gate->maybe_busy(*parts_.streams);
    if (!job.holds_gate) parts_.gate->open();
    return job.holds_gate;
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

bool SwapEngine::order_after(Use use, CUstream stream, bool* waits) noexcept {
    if (!use || parts_.streams->is_complete(use)) return true;
    CUevent event = parts_.streams->covering_event(use);
    if (!event && parts_.streams->may_record(use.stream()) && parts_.streams->record(use.stream()))
        event = parts_.streams->covering_event(use);
    if (!event) return parts_.streams->is_complete(use);
    *waits = true;
    return LIBSWAP_CU(driver_.cuStreamWaitEvent(stream, event, 0)).has_value();
}

bool SwapEngine::order_after_users(Job& job, CUstream stream) noexcept {
    Block& block = *job.block;
    if (block.many_streams.load()) {
        for (StreamIndex i = 0; i < parts_.streams->count(); ++i)
            if (!order_after(Use::make(i, parts_.streams->last_place(i)), stream, &job.waits))
                return false;
        return true;
    }
    for (auto& use : block.uses)
        if (!order_after(Use{use.load()}, stream, &job.waits)) return false;
    return true;
}

bool SwapEngine::digest_is_worth_it(const Block& block) const noexcept {
    if (!digester_.ready()) return false;
    return block.dirty_evictions < kDirtyBlockEvictions || block.dirty_evictions % kDirtyRetry == 0;
}

Status SwapEngine::submit_digest(Job& job, std::uint32_t* slot, std::span<Chunk* const> chunks,
                                 CUstream stream) noexcept {
    if (*slot == Digester::kNoSlot) *slot = digester_.take_slot();
    if (*slot == Digester::kNoSlot) return fail(CUDA_ERROR_NOT_READY, "digest slots");
    job.event_set = false;
    job.last_stream = stream;
    const std::uint64_t bytes = kChunkBytes[chunks[0]->size_class];
    const std::uint64_t low = parts_.space->low();
    for (std::size_t i = 0; i < chunks.size(); ++i)
        LIBSWAP_TRY(digester_.add(*slot, chunks[i]->alias, bytes, i * bytes / 8, low,
                                  parts_.space->high() - low, i + 1 == chunks.size(), stream));
    return {};
}

Status SwapEngine::submit_copy_out(Job& job) noexcept {
    Block& block = *job.block;
    // From here on the host copy may be anything (rule 7).
    block.record_valid.store(false);
    job.event_set = false;
    job.copied = true;
    job.last_stream = out_;
    const bool verify = parts_.verify && digester_.ready();
    if (verify) LIBSWAP_TRY(submit_digest(job, &job.slot, block.device_chunks(), out_));
    for (std::uint32_t i = 0; i < block.run.count; ++i)
        LIBSWAP_TRY(LIBSWAP_CU(driver_.cuMemcpyDtoHAsync(
            reinterpret_cast<void*>(block.host[i]->alias), block.device[i]->alias,
            kChunkBytes[block.run.size_class], out_)));
    if (verify) LIBSWAP_TRY(submit_digest(job, &job.second_slot, block.host_chunks(), out_));
    return set_event(job, out_);
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

SwapEngine::Next SwapEngine::begin_evict_work(Job& job) noexcept {
    Block& block = *job.block;
    job.event_set = false;
    // Without digests the closed gate has to do.
    const bool digest_first = digester_.ready() && (job.careful || block.record_valid.load());
    job.last_stream = digest_first ? check_out_ : out_;
    if (!order_after_users(job, job.last_stream)) return give_up(job);
    if (block.fresh.load() && !job.careful) {
        Counters::add(parts_.counters->bytes_fresh, block.bytes());
        block.record_valid.store(false);
        job.stage = Stage::EvictCopy;
        return set_event(job, job.last_stream) ? Next::Wait : give_up(job);
    }
    if (digest_first) {
        if (!submit_digest(job, &job.slot, block.device_chunks(), check_out_)) return give_up(job);
        (void)set_event(job, check_out_);
        job.stage = Stage::EvictDigest;
        return Next::Wait;
    }
    if (!submit_copy_out(job)) return give_up(job);
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
    if (!submit_copy_out(job)) return give_up(job);
    job.stage = Stage::EvictCopy;
    return Next::Wait;
}

void SwapEngine::verify_copy(Job& job) noexcept {
    if (!parts_.verify || !job.copied || job.slot == Digester::kNoSlot ||
        job.second_slot == Digester::kNoSlot)
        return;
    Counters::add(parts_.counters->verified);
    if (!(digester_.result(job.slot) == digester_.result(job.second_slot)))
        lose("a block and its copy have different digests");
}

SwapEngine::Next SwapEngine::remap_out(Job& job) noexcept {
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
    const bool map_now = mappable && job.careful;
    const std::span<Chunk* const> to =
        map_now ? std::span<Chunk* const>(block.host_chunks()) : std::span<Chunk* const>{};
    switch (parts_.remapper->change(block.base, block.device_chunks(), to)) {
        case RemapResult::Done:
            break;
        case RemapResult::Restored:
            Counters::add(parts_.counters->restored);
            note_failure();
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
    if (!job.careful && parts_.host_pool->kind() == HandlePool::Kind::Host) {
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

SwapEngine::Next SwapEngine::begin_fetch_work(Job& job) noexcept {
    Block& block = *job.block;
    job.event_set = false;
    job.stage = Stage::FetchCopy;
    job.last_stream = in_;
    if (!order_after_users(job, in_)) return give_up(job);
    const std::span<Chunk* const> chunks(job.chunks.data(), block.run.count);
    // Without a host copy there is no content: it never left, nor was it written on the host.
    if ((block.fresh.load() && !job.careful) || !block.has_host()) {
        Counters::add(parts_.counters->bytes_fresh, block.bytes());
        return set_event(job, in_) ? map_early(job) : give_up(job);
    }
    job.copied = true;
    for (std::uint32_t i = 0; i < block.run.count; ++i)
        if (!LIBSWAP_CU(driver_.cuMemcpyHtoDAsync(
                chunks[i]->alias, reinterpret_cast<const void*>(block.host[i]->alias),
                kChunkBytes[block.run.size_class], in_)))
            return give_up(job);
    const bool verify = parts_.verify && digester_.ready();
    if (verify || digest_is_worth_it(block)) {
        // The copy's event comes first, and serves again behind the digest.
        if (!set_event(job, in_) || !follow(job, check_in_)) return give_up(job);
        if (!submit_digest(job, &job.slot, chunks, check_in_)) return give_up(job);
    }
    if (verify && !submit_digest(job, &job.second_slot, block.host_chunks(), check_in_))
        return give_up(job);
    return set_event(job, job.last_stream) ? map_early(job) : give_up(job);
}

/// Rule 10. Who waits for this copy must not wait for operations of the program that it is not
/// ordered after: neither this copy nor one before it on its stream waits for any.
SwapEngine::Next SwapEngine::map_early(Job& job) noexcept {
    Block& block = *job.block;
    if (!job.hand_over || any_waits(false) || !keep_out_unexplained(job)) return Next::Wait;
    if (!block.cell.begin_remap(Residency::Coming, job.generation)) return Next::Wait;
    const std::span<Chunk* const> to(job.chunks.data(), block.run.count);
    switch (parts_.remapper->change(block.base, block.host_chunks(), to)) {
        case RemapResult::Done:
            break;
        case RemapResult::Restored:
            Counters::add(parts_.counters->restored);
            note_failure();
            block.cell.end_remap(Residency::Host);
            job.stage = Stage::Drain;
            return Next::Wait;
        case RemapResult::Lost:
            lose("a mapping could not be put back");
            job.stage = Stage::Drain;
            return Next::Wait;
    }
    block.device = job.chunks;
    job.chunks.fill(nullptr);
    block.record_valid.store(false);
    block.reset_uses();
    block.arriving.store(job.event, std::memory_order_release);
    job.stage = Stage::FetchArrive;
    block.cell.end_remap(Residency::Resident);
    return Next::Wait;
}

SwapEngine::Next SwapEngine::arrived(Job& job) noexcept {
    if (job.stage == Stage::FetchArrive) {
        note_content(job);
        job.block->arriving.store(nullptr, std::memory_order_seq_cst);
        job.stage = Stage::FetchRest;
    }
    // A launch that read the event just before is pinned: until it has gone out, the event is not
    // recorded again.
    return job.block->cell.load().pins() == 0 ? Next::Done : Next::Wait;
}

bool SwapEngine::follow(const Job& job, CUstream stream) noexcept {
    return LIBSWAP_CU(driver_.cuStreamWaitEvent(stream, job.event, 0)).has_value();
}

SwapEngine::Next SwapEngine::remap_in(Job& job) noexcept {
    Block& block = *job.block;
    if (!block.cell.begin_remap(Residency::Coming, job.generation)) {
        Counters::add(parts_.counters->cancels);
        return Next::Done;
    }
    verify_copy(job);
    const bool mappable = parts_.host_pool->kind() == HandlePool::Kind::Host;
    const std::span<Chunk* const> from =
        mappable ? std::span<Chunk* const>(block.host_chunks()) : std::span<Chunk* const>{};
    const std::span<Chunk* const> to(job.chunks.data(), block.run.count);
    switch (parts_.remapper->change(block.base, from, to)) {
        case RemapResult::Done:
            break;
        case RemapResult::Restored:
            Counters::add(parts_.counters->restored);
            note_failure();
            block.cell.end_remap(Residency::Host);
            return Next::Done;
        case RemapResult::Lost:
            lose("a mapping could not be put back");
            return Next::Done;
    }
    block.device = job.chunks;
    job.chunks.fill(nullptr);
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

SwapEngine::Next SwapEngine::give_up(Job& job) noexcept {
    job.block->cell.cancel(job.is_evict ? Residency::Leaving : Residency::Coming, job.generation,
                           job.is_evict ? Residency::Resident : Residency::Host);
    Counters::add(parts_.counters->cancels);
    note_failure();
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
        case Stage::FetchArrive:
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
        parts_.device_pool->give_back(std::span<Chunk* const>(job.chunks.data(), block.run.count));
    if (job.is_evict) {
        --evictions_;
        if (!job.left) leaving_bytes_ -= block.bytes();
    }
    if (job.careful) parts_.gate->open();
    if (job.holds_gate) parts_.gate->open();
    block.busy.store(false);
}

bool SwapEngine::step() noexcept {
    // What an operation waits for goes first: each remap takes its time.
    bool changed = advance_jobs(true);
    changed |= advance_jobs(false);
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
            changed |= jobs_[i].stage != before;
            ++i;
            continue;
        }
        finish(jobs_[i]);
        // Order matters to who waits longest: keep it.
        jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
        changed = true;
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

void SwapEngine::note_failure() noexcept {
    if (++failed_moves_ < kMaxFailedMoves || gave_up_.exchange(true)) return;
    LIBSWAP_LOG(Warning, "the driver refused {} moves in a row; nothing moves from now on",
                kMaxFailedMoves);
}

void SwapEngine::lose(const char* what) noexcept {
    if (lost_.exchange(true)) return;
    LIBSWAP_LOG(Error, "{}; nothing is swapped from now on", what);
}

}  // namespace libswap
