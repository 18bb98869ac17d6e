// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>

#include "cost/copy_engine.hpp"

namespace libswap::cost {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kCountedJobs = 32;  // of a queue: what is behind them is far away
constexpr std::int64_t kGone = -1;

/// Actions by the operation that issues them, in plan order.
class ActionTable {
  public:
    ActionTable(std::size_t ops, const Plan& plan, bool fetches) : begin_(ops + 1, 0) {
        const auto ours = [&](const Action& a) { return (a.kind == ActionKind::In) == fetches; };
        for (const Action& a : plan.actions) begin_[a.op + 1] += ours(a);
        for (std::size_t i = 0; i < ops; ++i) begin_[i + 1] += begin_[i];
        actions_.resize(begin_[ops]);
        std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
        for (const Action& a : plan.actions) {
            if (ours(a)) actions_[next[a.op]++] = &a;
        }
    }

    std::span<const Action* const> at(std::size_t op) const {
        return {actions_.data() + begin_[op], begin_[op + 1] - begin_[op]};
    }

  private:
    std::vector<std::uint32_t> begin_;
    std::vector<const Action*> actions_;
};

struct TensorState {
    std::int64_t here = kGone;  // bytes on the device; kGone: not alive
    std::int64_t clean = 0;     // bytes of current content that the host holds
    std::int64_t leaving = 0;   // queued or in flight to the host, then released
    std::int64_t copying = 0;   // queued or in flight to the host, and kept
    std::int64_t coming = 0;    // queued or in flight to the device
    bool operator==(const TensorState&) const = default;
};

struct Timer {
    double at_us = 0;
    std::uint64_t tick = 0;
    enum class What : std::uint8_t { OutReady, InReady, Release } what = What::Release;
    std::int64_t arg = 0;  // job id, or bytes
    bool operator>(const Timer& other) const {
        return at_us != other.at_us ? at_us > other.at_us : tick > other.tick;
    }
};

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdULL;
    return h ^ (h >> 32);
}

std::uint64_t nanoseconds(double us) { return static_cast<std::uint64_t>(std::llround(us * 1e3)); }

/// Event by event, the same decisions as the referee's replay.
class Replay : private ReplayView {
  public:
    Replay(const Workload& workload, const Machine& machine, std::uint64_t budget_bytes,
           const Plan& plan, const ReplayOptions& options)
        : work_(workload),
          machine_(machine),
          options_(options),
          out_(machine.link, Direction::ToHost),
          in_(machine.link, Direction::ToDevice),
          after_(workload.op_count(), plan, false),
          at_(workload.op_count(), plan, true),
          state_(workload.tensors().size()),
          free_(static_cast<std::int64_t>(budget_bytes)),
          budget_(free_) {
        for (std::size_t t = 0; t < state_.size(); ++t) {
            if (!work_.tensors()[t].persistent) continue;
            state_[t].here = 0;
            set_clean(static_cast<TensorIndex>(t), bytes(static_cast<TensorIndex>(t)));
        }
        starts_.resize(workload.op_count() + 1);
    }

    tl::expected<ReplayResult, ReplayError> run() {
        while (!settled_ && !error_) {
            start_everything();
            if (error_) break;
            if (!advance()) stuck();
        }
        if (error_) return tl::unexpected(std::move(*error_));
        return result();
    }

  private:
    struct End {
        double now_us;
        std::int64_t out, in;
    };

    std::int64_t bytes(TensorIndex t) const {
        return static_cast<std::int64_t>(work_.tensors()[t].bytes);
    }

    void fail(TensorIndex tensor, std::int64_t short_bytes, std::string message) {
        if (error_) return;
        error_ = ReplayError{static_cast<OpIndex>(index_), tensor,
                             static_cast<std::uint64_t>(std::max<std::int64_t>(0, short_bytes)),
                             std::move(message)};
    }

    void set_clean(TensorIndex t, std::int64_t n) {
        host_ += n - state_[t].clean;
        host_peak_ = std::max(host_peak_, host_);
        state_[t].clean = n;
    }

    // -- what can begin now --

