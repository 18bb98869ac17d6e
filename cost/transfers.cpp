// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/transfers.hpp"

#include <algorithm>
#include <limits>

namespace libswap::cost {

namespace {

/// Ids that a fetch leaves free behind its own, for the parts that it may be divided into.
constexpr std::uint32_t kMostParts = 64;
/// Dividing a fetch that only its mapping delays has to win so much: latencies of the link.
constexpr double kWorthwhile = 2.5;

constexpr std::size_t kCountedJobs = 32;  // of a queue: what is behind them is far away

void drop_jobs(CopyEngine& engine, TensorIndex t) {
    std::erase_if(engine.queue, [t](const TransferJob& j) { return j.tensor == t; });
    if (engine.job && engine.job->tensor == t) engine.job->live = false;
}

void add_job(StateHash& hash, const TransferJob& j) {
    hash.add(j.tensor);
    hash.add(static_cast<std::uint64_t>(j.bytes));
    hash.add(j.live * 8U + j.ready * 4U + j.claimed * 2U + j.kept);
}

void add_engine(StateHash& hash, const CopyEngine& engine) {
    if (engine.job) {
        add_job(hash, *engine.job);
        hash.add_us(engine.job->setup_us);
        hash.add_us(engine.job->left_bytes / engine.rate(false));
    }
    for (const TransferJob& j : engine.queue) add_job(hash, j);
    hash.add(engine.queue.size());
}

}  // namespace

Transfers::Transfers(const Workload& workload, const Machine& machine, std::uint64_t budget_bytes)
    : work_(workload),
      machine_(machine),
      out_(machine.link, Direction::ToHost),
      in_(machine.link, Direction::ToDevice),
      state_(workload.tensors().size()),
      free_(static_cast<std::int64_t>(budget_bytes)),
      budget_(free_) {
    for (TensorIndex t = 0; t < state_.size(); ++t) {
        state_[t].here = kGone;
        if (!work_.tensors()[t].persistent) continue;
        state_[t].here = 0;
        set_clean(t, bytes(t));
    }
}

// -- operations --

bool Transfers::can_start(std::size_t op) const {
    const auto uses = work_.uses(op);
    const auto away = [this](const Use& use) {
        const TensorState& s = state_[use.tensor];
        return s.leaving != 0 || (s.here != kGone && s.here < bytes(use.tensor));
    };
    if (awaited_ < uses.size() && away(uses[awaited_])) return false;
    const auto found = std::find_if(uses.begin(), uses.end(), away);
    awaited_ = static_cast<std::size_t>(found - uses.begin());
    return found == uses.end() && takes(op) <= free_;
}

TensorIndex Transfers::start(std::size_t op) {
    for (const Use& use : work_.uses(op)) {
        const TensorIndex t = use.tensor;
        if (state_[t].here == kGone) {
            if (!use.write) return t;
            state_[t].here = bytes(t);
            take(bytes(t));
        }
        if (use.write) {
            set_clean(t, 0);
            void_copies(t);
        }
    }
    take(static_cast<std::int64_t>(work_.op(op).workspace_bytes));
    return kNoTensor;
}

void Transfers::end(std::size_t op) {
    free_ += static_cast<std::int64_t>(work_.op(op).workspace_bytes);
    for (const TensorIndex t : work_.frees(op)) forget(t);
}

std::int64_t Transfers::takes(std::size_t op) const {
    auto sum = static_cast<std::int64_t>(work_.op(op).workspace_bytes);
    for (const Use& use : work_.uses(op)) {
        if (state_[use.tensor].here == kGone) sum += bytes(use.tensor);
    }
    return sum;
}

bool Transfers::needs(std::size_t op, TensorIndex tensor) const {
    const auto uses = work_.uses(op);
    const auto found = std::lower_bound(uses.begin(), uses.end(), tensor,
                                        [](const Use& u, TensorIndex t) { return u.tensor < t; });
    return found != uses.end() && found->tensor == tensor;
}

std::vector<TensorIndex> Transfers::absent(std::size_t op) const {
    std::vector<TensorIndex> result;
    for (const Use& use : work_.uses(op)) {
        const TensorState& s = state_[use.tensor];
        if (s.here != kGone && s.here < bytes(use.tensor)) result.push_back(use.tensor);
    }
    return result;
}

void Transfers::set_clean(TensorIndex t, std::int64_t n) {
    host_ += n - state_[t].clean;
    host_peak_ = std::max(host_peak_, host_);
    state_[t].clean = n;
}

void Transfers::take(std::int64_t n) {
    free_ -= n;
    peak_used_ = std::max(peak_used_, budget_ - free_);
}

/// What a copy engine is moving stays taken until it has moved.
void Transfers::forget(TensorIndex t) {
    TensorState& s = state_[t];
    if (s.here == kGone) return;
    void_copies(t);
    free_ += s.here;
    if (s.coming != 0) {
        for (const TransferJob& j : in_.queue) {
            if (j.tensor == t && j.claimed) free_ += j.bytes;
        }
        drop_jobs(in_, t);
        unclaimed_ = 0;
    }
    if (s.leaving != 0) {
        leaving_ -= s.leaving;
        if (out_.job && out_.job->tensor == t && out_.job->live) {
            free_ -= out_.job->bytes;
            leaving_ += out_.job->bytes;
        }
        drop_jobs(out_, t);
    }
    set_clean(t, 0);
    s = TensorState{};
    s.here = kGone;
}

/// Copies of what is about to be overwritten are worth nothing: those that have not begun go.
void Transfers::void_copies(TensorIndex t) {
    if (state_[t].copying == 0) return;
    state_[t].copying = 0;
    std::erase_if(out_.queue, [t](const TransferJob& j) { return j.tensor == t && j.kept; });
    if (out_.job && out_.job->tensor == t && out_.job->kept) out_.job->live = false;
}

// -- actions --

void Transfers::fetch(TensorIndex t, std::uint64_t want, std::uint32_t action) {
    TensorState& s = state_[t];
    if (s.here == kGone) return;
    std::int64_t n = bytes(t) - s.here - s.coming + s.leaving;
    if (want != kWholeTensor) n = std::min(n, static_cast<std::int64_t>(want));
    if (n <= 0) return;
    s.coming += n;
    TransferJob job{next_job_, action, t, n};
    next_job_ += least_part_ > 0 ? kMostParts : 1;
    in_.queue.push_back(job);
}

Transfers::Refusal Transfers::evict(const Action& a, double now_us) {
    TensorState& s = state_[a.tensor];
    if (s.here == kGone) return Refusal::None;
    if (a.kind == ActionKind::Copy) {
        copy(a.tensor, a.bytes, now_us);
        return Refusal::None;
    }
    if (s.coming != 0) return Refusal::BeingFetched;
    std::int64_t n = s.here - s.leaving;
    if (a.bytes != kWholeTensor) n = std::min(n, static_cast<std::int64_t>(a.bytes));
    if (n <= 0) return Refusal::None;
    const std::int64_t away = bytes(a.tensor) - s.here + s.leaving;
    const bool clean = s.clean >= away + n;
    if (a.kind == ActionKind::Drop && !clean) return Refusal::NoHostCopy;
    leaving_ += n;
    if (clean) {
        s.here -= n;
        release_after_unmap(n, now_us + machine_.reaction_us);
    } else {
        s.leaving += n;
        queue_out(a.tensor, n, false, now_us);
    }
    return Refusal::None;
}

void Transfers::copy(TensorIndex t, std::uint64_t want, double now_us) {
    TensorState& s = state_[t];
    std::int64_t n = bytes(t) - s.clean - s.leaving - s.copying;
    if (want != kWholeTensor) n = std::min(n, static_cast<std::int64_t>(want));
    if (n <= 0) return;
    s.copying += n;
    queue_out(t, n, true, now_us);
}

void Transfers::queue_out(TensorIndex t, std::int64_t n, bool kept, double now_us) {
    TransferJob job{next_job_++, kNoAction, t, n};
    job.ready = machine_.reaction_us <= 0;
    job.kept = kept;
    if (!job.ready) add_timer(now_us + machine_.reaction_us, Timer::What::OutReady, job.id);
    out_.queue.push_back(job);
}

bool Transfers::fetch_first(const std::vector<TensorIndex>& tensors) {
    const auto first = [&](const TransferJob& j) {
        return std::find(tensors.begin(), tensors.end(), j.tensor) != tensors.end();
    };
    const std::size_t before = in_.queue.size();
    for (const TensorIndex t : tensors) fetch(t, kWholeTensor);
    const bool sorted = std::is_partitioned(in_.queue.begin(), in_.queue.end(), first);
    std::stable_partition(in_.queue.begin(), in_.queue.end(), first);
    unclaimed_ = 0;
    return in_.queue.size() != before || !sorted;
}

// -- time --

void Transfers::claim_memory(std::size_t op, bool running, double now_us) {
    std::int64_t kept = -1;
    while (unclaimed_ < in_.queue.size()) {
        TransferJob& job = in_.queue[unclaimed_];
        if (!job.claimed) {
            if (kept < 0) kept = running ? 0 : takes(op);
            const std::int64_t room = running || !needs(op, job.tensor) ? free_ - kept : free_;
            if (state_[job.tensor].leaving != 0) return;
            if (unclaimed_ == 0 && divide_front(room)) continue;
            if (job.bytes > room) return;
            take(job.bytes);
            job.claimed = true;
            if (job.action < fetch_times_.size()) {
                fetch_times_[job.action].claimed_at = static_cast<OpIndex>(op);
            }
            const double map_us = machine_.remap.map_us(static_cast<std::uint64_t>(job.bytes));
            add_timer(now_us + map_us + machine_.reaction_us, Timer::What::InReady, job.id);
        }
        ++unclaimed_;
    }
}

void Transfers::divide_late_fetches(std::uint64_t least_bytes, std::uint64_t unit_bytes) {
    least_part_ = static_cast<std::int64_t>(least_bytes);
    part_unit_ = static_cast<std::int64_t>(unit_bytes);
}

/// Divides the fetch that is next, of which `room` bytes could have memory now.
bool Transfers::divide_front(std::int64_t room) {
    TransferJob& front = in_.queue.front();
    if (least_part_ == 0 || front.divided || front.action == kNoAction) return false;
    if (front.cuts + 1U >= kMostParts) return false;
    const auto map_us = [this](std::int64_t n) {
        return machine_.remap.map_us(static_cast<std::uint64_t>(n));
    };
    const double idle_in_us = in_.job ? in_.eta_us(out_.job.has_value()) : 0;
    std::int64_t part = 0;
    if (front.bytes > room) {
        part = std::min(room, front.bytes - least_part_);
    } else if (map_us(front.bytes) >
               idle_in_us + kWorthwhile * machine_.link.to_device.setup_us()) {
        // The rest is mapped while this part comes in.
        const double mapped_us = map_us(front.bytes);
        const double moved_us = machine_.link.transfer_us(
            Direction::ToDevice, static_cast<std::uint64_t>(front.bytes), false);
        const double share = mapped_us / (mapped_us + moved_us);
        part = std::max(least_part_,
                        static_cast<std::int64_t>(share * static_cast<double>(front.bytes)));
    }
    part = part / part_unit_ * part_unit_;
    if (part < least_part_ || front.bytes - part < least_part_) return false;
    if (front.bytes > room && map_us(part) < idle_in_us) return false;  // there may be more by then
    divisions_.push_back({front.action, static_cast<std::uint64_t>(part)});
    TransferJob rest = front;
    rest.bytes -= part;
    ++rest.id;
    ++rest.cuts;
    front.bytes = part;
    front.divided = true;
    in_.queue.insert(in_.queue.begin() + 1, rest);
    return true;
}

void Transfers::start_engines() {
    out_.start();
    const std::size_t before = in_.queue.size();
    in_.start();
    unclaimed_ -= std::min(unclaimed_, before - in_.queue.size());
}

double Transfers::next_event_us(double now_us) const {
    const bool both = out_.job && in_.job;
    const double timer_us =
        timers_.empty() ? std::numeric_limits<double>::infinity() : timers_.top().at_us - now_us;
    return std::min({out_.eta_us(both), in_.eta_us(both), timer_us});
}

void Transfers::advance(double dt_us, double now_us) {
    const bool both = out_.job && in_.job;
    const auto gone = out_.advance(dt_us, both);
    const auto come = in_.advance(dt_us, both);
    if (gone) left(*gone, now_us);
    if (come) {
        arrived(*come);
        if (come->action < fetch_times_.size()) fetch_times_[come->action].arrived_us = now_us;
    }
    while (!timers_.empty() && timers_.top().at_us <= now_us + CopyEngine::kEpsilonUs) {
        const Timer due = timers_.top();
        timers_.pop();
        fire(due);
    }
}

void Transfers::left(const TransferJob& job, double now_us) {
    TensorState& s = state_[job.tensor];
    if (!job.kept) release_after_unmap(job.bytes, now_us);
    if (!job.live) return;
    set_clean(job.tensor, std::min(bytes(job.tensor), s.clean + job.bytes));
    if (job.kept) {
        s.copying -= job.bytes;
        return;
    }
    s.leaving -= job.bytes;
    s.here -= job.bytes;
}

void Transfers::arrived(const TransferJob& job) {
    if (!job.live) {
        free_ += job.bytes;
        return;
    }
    state_[job.tensor].coming -= job.bytes;
    state_[job.tensor].here += job.bytes;
}

void Transfers::release_after_unmap(std::int64_t n, double at_us) {
    add_timer(at_us + machine_.remap.unmap_us(static_cast<std::uint64_t>(n)), Timer::What::Release,
              n);
}

void Transfers::add_timer(double at_us, Timer::What what, std::int64_t arg) {
    timers_.push({at_us, tick_++, what, arg});
}

void Transfers::fire(const Timer& due) {
    if (due.what == Timer::What::Release) {
        free_ += due.arg;
        leaving_ -= due.arg;
        return;
    }
    auto& queue = due.what == Timer::What::InReady ? in_.queue : out_.queue;
    // Ids rise along a queue, but where a cold start has put what it misses first.
    const auto before = [](const TransferJob& job, std::int64_t id) { return job.id < id; };
    auto found = std::lower_bound(queue.begin(), queue.end(), due.arg, before);
    if (found == queue.end() || found->id != due.arg) {
        found = std::find_if(queue.begin(), queue.end(),
                             [&](const TransferJob& job) { return job.id == due.arg; });
    }
    if (found != queue.end()) found->ready = true;
}

// -- what a director sees --

double Transfers::fetch_backlog_us() const {
    return backlog_us(in_, Direction::ToDevice, out_.job.has_value());
}

double Transfers::eviction_backlog_us() const {
    return backlog_us(out_, Direction::ToHost, in_.job.has_value());
}

double Transfers::backlog_us(const CopyEngine& engine, Direction direction, bool other_busy) const {
    double sum = engine.job ? engine.eta_us(other_busy) : 0;
    const std::size_t count = std::min(engine.queue.size(), kCountedJobs);
    for (std::size_t i = 0; i < count; ++i) {
        sum += machine_.link.transfer_us(
            direction, static_cast<std::uint64_t>(engine.queue[i].bytes), other_busy);
    }
    return sum;
}

double Transfers::needed_backlog_us(std::size_t op) const {
    double sum = 0;
    double needed = 0;
    const auto add = [&](TensorIndex t, double us) {
        sum += us;
        if (needs(op, t)) needed = sum;
    };
    const bool both = out_.job.has_value();
    if (in_.job) add(in_.job->tensor, in_.eta_us(both));
    const std::size_t count = std::min(in_.queue.size(), kCountedJobs);
    for (std::size_t i = 0; i < count; ++i) {
        const TransferJob& job = in_.queue[i];
        add(job.tensor, machine_.link.transfer_us(Direction::ToDevice,
                                                  static_cast<std::uint64_t>(job.bytes), both));
    }
    return needed;
}

void Transfers::add_state(StateHash& hash, double now_us) const {
    for (const TensorState& s : state_) {
        hash.add(static_cast<std::uint64_t>(s.here));
        hash.add(static_cast<std::uint64_t>(s.clean));
    }
    add_engine(hash, out_);
    add_engine(hash, in_);
    std::uint64_t sum = 0;  // order within a nanosecond does not matter
    for (auto timers = timers_; !timers.empty(); timers.pop()) {
        const Timer& t = timers.top();
        StateHash one;
        one.add_us(t.at_us - now_us);
        one.add(static_cast<std::uint64_t>(t.what));
        one.add(t.what == Timer::What::Release ? static_cast<std::uint64_t>(t.arg) : 0);
        sum += one.value();
    }
    hash.add(sum);
}

}  // namespace libswap::cost
