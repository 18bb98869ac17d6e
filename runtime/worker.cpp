// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/worker.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "runtime/blocked_signals.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr std::uint32_t kMaxFetchFailures = 8;
constexpr int kContextTries = 3;
constexpr int kOpenTries = 3;
/// Evictions and fetches under way at once: enough to keep both directions of the link busy.
constexpr std::size_t kMaxUnderWay = 64;
/// Rounds in which enough memory lay ready and nobody could have it, until they are told so.
constexpr std::uint32_t kMostUnservedRounds = 8;
/// Rounds without any change until the device is asked whether it still lives.
constexpr std::uint32_t kLookEvery = 256;
/// Blocks of buffers that are used in parts: evictions that are checked by a second digest.
constexpr std::uint32_t kCheckedEvictions = 2;
constexpr std::uint32_t kCheckEveryEviction = 16;
constexpr auto kShortSleep = std::chrono::microseconds(20);
constexpr auto kLongSleep = std::chrono::microseconds(200);

}  // namespace

Worker::Worker(const Driver& driver, SwapEngine::Parts parts, Host host)
    : driver_(driver), parts_(parts), host_(std::move(host)), swap_(parts) {
    inbox_.reserve(1024);
    batch_.reserve(1024);
    demands_.reserve(1024);
}

void Worker::start(CUcontext context) noexcept {
    context_ = context;
    stopping_ = false;
    running_ = true;
}

void Worker::start_thread() noexcept {
    std::lock_guard lock(thread_mutex_);
    if (has_thread_ || !running_) return;
    host_.thread_starts();
    const BlockedSignals blocked;
    try {
        thread_ = std::thread([this] { run(); });
        has_thread_.store(true, std::memory_order_release);
    } catch (const std::system_error&) {
        running_ = false;
        LIBSWAP_LOG(Warning, "no thread to be had: nothing moves from now on");
    }
}

void Worker::stop(bool context_gone) {
    std::lock_guard lock(thread_mutex_);
    if (!running_.exchange(false)) return;
    stopping_ = true;
    if (has_thread_) {
        kick();
        thread_.join();
        has_thread_ = false;
    }
    swap_.close(context_gone);
}

void Worker::park() noexcept {
    if (!has_thread_.load(std::memory_order_acquire)) return;
    parking_ = true;
    kick();
    for (int tries = 0; tries < 100 && !parked_; ++tries)
        std::this_thread::sleep_for(std::chrono::microseconds(500));
}

void Worker::want(BlockIndex block, std::uint64_t serial) noexcept {
    ensure_thread();
    {
        std::lock_guard lock(inbox_mutex_);
        Request& request = inbox_.emplace_back();
        request.block = block;
        request.serial = serial;
    }
    inbox_signal_.notify_one();
}

void Worker::want_memory(std::uint64_t ticket, ChunkClass size_class, std::uint32_t count,
                         bool patient) noexcept {
    ensure_thread();
    {
        std::lock_guard lock(inbox_mutex_);
        Request& request = inbox_.emplace_back();
        request.kind = Request::Kind::Memory;
        request.run = {size_class, count};
        request.patient = patient;
        request.serial = ticket;
    }
    inbox_signal_.notify_one();
}

void Worker::end_want(std::uint64_t ticket) noexcept {
    {
        std::lock_guard lock(inbox_mutex_);
        Request& request = inbox_.emplace_back();
        request.kind = Request::Kind::Taken;
        request.serial = ticket;
    }
    inbox_signal_.notify_one();
}

void Worker::give_commands(std::span<const SwapCommand> commands) noexcept {
    ensure_thread();
    {
        std::lock_guard lock(inbox_mutex_);
        for (const SwapCommand& command : commands) {
            Request& request = inbox_.emplace_back();
            request.kind = Request::Kind::Command;
            request.command = command;
        }
    }
    inbox_signal_.notify_one();
}

void Worker::kick() noexcept {
    if (!has_thread_.load(std::memory_order_acquire)) return;
    {
        std::lock_guard lock(inbox_mutex_);
        kicked_ = true;
    }
    inbox_signal_.notify_one();
}

void Worker::note_progress() noexcept {
    progress_.fetch_add(1, std::memory_order_acq_rel);
    if (progress_waiters_.load(std::memory_order_seq_cst) == 0) return;
    std::lock_guard lock(progress_mutex_);
    progress_signal_.notify_all();
}