    void start_everything() {
        announce();
        start_op();
        claim_memory();
        out_.start();
        const std::size_t before = in_.queue.size();
        in_.start();
        unclaimed_ -= std::min(unclaimed_, before - in_.queue.size());
    }

    void announce() {
        while (announced_ < static_cast<std::int64_t>(index_)) {
            ++announced_;
            for (const Action* a : at_.at(static_cast<std::size_t>(announced_))) {
                fetch(a->tensor, a->bytes);
            }
            if (options_.director != nullptr) ask_director();
        }
    }

    void ask_director() {
        directed_.clear();
        options_.director->before(static_cast<OpIndex>(index_), *this, directed_);
        for (const Action& a : directed_) {
            if (a.kind == ActionKind::In) {
                fetch(a.tensor, a.bytes);
            } else {
                evict(a);
            }
        }
    }

    double now_us() const override { return now_; }
    double fetch_backlog_us() const override {
        return backlog_us(in_, Direction::ToDevice, out_.job.has_value());
    }
    double needed_backlog_us() const override {
        double sum = 0;
        double needed = 0;
        const auto add = [&](TensorIndex t, double us) {
            sum += us;
            if (op_needs(t)) needed = sum;
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
    double eviction_backlog_us() const override {
        return backlog_us(out_, Direction::ToHost, in_.job.has_value());
    }
    bool is_leaving(TensorIndex tensor) const override { return state_[tensor].leaving != 0; }

    double backlog_us(const CopyEngine& engine, Direction direction, bool other_busy) const {
        double sum = engine.job ? engine.eta_us(other_busy) : 0;
        const std::size_t count = std::min(engine.queue.size(), kCountedJobs);
        for (std::size_t i = 0; i < count; ++i) {
            sum += machine_.link.transfer_us(
                direction, static_cast<std::uint64_t>(engine.queue[i].bytes), other_busy);
        }
        return sum;
    }

    void fetch(TensorIndex t, std::uint64_t want) {
        TensorState& s = state_[t];
        if (s.here == kGone) return;
        std::int64_t n = bytes(t) - s.here - s.coming + s.leaving;
        if (want != kWholeTensor) n = std::min(n, static_cast<std::int64_t>(want));
        if (n <= 0) return;
        s.coming += n;
        in_.queue.push_back({next_job_++, t, n});
    }

    bool op_needs(TensorIndex t) const {
        const auto uses = work_.uses(index_);
        return std::any_of(uses.begin(), uses.end(), [t](const Use& u) { return u.tensor == t; });
    }

    std::int64_t op_takes() const {
        auto sum = static_cast<std::int64_t>(work_.op(index_).workspace_bytes);
        for (const Use& use : work_.uses(index_)) {
            if (state_[use.tensor].here == kGone) sum += bytes(use.tensor);
        }
        return sum;
    }

    /// Fetches take memory in order. What the next operation still has to take is left to it, but
    /// for fetches that it needs.
    void claim_memory() {
        std::int64_t kept = -1;
        while (unclaimed_ < in_.queue.size()) {
            TransferJob& job = in_.queue[unclaimed_];
            if (!job.claimed) {
                if (kept < 0) kept = running_ ? 0 : op_takes();
                const std::int64_t room = running_ || !op_needs(job.tensor) ? free_ - kept : free_;
                if (job.bytes > room || state_[job.tensor].leaving != 0) return;
                take(job.bytes);
                job.claimed = true;
                timer(machine_.remap.map_us(static_cast<std::uint64_t>(job.bytes)) +
                          machine_.reaction_us,
                      Timer::What::InReady, job.id);
            }
            ++unclaimed_;
        }
    }

    void start_op() {
        if (running_) return;
        for (const Use& use : work_.uses(index_)) {
            const TensorState& s = state_[use.tensor];
            if (s.leaving != 0 || (s.here != kGone && s.here < bytes(use.tensor))) return;
        }
        if (op_takes() > free_) return;
        for (const Use& use : work_.uses(index_)) {
            const TensorIndex t = use.tensor;
            if (state_[t].here == kGone) {
                if (!use.write) {
                    return fail(
                        t, 0,
                        fmt::format("operation {} reads tensor {}, which nothing has written",
                                    index_, work_.tensors()[t].id));
                }
                state_[t].here = bytes(t);
                take(bytes(t));
            }
            if (use.write) {
                set_clean(t, 0);
                void_copies(t);
            }
        }
        take(static_cast<std::int64_t>(work_.op(index_).workspace_bytes));
        starts_[index_] = now_;
        if (options_.director != nullptr) {
            options_.director->started(static_cast<OpIndex>(index_), now_,
                                       static_cast<std::uint64_t>(leaving_));
        }
        running_ = true;
        left_us_ = work_.op(index_).duration_us;
    }

    /// Copies of what is about to be overwritten are worth nothing: those that have not begun go.
    void void_copies(TensorIndex t) {
        if (state_[t].copying == 0) return;
        state_[t].copying = 0;
        std::erase_if(out_.queue, [t](const TransferJob& j) { return j.tensor == t && j.kept; });
        if (out_.job && out_.job->tensor == t && out_.job->kept) out_.job->live = false;
    }

    void take(std::int64_t n) {
        free_ -= n;
        peak_used_ = std::max(peak_used_, budget_ - free_);
    }

    void timer(double delay_us, Timer::What what, std::int64_t arg) {
        timers_.push({now_ + delay_us, tick_++, what, arg});
    }

    // -- what ends next --

    bool advance() {
        const bool both = out_.job && in_.job;
        double dt = running_ ? left_us_ : kNever;
        dt = std::min({dt, out_.eta_us(both), in_.eta_us(both),
                       timers_.empty() ? kNever : timers_.top().at_us - now_});
        dt = std::max(dt, 0.0);
        if (dt == kNever) return false;
        now_ += dt;
        const auto gone = out_.advance(dt, both);
        const auto come = in_.advance(dt, both);
        if (gone) left(*gone);
        if (come) arrived(*come);
        while (!timers_.empty() && timers_.top().at_us <= now_ + CopyEngine::kEpsilonUs) {
            const Timer due = timers_.top();
            timers_.pop();
            fire(due);
        }
        if (running_) {
            left_us_ -= dt;
            if (left_us_ <= CopyEngine::kEpsilonUs) end_op();
        }
        return true;
    }

    void fire(const Timer& due) {
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

    void left(const TransferJob& job) {
        TensorState& s = state_[job.tensor];
        if (!job.kept) release_after_unmap(job.bytes, 0);
        if (!job.live) return;
        set_clean(job.tensor, std::min(bytes(job.tensor), s.clean + job.bytes));
        if (job.kept) {
            s.copying -= job.bytes;
            return;
        }
        s.leaving -= job.bytes;
        s.here -= job.bytes;
    }

    void arrived(const TransferJob& job) {
        if (!job.live) {
            free_ += job.bytes;
            return;
        }
        state_[job.tensor].coming -= job.bytes;
        state_[job.tensor].here += job.bytes;
    }

    void release_after_unmap(std::int64_t n, double delay_us) {
        timer(delay_us + machine_.remap.unmap_us(static_cast<std::uint64_t>(n)),
              Timer::What::Release, n);
    }

    void end_op() {
        running_ = false;
        free_ += static_cast<std::int64_t>(work_.op(index_).workspace_bytes);
        for (const TensorIndex t : work_.frees(index_)) forget(t);
        for (const Action* a : after_.at(index_)) evict(*a);
        if (++index_ == work_.op_count()) end_iteration();
    }

    /// Frees a tensor. What a copy engine is moving stays taken until it has moved.
    void forget(TensorIndex t) {
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
    }

    static void drop_jobs(CopyEngine& engine, TensorIndex t) {
        std::erase_if(engine.queue, [t](const TransferJob& j) { return j.tensor == t; });
        if (engine.job && engine.job->tensor == t) engine.job->live = false;
    }

    void evict(const Action& a) {
        const TensorIndex t = a.tensor;
        TensorState& s = state_[t];
        if (s.here == kGone) return;
        if (a.kind == ActionKind::Copy) return copy(t, a.bytes);
        if (s.coming != 0) {
            return fail(
                t, 0,
                fmt::format("tensor {} is evicted after operation {} while it is being fetched",
                            work_.tensors()[t].id, index_));
        }
        const std::int64_t n =
            a.bytes == kWholeTensor
                ? s.here - s.leaving
                : std::min(static_cast<std::int64_t>(a.bytes), s.here - s.leaving);
        if (n <= 0) return;
        const std::int64_t absent = bytes(t) - s.here + s.leaving;
        const bool clean = s.clean >= absent + n;
        if (a.kind == ActionKind::Drop && !clean) {
            return fail(
                t, 0,
                fmt::format("tensor {} is dropped after operation {} without a valid host copy",
                            work_.tensors()[t].id, index_));
        }
        if (clean) {
            s.here -= n;
            leaving_ += n;
            release_after_unmap(n, machine_.reaction_us);
            return;
        }
        s.leaving += n;
        leaving_ += n;
        queue_out(t, n, false);
    }

    void copy(TensorIndex t, std::uint64_t want) {
        TensorState& s = state_[t];
        std::int64_t n = bytes(t) - s.clean - s.leaving - s.copying;
        if (want != kWholeTensor) n = std::min(n, static_cast<std::int64_t>(want));
        if (n <= 0) return;
        s.copying += n;
        queue_out(t, n, true);
    }

    void queue_out(TensorIndex t, std::int64_t n, bool kept) {
        const bool at_once = machine_.reaction_us <= 0;
        TransferJob job{next_job_++, t, n};
        job.ready = at_once;
        job.kept = kept;
        if (!at_once) timer(machine_.reaction_us, Timer::What::OutReady, job.id);
        out_.queue.push_back(job);
    }

    void stuck() {
        absent_.clear();
        for (const Use& use : work_.uses(index_)) {
            const TensorState& s = state_[use.tensor];
            if (s.here != kGone && s.here < bytes(use.tensor)) absent_.push_back(use.tensor);
        }
        if (ends_.empty() && fetch_now()) return;
        const std::int64_t short_bytes = std::max<std::int64_t>(0, op_takes() - free_);
        fail(absent_.empty() ? kNoTensor : absent_.front(), short_bytes,
             fmt::format("operation {} ({}) can never start: {} tensors are away, short of memory "
                         "by {} bytes",
                         index_, work_.name(index_), absent_.size(), short_bytes));
    }

    /// The first iteration starts cold: what the plan fetches one iteration earlier, or never,
    /// comes when it is missed.
    bool fetch_now() {
        const auto missed = [&](const TransferJob& j) {
            return std::find(absent_.begin(), absent_.end(), j.tensor) != absent_.end();
        };
        const std::size_t before = in_.queue.size();
        for (const TensorIndex t : absent_) fetch(t, kWholeTensor);
        const bool sorted = std::is_partitioned(in_.queue.begin(), in_.queue.end(), missed);
        std::stable_partition(in_.queue.begin(), in_.queue.end(), missed);
        unclaimed_ = 0;
        return in_.queue.size() != before || !sorted;
    }

    // -- iterations --

    void end_iteration() {
        starts_[index_] = now_;
        index_ = 0;
        announced_ = -1;
        ends_.push_back({now_, out_.moved_bytes, in_.moved_bytes});
        if (options_.timeline) timeline_ = starts_;
        const std::uint64_t state = state_hash();
        const auto count = static_cast<int>(ends_.size());
        const auto known = seen_.find(state);
        period_ = count - (known == seen_.end() ? count / 2 : known->second);
        settled_ = (count >= options_.min_iterations && known != seen_.end()) ||
                   count >= options_.max_iterations;
        seen_[state] = count;
    }

    /// All that the future depends on; times to the nanosecond, as the referee has them.
    std::uint64_t state_hash() const {
        std::uint64_t h = 0;
        for (const TensorState& s : state_) {
            h = mix(mix(h, static_cast<std::uint64_t>(s.here)),
                    static_cast<std::uint64_t>(s.clean));
        }
        h = hash_engine(hash_engine(h, out_), in_);
        auto timers = timers_;
        std::uint64_t sum = 0;  // order within a nanosecond does not matter
        for (; !timers.empty(); timers.pop()) {
            const Timer& t = timers.top();
            const auto arg = t.what == Timer::What::Release ? static_cast<std::uint64_t>(t.arg) : 0;
            sum += mix(mix(nanoseconds(t.at_us - now_), static_cast<std::uint64_t>(t.what)), arg);
        }
        return mix(h, sum);
    }

    static std::uint64_t hash_job(std::uint64_t h, const TransferJob& j) {
        h = mix(mix(h, j.tensor), static_cast<std::uint64_t>(j.bytes));
        return mix(h, j.live * 8U + j.ready * 4U + j.claimed * 2U + j.kept);
    }

    static std::uint64_t hash_engine(std::uint64_t h, const CopyEngine& engine) {
        if (engine.job) {
            h = hash_job(h, *engine.job);
            h = mix(h, nanoseconds(engine.job->setup_us));
            h = mix(h, nanoseconds(engine.job->left_bytes / engine.rate(false)));
        }
        for (const TransferJob& j : engine.queue) h = hash_job(h, j);
        return mix(h, engine.queue.size());
    }

    ReplayResult result() const {
        const End& last = ends_.back();
        const auto before = ends_.size() - 1 - static_cast<std::size_t>(period_);
        const End first = period_ < static_cast<int>(ends_.size()) ? ends_[before] : End{0, 0, 0};
        ReplayResult r;
        r.iteration_us = (last.now_us - first.now_us) / period_;
        r.to_host_bytes = static_cast<double>(last.out - first.out) / period_;
        r.to_device_bytes = static_cast<double>(last.in - first.in) / period_;
        r.peak_used_bytes = static_cast<std::uint64_t>(peak_used_);
        r.host_bytes = static_cast<std::uint64_t>(host_peak_);
        r.op_start_us = timeline_;
        for (double& start : r.op_start_us) start -= timeline_.front();
        return r;
    }

    const Workload& work_;
    const Machine& machine_;
    const ReplayOptions& options_;
    CopyEngine out_;
    CopyEngine in_;
    ActionTable after_;
    ActionTable at_;
    std::vector<TensorState> state_;
    std::int64_t free_;
    std::int64_t budget_;
    std::int64_t leaving_ = 0;  // evicted, and not yet free
    std::int64_t peak_used_ = 0;
    std::int64_t host_ = 0;
    std::int64_t host_peak_ = 0;
    std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
    std::uint64_t tick_ = 0;
    std::uint32_t next_job_ = 0;
    std::size_t unclaimed_ = 0;  // fetches before this one in the queue have their memory
    double now_ = 0;
    std::size_t index_ = 0;
    std::int64_t announced_ = -1;
    bool running_ = false;
    double left_us_ = 0;
    std::vector<TensorIndex> absent_;
    std::vector<Action> directed_;
    std::vector<double> starts_;
    std::vector<double> timeline_;
    std::vector<End> ends_;
    std::unordered_map<std::uint64_t, int> seen_;
    int period_ = 1;
    bool settled_ = false;
    std::optional<ReplayError> error_;
};

bool in_range(const Workload& workload, const Plan& plan) {
    return std::all_of(plan.actions.begin(), plan.actions.end(), [&](const Action& a) {
        return a.op < workload.op_count() && a.tensor < workload.tensors().size();
    });
}

}  // namespace

tl::expected<ReplayResult, ReplayError> replay(const Workload& workload, const Machine& machine,
                                               std::uint64_t budget_bytes, const Plan& plan,
                                               const ReplayOptions& options) {
    if (workload.op_count() == 0) {
        return tl::unexpected(ReplayError{.message = "the workload has no operations"});
    }
    if (!in_range(workload, plan)) {
        return tl::unexpected(
            ReplayError{.message = "an action names an unknown tensor or operation"});
    }
    return Replay(workload, machine, budget_bytes, plan, options).run();
}

}  // namespace libswap::cost