void Worker::wait_progress(std::uint32_t seen, std::uint64_t timeout_us) noexcept {
    progress_waiters_.fetch_add(1, std::memory_order_seq_cst);
    {
        std::unique_lock lock(progress_mutex_);
        progress_signal_.wait_for(lock, std::chrono::microseconds(timeout_us),
                                  [&] { return progress() != seen; });
    }
    progress_waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

bool Worker::enter_context() noexcept {
    for (int tries = 0; tries < kContextTries; ++tries)
        if (LIBSWAP_CU(driver_.cuCtxSetCurrent(context_))) return true;
    return false;
}

void Worker::open_engine() noexcept {
    Status opened;
    for (int tries = 0; tries < kOpenTries; ++tries)
        if (opened = swap_.open(); opened) return;
    swap_.stop_moving(opened.error());
}

void Worker::run() {
    prctl(PR_SET_NAME, "libswap", 0, 0, 0);
    if (!enter_context()) swap_.lose("the context cannot be entered");
    // Our calls must not end a capture that another thread has open.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    LIBSWAP_CU_IGNORE(driver_.cuThreadExchangeStreamCaptureMode(&mode));
    while (!stopping_ && !parking_ && !host_.may_begin()) std::this_thread::sleep_for(kShortSleep);
    if (!stopping_ && !parking_) open_engine();
    while (!stopping_ || swap_.jobs() != 0) {
        if (parking_) {
            parked_ = true;
            for (;;) pause();
        }
        drain_inbox();
        bool changed = swap_.step();
        if (swap_.take_guard_hit()) host_.guard_hit();
        needed_bytes_ = 0;
        changed |= serve_demands();
        if (!host_.capturing() && !stopping_) {
            if (calm_.load(std::memory_order_relaxed) == 0) {
                changed |= serve_commands();
                changed |= serve_fetches();
            }
            changed |= make_room();
        }
        changed |= swap_.map_one();
        if (changed) note_progress();
        if (swap_.lost()) {
            // Nobody may wait for what will not come.
            for (Demand& demand : demands_) refuse(demand);
            demands_.clear();
            refuse_memory();
            commands_.clear();
            due_fetches_.clear();
            swap_.abandon_all();
            note_progress();
        }
        idle(changed);
    }
}

void Worker::drain_inbox() {
    {
        std::lock_guard lock(inbox_mutex_);
        batch_.swap(inbox_);
        kicked_ = false;
    }
    for (const Request& request : batch_) {
        switch (request.kind) {
            case Request::Kind::Block: {
                Block& block = parts_.blocks->block(request.block);
                const bool known = std::any_of(
                    demands_.begin(), demands_.end(),
                    [&](const Demand& demand) { return demand.block == request.block; });
                if (!known) demands_.push_back({request.block, block.id.load(), request.serial, 0});
                break;
            }
            case Request::Kind::Memory:
                std::erase_if(memory_wanted_, [&](const MemoryDemand& demand) {
                    return demand.ticket == request.serial;
                });
                memory_wanted_.push_back({request.run, request.serial, request.patient});
                break;
            case Request::Kind::Taken:
                std::erase_if(memory_wanted_, [&](const MemoryDemand& demand) {
                    return demand.ticket == request.serial;
                });
                break;
            case Request::Kind::Command:
                add_command(request.command);
                break;
        }
    }
    batch_.clear();
}

void Worker::add_command(const SwapCommand& command) {
    // Fetches are given out ahead of the evictions that are due before them.
    auto place = commands_.end();
    while (place != commands_.begin() && std::prev(place)->after_serial > command.after_serial &&
           std::prev(place)->run == command.run)
        --place;
    commands_.insert(place, command);
}

void Worker::refuse(Demand& demand) {
    Block& block = parts_.blocks->block(demand.block);
    block.refused.store(true);
    note_progress();
}

void Worker::refuse_ticket(std::uint64_t ticket) noexcept {
    if (ticket > refused_ticket_.load(std::memory_order_relaxed))
        refused_ticket_.store(ticket, std::memory_order_release);
}

void Worker::refuse_memory() noexcept {
    for (const MemoryDemand& demand : memory_wanted_) refuse_ticket(demand.ticket);
    memory_wanted_.clear();
}

bool Worker::serve_demands() {
    bool changed = false;
    std::erase_if(demands_, [&](Demand& demand) {
        Block& block = parts_.blocks->block(demand.block);
        const ResidencyWord word = block.cell.load();
        if (block.id.load() != demand.id || word.state() == Residency::Free) return true;
        if (word.remapping() || word.state() == Residency::Coming ||
            word.state() == Residency::HandedOver)
            return false;
        if (word.state() == Residency::Resident || word.state() == Residency::Leaving) return true;
        if (block.wanted.load() == 0) return true;  // nobody waits any more
        if (host_.capturing()) {
            refuse(demand);
            return true;
        }
        // The plan brings it when there is room. Earlier it would take the place of what is needed
        // before it.
        if (planned_to_come(block) && room_will_come()) return false;
        switch (fetch(block, demand.serial)) {
            case SwapEngine::Start::Started:
                changed = true;
                return false;
            case SwapEngine::Start::NoDeviceMemory:
                needed_bytes_ += block.bytes();
                return false;
            case SwapEngine::Start::Failed:
                if (!swap_.gave_up() && ++demand.failures < kMaxFetchFailures) return false;
                refuse(demand);
                return true;
            default:
                return false;
        }
    });
    const bool all_patient = std::all_of(memory_wanted_.begin(), memory_wanted_.end(),
                                         [](const MemoryDemand& demand) { return demand.patient; });
    kept_bytes_ = 0;
    std::erase_if(memory_wanted_, [&](MemoryDemand& demand) {
        const bool was_served = demand.served;
        const bool over = serve_memory(demand, all_patient);
        changed |= over || demand.served != was_served;
        return over;
    });
    return changed;
}

/// True where it is refused. What lies ready is kept from planned fetches until it is taken.
bool Worker::serve_memory(MemoryDemand& demand, bool all_patient) {
    const ChunkRun& run = demand.run;
    demand.served = parts_.device_pool->free_count(run.size_class) >= run.count ||
                    parts_.device_pool->grow(run.size_class, run.count).has_value();
    if (demand.served) {
        kept_bytes_ += run.bytes();
        return false;
    }
    if (demand.patient && all_patient && !room_will_come() && !host_.reclaim_cached()) {
        refuse_ticket(demand.ticket);
        return true;
    }
    needed_bytes_ += run.bytes();
    return false;
}

bool Worker::serve_commands() {
    bool changed = false;
    while (!commands_.empty()) {
        const SwapCommand command = commands_.front();
        if (command.run != host_.plan_run()) {
            commands_.pop_front();
            continue;
        }
        if (swap_.jobs() >= kMaxUnderWay || !host_.op_complete(command.after_serial)) break;
        commands_.pop_front();
        if (command.kind == SwapCommand::Kind::Fetch) {
            due_fetches_.push_back(command);
            continue;
        }
        if (command.kind != SwapCommand::Kind::Evict) continue;
        Block* block = parts_.blocks->find(command.block);
        if (!block || block->wanted.load() != 0) continue;
        changed |= evict(*block, command.after_serial) == SwapEngine::Start::Started;
    }
    return changed;
}

bool Worker::serve_fetches() {
    bool changed = false;
    while (!due_fetches_.empty() && swap_.jobs() < kMaxUnderWay && needed_bytes_ == 0 &&
           kept_bytes_ == 0) {
        const SwapCommand command = due_fetches_.front();
        Block* block = parts_.blocks->find(command.block);
        if (command.run != host_.plan_run() || !block) {
            due_fetches_.pop_front();
            continue;
        }
        const ResidencyWord word = block->cell.load();
        if (word.remapping() || word.state() == Residency::HandedOver) break;
        if (word.state() == Residency::Leaving) {
            // Still on its way out: it was to be gone by now. Pinning would cancel; so does this.
            if (block->cell.cancel(Residency::Leaving, word.generation(), Residency::Resident))
                due_fetches_.pop_front();
            continue;
        }
        if (word.state() != Residency::Host) {
            due_fetches_.pop_front();
            continue;
        }
        if (parts_.gate->waiters.load() != 0 && host_.careful()) break;
        const auto start = fetch(*block, command.after_serial);
        if (start == SwapEngine::Start::NoDeviceMemory) {
            if (host_.reclaim_cached()) continue;
            break;
        }
        changed |= start == SwapEngine::Start::Started;
        if (start == SwapEngine::Start::NotNow) break;
        due_fetches_.pop_front();
    }
    return changed;
}

SwapEngine::Start Worker::evict(Block& block, std::uint64_t after_serial) {
    // What touches a block of a buffer that is used in parts is believed, not known: the first
    // times, and now and then, the careful way checks it.
    const bool believed = parts_.blocks->buffer_of(block).in_parts.load(std::memory_order_relaxed);
    const bool check = believed && (block.evictions < kCheckedEvictions ||
                                    block.evictions % kCheckEveryEviction == 0);
    const auto start = swap_.evict(block, check || host_.careful(), after_serial);
    if (start == SwapEngine::Start::Started) ++block.evictions;
    return start;
}

/// A plan's moves are due at the device's pace. A host that runs far ahead of it asks for blocks
/// before they are, and what makes room for those is needed sooner: train_cnn at 40 % took 27.2
/// instead of 23.1 ms.
bool Worker::follows_plan() const noexcept { return !commands_.empty() || !due_fetches_.empty(); }

SwapEngine::Start Worker::fetch(Block& block, std::uint64_t after_serial) {
    auto way = SwapEngine::Way::Plain;
    if (host_.careful())
        way = SwapEngine::Way::Careful;
    else if (!host_.capturing() && parts_.gate->waiters.load() == 0 && !follows_plan() &&
             !parts_.blocks->buffer_of(block).in_parts.load())
        way = SwapEngine::Way::HandOver;
    return swap_.fetch(block, way, after_serial);
}

Block* Worker::coldest() {
    Block* best = nullptr;
    std::uint64_t oldest = UINT64_MAX;
    const BlockIndex end = parts_.blocks->end();
    for (BlockIndex i = 0; i < end; ++i) {
        Block& block = parts_.blocks->block(i);
        if (!may_leave(block)) continue;
        const std::uint64_t touched = block.last_touch.load(std::memory_order_relaxed);
        if (touched >= oldest) continue;
        oldest = touched;
        best = &block;
    }
    return best;
}

/// It cannot leave now: in the next round others come first.
void Worker::put_off(Block& block) {
    std::uint64_t newest = 0;
    for (BlockIndex i = 0; i < parts_.blocks->end(); ++i)
        newest = std::max(newest, parts_.blocks->block(i).last_touch.load());
    block.last_touch.store(newest);
}

Block* Worker::planned_victim() {
    // What is to leave next by the plan leaves now.
    for (auto command = commands_.begin(); command != commands_.end(); ++command) {
        if (command->kind != SwapCommand::Kind::Evict || command->run != host_.plan_run()) continue;
        Block* block = parts_.blocks->find(command->block);
        if (!block || !may_leave(*block)) continue;
        commands_.erase(command);
        return block;
    }
    return nullptr;
}

bool Worker::may_leave(const Block& block) const noexcept {
    const ResidencyWord word = block.cell.load();
    return word.state() == Residency::Resident && word.pins() == 0 && !word.remapping() &&
           !block.busy.load() && !block.for_good.load() && block.wanted.load() == 0;
}

/// Nothing may leave now, but an operation that is being issued will be done with something.
bool Worker::may_leave_later() const noexcept {
    const BlockIndex end = parts_.blocks->end();
    for (BlockIndex i = 0; i < end; ++i) {
        const Block& block = parts_.blocks->block(i);
        if (block.cell.load().state() == Residency::Resident && !block.for_good.load()) return true;
    }
    return false;
}

/// Whether a command that is due sooner or later brings the block.
bool Worker::planned_to_come(const Block& block) const noexcept {
    const std::uint64_t id = block.id.load();
    const auto brings = [id](const SwapCommand& command) {
        return command.kind == SwapCommand::Kind::Fetch && command.block == id;
    };
    return std::any_of(due_fetches_.begin(), due_fetches_.end(), brings) ||
           std::any_of(commands_.begin(), commands_.end(), brings);
}

/// By a plan all that an operation needs is there in time. So nothing else leaves for one that is
/// issued long before it can run, or the plan no longer holds: what is leaving, and the operations
/// under way, free memory by themselves.
bool Worker::room_will_come() {
    // Nothing may be asked of the streams then, and who waits for memory sees it and goes on.
    if (host_.capturing()) return true;
    return host_.follows_plan() && (swap_.jobs() != 0 || !host_.device_idle());
}

bool Worker::reclaim_until_enough() {
    bool changed = false;
    while (parts_.device_pool->available_bytes() < needed_bytes_ && host_.reclaim_cached())
        changed = true;
    return changed;
}

bool Worker::make_room() {
    if (needed_bytes_ == 0) {
        unserved_rounds_ = 0;
        return false;
    }
    if (host_.follows_plan()) {
        const bool reclaimed = reclaim_until_enough();
        if (reclaimed || room_will_come()) return reclaimed;
    }
    bool changed = false;
    bool enough = false;
    bool in_use = false;
    bool stuck = swap_.gave_up();
    while (!stuck && swap_.jobs() < kMaxUnderWay) {
        enough = parts_.device_pool->available_bytes() + swap_.leaving_bytes() >= needed_bytes_;
        if (enough) break;
        if (host_.reclaim_cached()) {
            changed = true;
            continue;
        }
        Block* victim = planned_victim();
        if (!victim) victim = coldest();
        if (!victim) {
            stuck = true;
            in_use = may_leave_later();
            break;
        }
        const auto start = evict(*victim, 0);
        if (start == SwapEngine::Start::Started) {
            changed = true;
            continue;
        }
        if (start == SwapEngine::Start::NotNow) put_off(*victim);
        if (start == SwapEngine::Start::NoHostMemory && reclaim_host_memory()) continue;
        stuck = start == SwapEngine::Start::NoHostMemory;
        break;
    }
    // There is enough, all of it lies ready, and serves nobody: chunks of other sizes, of which the
    // driver makes no others.
    const bool idle = swap_.jobs() == 0 && !changed;
    unserved_rounds_ = enough && idle ? unserved_rounds_ + 1 : 0;
    if (unserved_rounds_ >= kMostUnservedRounds) stuck = true;
    if (!stuck || swap_.jobs() != 0) return changed;
    // Nothing leaves and nothing can: what waits is used where it is. Once something was refused,
    // what is there may be enough for the rest.
    if (!demands_.empty()) {
        Demand* last = &demands_.back();
        refuse(*last);
        demands_.pop_back();
        changed = true;
    } else if (!in_use) {
        refuse_memory();
        changed = true;
    }
    return changed;
}

bool Worker::reclaim_host_memory() {
    // Host copies of resident blocks only spare a copy out: the coldest goes last.
    Block* best = nullptr;
    const BlockIndex end = parts_.blocks->end();
    for (BlockIndex i = 0; i < end; ++i) {
        Block& block = parts_.blocks->block(i);
        if (block.cell.load().state() != Residency::Resident || block.busy.load() ||
            !block.has_host())
            continue;
        if (!best || block.last_touch.load() > best->last_touch.load()) best = &block;
    }
    if (!best) return false;
    best->busy.store(true);
    // Freed meanwhile: its memory goes back by another way.
    const bool still = best->cell.load().state() == Residency::Resident;
    if (still) {
        best->record_valid.store(false);
        parts_.host_pool->give_back(best->host_chunks());
        best->host.fill(nullptr);
    }
    best->busy.store(false);
    return still;
}

bool Worker::pending() const noexcept {
    return swap_.jobs() != 0 || !demands_.empty() || !memory_wanted_.empty() ||
           !commands_.empty() || !due_fetches_.empty();
}

void Worker::idle(bool changed) {
    if (changed) {
        idle_rounds_ = 0;
        return;
    }
    const bool soon = host_.background() || pending();
    if (soon && (idle_rounds_ + 1) % kLookEvery == 0) swap_.check_device();
    std::unique_lock lock(inbox_mutex_);
    const auto ready = [&] {
        return !inbox_.empty() || kicked_ || parking_ || (stopping_ && !pending());
    };
    if (soon) {
        const auto sleep = ++idle_rounds_ < 100 ? kShortSleep : kLongSleep;
        inbox_signal_.wait_for(lock, sleep, ready);
    } else {
        inbox_signal_.wait(lock, ready);
    }
}

}  // namespace libswap
