// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/schedule.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <queue>

#include "cost/range_max.hpp"
#include "cost/replay.hpp"

namespace libswap::cost {

namespace {

/// The unit of what is fetched of a gap: those in a row are one fetch.
struct Chunk {
    std::uint32_t gap = 0;
    std::uint64_t bytes = 0;
    OpIndex place = 0;  ///< operation before which it is issued, as in Gap: from < place <= to
};

/// A part of a gap's bytes that has to be copied, at its eviction or in advance.
struct DirtyPart {
    std::uint32_t gap = 0;
    std::uint64_t bytes = 0;
    OpIndex written = 0;         ///< the operation that wrote the content
    OpIndex copied = kNotEarly;  ///< operation before which it is copied in advance

    static constexpr OpIndex kNotEarly = UINT32_MAX;
};

/// How far ahead fetches may go, as a share of the iteration, round by round: urgent ones take
/// memory first. What comes in early also takes the link at times when it had better serve what
/// goes out, so the furthest horizon is not always the best, which gets the last rounds too.
constexpr std::array<double, 4> kHorizons{0, 0.05, 0.2, 1.0};
constexpr int kSettlingRounds = 1;
constexpr std::array<double, 7> kFineHorizons{0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0};
constexpr int kFineSettlingRounds = 2;

/// What is evicted before its copy in advance has gone is copied twice. So that a slower link does
/// not come to that, such copies begin only where one this much slower would idle too, and early.
constexpr double kSlowerLink = 1.13;
constexpr double kEarlyEnough = 1.6;
/// More may be copied in advance than the fluid says, by this share of the budget: its slots are
/// coarse, and where the link to the host would idle it costs nothing.
constexpr double kEarlyMargin = 0.02;
/// Of which only this share where an operation waits so long that the link to the device seems to
/// be the limit: copies slow it there.
constexpr double kStalledMargin = 0.5;
constexpr double kStalled = 1.5;  // from the end of one operation to that of the next, of its time

/// Where memory has room, parts are up to so many times as large: each pays the link's latency.
constexpr std::uint64_t kLargest = 8;

class Scheduler : private ReplayDirector {
  public:
    Scheduler(const Workload& workload, const Machine& machine, const GapTable& table,
              std::span<const std::uint64_t> away_bytes, const ScheduleOptions& options)
        : workload_(workload),
          machine_(machine),
          table_(table),
          away_(away_bytes),
          options_(options),
          tensors_(workload.tensors()),
          horizons_(options.fine ? std::span<const double>(kFineHorizons) : kHorizons),
          rounds_(static_cast<int>(horizons_.size()) +
                  (options.fine ? kFineSettlingRounds : kSettlingRounds)),
          ops_(static_cast<OpIndex>(workload.op_count())),
          present_(memory_with_fetches_at_use()),
          leaving_(ops_),
          counted_(ops_),
          period_us_(ops_) {
        for (OpIndex k = 0; k < ops_; ++k) period_us_[k] = workload.op(k).duration_us;
        turn_us_ = period_us_;
        compute_us_ = workload.compute_us();
        const std::uint64_t chunk =
            options.chunk_bytes == kWholeTensor ? kTypicalBytes : options.chunk_bytes;
        early_margin_bytes_ =
            static_cast<std::uint64_t>(kEarlyMargin * static_cast<double>(options.budget_bytes));
        stalled_margin_bytes_ =
            static_cast<std::uint64_t>(kStalledMargin * static_cast<double>(early_margin_bytes_));
        largest_bytes_ = options.chunk_bytes == kWholeTensor ? kWholeTensor : kLargest * chunk;
        lead_us_ = 2.0 * machine.remap.map_us(chunk) +
                   2.0 * machine.link.transfer_us(Direction::ToDevice, chunk, false);
    }

    Schedule run() {
        place_evictions();
        make_chunks();
        if (!chunks_.empty()) {
            const ReplayOptions options{
                .max_iterations = rounds_, .min_iterations = rounds_, .director = this};
            if (!replay(workload_, machine_, options_.budget_bytes, plan_, options)) {
                evictions_.clear();
            }
        }
        if (evictions_.empty()) {
            for (OpIndex k = 0; k < ops_; ++k) evict_in_parts(k, evictions_);
        }
        plan_.actions.insert(plan_.actions.end(), evictions_.begin(), evictions_.end());
        Schedule made{plan_, plan_, round_end_us_ - last_round_end_us_};
        for (const Action& a : issued_actions_) add_fused(a, made.plan);
        add_copies(made.by_place);
        add_fetches(made.by_place);
        return made;
    }

  private:
    static constexpr std::uint32_t kNone = UINT32_MAX;
    static constexpr std::uint64_t kTypicalBytes = std::uint64_t{32} << 20;

    RangeMax memory_with_fetches_at_use() const {
        const std::vector<std::uint64_t> absent = absent_bytes(table_, away_);
        std::vector<std::int64_t> used(ops_);
        for (OpIndex k = 0; k < ops_; ++k) {
            used[k] = static_cast<std::int64_t>(table_.live_bytes[k] - absent[k]);
        }
        return RangeMax(used);
    }

    std::uint64_t chunk_bytes(std::uint64_t left, std::uint64_t share = 1) const {
        if (options_.chunk_bytes == kWholeTensor) return left;
        const std::uint64_t unit = options_.part_bytes;
        const std::uint64_t chunk = std::max(unit, options_.chunk_bytes / share / unit * unit);
        // A small rest goes with its neighbour: every part pays the link's latency.
        return left < chunk + chunk / 2 ? left : chunk;
    }

    Action action(ActionKind kind, const Gap& gap, OpIndex op, std::uint64_t bytes) const {
        const bool whole = bytes == tensors_[gap.tensor].bytes;
        return {kind, gap.tensor, op % ops_, whole ? kWholeTensor : bytes};
    }

    /// Evictions go at once, first in, first out. What the host has already goes without a copy.
    void place_evictions() {
        std::uint64_t on_host = 0;
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            const Gap& gap = table_.gaps[g];
            if (g == 0 || gap.content != table_.gaps[g - 1].content) {
                on_host = table_.always_clean[gap.content] ? tensors_[gap.tensor].bytes : 0;
            }
            const std::uint64_t clean = std::min(on_host, away_[g]);
            on_host = std::max(on_host, away_[g]);
            if (clean > 0) plan_.actions.push_back(action(ActionKind::Out, gap, gap.from, clean));
            for (std::uint64_t left = away_[g] - clean; left > 0;) {
                const std::uint64_t bytes = chunk_bytes(left);
                left -= bytes;
                dirty_.push_back({g, bytes, table_.written[gap.content] % ops_});
            }
        }
        std::stable_sort(dirty_.begin(), dirty_.end(), [&](const DirtyPart& a, const DirtyPart& b) {
            return table_.gaps[a.gap].from < table_.gaps[b.gap].from;
        });
        first_dirty_.assign(ops_ + 1, 0);
        for (const DirtyPart& part : dirty_) ++first_dirty_[table_.gaps[part.gap].from + 1];
        for (OpIndex k = 0; k < ops_; ++k) first_dirty_[k + 1] += first_dirty_[k];
        written_.resize(ops_);
        for (std::uint32_t i = 0; i < dirty_.size(); ++i) written_[dirty_[i].written].push_back(i);
        std::stable_sort(plan_.actions.begin(), plan_.actions.end(),
                         [](const Action& a, const Action& b) { return a.op < b.op; });
    }

    void make_chunks() {
        first_chunk_.assign(table_.gaps.size() + 1, 0);
        needed_.resize(ops_);
        begun_.resize(ops_);
        placed_.resize(ops_);
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            const Gap& gap = table_.gaps[g];
            const std::uint64_t fetched = gap.last ? 0 : away_[g];
            if (fetched > 0) begun_[(gap.from + 1) % ops_].push_back(g);
            for (std::uint64_t left = fetched; left > 0;) {
                const std::uint64_t bytes = chunk_bytes(left, options_.units);
                left -= bytes;
                needed_[gap.to % ops_].push_back(static_cast<std::uint32_t>(chunks_.size()));
                chunks_.push_back({g, bytes, gap.to});
            }
            first_chunk_[g + 1] = static_cast<std::uint32_t>(chunks_.size());
        }
    }

    // -- while the replay runs: positions count on from one iteration to the next --

    struct Waiting {
        std::uint64_t deadline;  ///< position of its use
        std::uint32_t chunk;     ///< or part to copy
        bool operator>(const Waiting& o) const {
            return deadline != o.deadline ? deadline > o.deadline : chunk > o.chunk;
        }
    };

    void before(OpIndex op, const ReplayView& view, std::vector<Action>& actions) override {
        if (op == 0) begin_round();
        position_ = static_cast<std::uint64_t>(round_) * ops_ + op;
        if (asked_us_ >= 0) turn_us_[op == 0 ? ops_ - 1 : op - 1] = view.now_us() - asked_us_;
        asked_us_ = view.now_us();
        for (const std::uint32_t g : begun_[op]) {
            const Gap& gap = table_.gaps[g];
            const bool over_end = gap.to >= ops_ && gap.from + 1 < ops_;
            if (!last_round() || !over_end) take_back(g);
        }
        release_departed(view);
        for (const std::uint32_t c : placed_[op]) add_unit(c, op, actions);
        for (const std::uint32_t c : needed_[op]) {
            if (chunks_[c].place == table_.gaps[chunks_[c].gap].to) add_unit(c, op, actions);
        }
        const std::size_t fetches = actions.size();
        copy_in_advance(op, view, actions);
        if (round_ > 0 && !waiting_.empty()) fetch_ahead(op, view, fetches, actions);
        if (last_round()) {
            issued_actions_.insert(issued_actions_.end(), actions.begin(), actions.end());
        }
    }

    /// Keeps the link to the device busy, behind the first `fetches` actions.
    void fetch_ahead(OpIndex op, const ReplayView& view, std::size_t fetches,
                     std::vector<Action>& actions) {
        double backlog_us = view.fetch_backlog_us();
        for (std::size_t i = 0; i < fetches; ++i) backlog_us += transfer_us(actions[i]);
        const double wait_us = fetches > 0 ? backlog_us : view.needed_backlog_us();
        const double wanted_us = std::max(turn_us_[op], wait_us + workload_.op(op).duration_us);
        while (backlog_us < wanted_us + lead_us_ && pull_part(op, actions)) {
            backlog_us += transfer_us(actions.back());
        }
    }

    /// What has to be copied leaves in large parts where memory has room until it has gone.
    void ended(OpIndex op, const ReplayView& view, std::vector<Action>& actions) override {
        if (round_ == 0) {
            evict_in_parts(op, actions);
        } else {
            evict_by_room(op, view, actions);
        }
        const OpIndex last_op = ops_ - 1;
        if (op == last_op ? round_ + 2 == rounds_ : last_round()) {
            evictions_.insert(evictions_.end(), actions.begin(), actions.end());
        }
    }

    void evict_in_parts(OpIndex op, std::vector<Action>& actions) const {
        for (std::uint32_t i = first_dirty_[op]; i < first_dirty_[op + 1]; ++i) {
            const Gap& gap = table_.gaps[dirty_[i].gap];
            actions.push_back(action(ActionKind::Out, gap, gap.from, dirty_[i].bytes));
        }
    }

    void evict_by_room(OpIndex op, const ReplayView& view, std::vector<Action>& actions) const {
        if (first_dirty_[op] == first_dirty_[op + 1]) return;
        double ends_us = view.now_us() - started_us_ + view.eviction_backlog_us();
        for (std::uint32_t i = first_dirty_[op]; i < first_dirty_[op + 1];) {
            const DirtyPart& first = dirty_[i];
            std::uint64_t bytes = first.bytes;
            bool copied = first.copied != DirtyPart::kNotEarly;
            for (++i; i < first_dirty_[op + 1] && dirty_[i].gap == first.gap; ++i) {
                const bool next_copied = dirty_[i].copied != DirtyPart::kNotEarly;
                const std::uint64_t more = bytes + dirty_[i].bytes;
                if (copied || next_copied || !has_room_while_leaving(op, ends_us, more)) break;
                bytes = more;
            }
            if (!copied) ends_us += machine_.link.transfer_us(Direction::ToHost, bytes, true);
            const Gap& gap = table_.gaps[first.gap];
            actions.push_back(action(ActionKind::Out, gap, gap.from, bytes));
        }
    }

    /// Could so much stay until it has gone in one go?
    bool has_room_while_leaving(OpIndex op, double begins_us, std::uint64_t bytes) const {
        if (bytes > largest_bytes_) return false;
        const double until_us =
            begins_us + machine_.link.transfer_us(Direction::ToHost, bytes, true);
        std::uint64_t position = position_ + 1;
        while (position < position_ + ops_ && us_until(position) < until_us) ++position;
        const OpIndex end = op + static_cast<OpIndex>(position - position_);
        return present_.max(op + 1, end) + static_cast<std::int64_t>(bytes) <=
               static_cast<std::int64_t>(options_.budget_bytes);
    }

    /// Keeps the link to the host busy with what will leave soonest, up to what is to be early.
    void copy_in_advance(OpIndex op, const ReplayView& view, std::vector<Action>& actions) {
        const OpIndex last = op == 0 ? ops_ - 1 : op - 1;
        slow_backlog_us_ = std::max(0.0, slow_backlog_us_ - (view.now_us() - slow_at_us_));
        slow_at_us_ = view.now_us();
        for (std::uint32_t i = first_dirty_[last]; i < first_dirty_[last + 1]; ++i) {
            if (dirty_[i].copied != DirtyPart::kNotEarly) {
                early_ -= dirty_[i].bytes;
            } else {
                slow_backlog_us_ += slow_copy_us(dirty_[i].bytes);
            }
        }
        take_back_copies(last);
        if (options_.early_bytes.empty() || uncopied_.empty() || round_ == 0) return;
        const bool stalls = turn_us_[op] > kStalled * workload_.op(op).duration_us;
        const std::uint64_t most_early =
            options_.early_bytes[op] + (stalls ? stalled_margin_bytes_ : early_margin_bytes_);
        if (early_ >= most_early) return;
        double backlog_us = std::max(view.eviction_backlog_us(), slow_backlog_us_);
        const double wanted_us = std::max(turn_us_[op], workload_.op(op).duration_us) + lead_us_;
        while (!uncopied_.empty() && backlog_us < wanted_us && early_ < most_early) {
            const Waiting w = uncopied_.top();
            uncopied_.pop();
            DirtyPart& part = dirty_[w.chunk];
            const double us = machine_.link.transfer_us(Direction::ToHost, part.bytes, true);
            if (w.deadline <= position_) continue;
            if (us_until_turn(w.deadline) < kEarlyEnough * (backlog_us + us)) continue;
            part.copied = op;
            early_ += part.bytes;
            backlog_us += us;
            slow_backlog_us_ += slow_copy_us(part.bytes);
            actions.push_back(action(ActionKind::Copy, table_.gaps[part.gap], last, part.bytes));
        }
    }

    double slow_copy_us(std::uint64_t bytes) const {
        return kSlowerLink * machine_.link.transfer_us(Direction::ToHost, bytes, false);
    }

    /// What an operation has written can be copied until it is evicted.
    void take_back_copies(OpIndex written) {
        for (const std::uint32_t i : written_[written]) {
            dirty_[i].copied = DirtyPart::kNotEarly;
            const OpIndex window = (table_.gaps[dirty_[i].gap].from + ops_ - written) % ops_;
            if (window > 0) uncopied_.push({position_ + window, i});
        }
    }

    void started(OpIndex op, double now_us, std::uint64_t leaving_bytes) override {
        round_end_us_ = now_us + workload_.op(op).duration_us;
        const OpIndex last = op == 0 ? ops_ - 1 : op - 1;
        if (started_us_ >= 0) period_us_[last] = now_us - started_us_;
        started_us_ = now_us;
        leaving_[op] = static_cast<std::int64_t>(leaving_bytes);
    }

    void begin_round() {
        ++round_;
        choose_horizon();
        last_round_end_us_ = round_end_us_;
        if (round_ == 0) return;
        // What has been fetched before the end of the iteration is so again.
        for (std::uint32_t c = 0; last_round() && c < chunks_.size(); ++c) {
            const Gap& gap = table_.gaps[chunks_[c].gap];
            if (gap.to >= ops_ && chunks_[c].place < ops_) placed_[chunks_[c].place].push_back(c);
        }
        std::vector<std::int64_t> present = present_.values();
        for (OpIndex k = 0; k < ops_; ++k) present[k] += leaving_[k] - counted_[k];
        counted_ = leaving_;
        present_ = RangeMax(present);
        use_us_.assign(1, 0.0);
        turns_us_.assign(1, 0.0);
        for (OpIndex k = 0; k < ops_; ++k) {
            use_us_.push_back(use_us_.back() + period_us_[k]);
            turns_us_.push_back(turns_us_.back() + turn_us_[k]);
        }
    }

    /// The last round settles the fetches of what lies idle over the end of the iteration.
    bool last_round() const { return round_ + 1 == rounds_; }

    /// Each horizon once, then the one whose round was shortest.
    void choose_horizon() {
        const auto round = static_cast<std::size_t>(round_);
        const double took_us = round_end_us_ - last_round_end_us_;
        if (round > 1 && round <= horizons_.size() && took_us < best_round_us_) {
            best_round_us_ = took_us;
            best_horizon_ = horizons_[round - 1];
        }
        horizon_us_ = compute_us_ * (round < horizons_.size() ? horizons_[round] : best_horizon_);
    }

    /// A gap begins again: its fetches go back to their use, to be decided anew.
    void take_back(std::uint32_t g) {
        for (std::uint32_t c = first_chunk_[g]; c < first_chunk_[g + 1]; ++c) {
            Chunk& chunk = chunks_[c];
            const OpIndex to = table_.gaps[g].to;
            present_.add(chunk.place, to, -static_cast<std::int64_t>(chunk.bytes));
            chunk.place = to;
        }
        departing_.push_back(g);
    }

    /// Gaps whose parts have all gone out wait for the link in the order of their use.
    void release_departed(const ReplayView& view) {
        std::erase_if(departing_, [&](std::uint32_t g) {
            const Gap& gap = table_.gaps[g];
            if (view.is_leaving(gap.tensor)) return false;
            const OpIndex now = static_cast<OpIndex>(position_ % ops_);
            const std::uint64_t since = (now + ops_ - (gap.from + 1) % ops_) % ops_;
            const std::uint64_t deadline = position_ - since + (gap.to - gap.from - 1);
            for (std::uint32_t c = first_chunk_[g]; c < first_chunk_[g + 1]; ++c) {
                if (deadline > position_) waiting_.push({deadline, c});
            }
            return true;
        });
    }

    double transfer_us(const Action& a) const {
        return machine_.link.transfer_us(Direction::ToDevice, bytes_of(a, workload_), false);
    }

    void fetch(std::uint32_t c, OpIndex op, std::vector<Action>& actions) const {
        actions.push_back(
            action(ActionKind::In, table_.gaps[chunks_[c].gap], op, chunks_[c].bytes));
    }

    /// Fetches one more unit, in one go with those before it if they are of one part.
    void add_unit(std::uint32_t c, OpIndex op, std::vector<Action>& actions) const {
        const Chunk& chunk = chunks_[c];
        if (!actions.empty() && actions.back().tensor == table_.gaps[chunk.gap].tensor &&
            actions.back().bytes != kWholeTensor && options_.chunk_bytes != kWholeTensor &&
            actions.back().bytes + chunk.bytes <= options_.chunk_bytes / 4 * 5) {
            actions.back().bytes += chunk.bytes;
        } else {
            fetch(c, op, actions);
        }
    }

    /// Fetches what is needed first, up to a part of it, or more while memory has room for another
    /// part besides. False if it has no room for any.
    bool pull_part(OpIndex op, std::vector<Action>& actions) {
        std::uint32_t c = pull(op, 0);
        if (c == kNone) return false;
        fetch(c, op, actions);
        const std::uint32_t gap = chunks_[c].gap;
        std::uint64_t bytes = chunks_[c].bytes;
        while (bytes < largest_bytes_ && !waiting_.empty() &&
               chunks_[waiting_.top().chunk].gap == gap) {
            c = pull(op, bytes < options_.chunk_bytes ? 0 : options_.chunk_bytes);
            if (c == kNone) break;
            bytes += chunks_[c].bytes;
            actions.back().bytes = bytes;
        }
        return true;
    }

    /// Until the operation at a position starts, from where this one does.
    double us_until(std::uint64_t position) const { return between(use_us_, position); }
    /// Until the one before it has ended, from now on.
    double us_until_turn(std::uint64_t position) const { return between(turns_us_, position); }

    double between(const std::vector<double>& times, std::uint64_t position) const {
        const auto at = [&](std::uint64_t p) {
            return times[p % ops_] + times[ops_] * static_cast<double>(p / ops_);
        };
        return at(position) - at(position_);
    }

    /// The waiting chunk that is needed first, if memory has room for it and `spare` until then.
    std::uint32_t pull(OpIndex op, std::uint64_t spare) {
        while (!waiting_.empty()) {
            const Waiting w = waiting_.top();
            if (w.deadline <= position_) {
                waiting_.pop();
                continue;
            }
            Chunk& chunk = chunks_[w.chunk];
            if (us_until(w.deadline) > horizon_us_) return kNone;
            const auto bytes = static_cast<std::int64_t>(chunk.bytes);
            const auto room = static_cast<std::int64_t>(options_.budget_bytes) - bytes -
                              static_cast<std::int64_t>(spare);
            const OpIndex end = op + static_cast<OpIndex>(w.deadline - position_);
            if (present_.max(op, end) > room) return kNone;
            waiting_.pop();
            chunk.place = table_.gaps[chunk.gap].to - static_cast<OpIndex>(w.deadline - position_);
            present_.add(chunk.place, table_.gaps[chunk.gap].to, bytes);
            return w.chunk;
        }
        return kNone;
    }

    /// Fusion: parts of one tensor that are fetched in a row are one fetch.
    static void add_fused(const Action& a, Plan& plan) {
        if (!plan.actions.empty() && a.kind == ActionKind::In) {
            Action& before = plan.actions.back();
            if (before.kind == a.kind && before.tensor == a.tensor && before.op == a.op) {
                before.bytes += a.bytes;
                return;
            }
        }
        plan.actions.push_back(a);
    }

    void add_copies(Plan& plan) const {
        for (const DirtyPart& part : dirty_) {
            if (part.copied == DirtyPart::kNotEarly) continue;
            const OpIndex last = part.copied == 0 ? ops_ - 1 : part.copied - 1;
            plan.actions.push_back(
                action(ActionKind::Copy, table_.gaps[part.gap], last, part.bytes));
        }
    }

    void add_fetches(Plan& plan) const {
        std::vector<std::uint32_t> order(chunks_.size());
        std::iota(order.begin(), order.end(), 0U);
        const auto ahead = [&](std::uint32_t c) {
            return table_.gaps[chunks_[c].gap].to - chunks_[c].place;
        };
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            const OpIndex first = chunks_[a].place % ops_;
            const OpIndex second = chunks_[b].place % ops_;
            return first != second ? first < second : ahead(a) < ahead(b);
        });
        for (const std::uint32_t c : order) {
            const Chunk& chunk = chunks_[c];
            add_fused(action(ActionKind::In, table_.gaps[chunk.gap], chunk.place, chunk.bytes),
                      plan);
        }
    }

    const Workload& workload_;
    const Machine& machine_;
    const GapTable& table_;
    std::span<const std::uint64_t> away_;
    const ScheduleOptions& options_;
    const std::vector<Tensor>& tensors_;
    std::span<const double> horizons_;
    int rounds_;
    OpIndex ops_;
    RangeMax present_;  ///< U and what was still leaving in the round before, so never below U
    std::vector<std::int64_t> leaving_;
    std::vector<std::int64_t> counted_;  ///< of that, what present_ has
    std::vector<double> period_us_;      ///< from each operation's start to that of the next
    std::vector<double> use_us_;         ///< start of each operation in the round before
    std::vector<double> turn_us_;        ///< from the end of the operation before to its own
    std::vector<double> turns_us_;       ///< end of the operation before each, in the round before
    double asked_us_ = -1;               ///< end of the last operation
    std::vector<DirtyPart> dirty_;       ///< in the order of their evictions
    std::vector<std::uint32_t> first_dirty_;
    std::vector<std::vector<std::uint32_t>> written_;  ///< parts, by the operation that writes them
    std::uint64_t largest_bytes_ = 0;                  ///< of what is moved in one go
    std::uint64_t early_margin_bytes_ = 0;
    std::uint64_t stalled_margin_bytes_ = 0;
    std::uint64_t early_ = 0;  ///< copied in advance, and not yet evicted
    std::vector<Chunk> chunks_;
    std::vector<std::uint32_t> first_chunk_;
    std::vector<std::vector<std::uint32_t>> needed_;  ///< chunks, by the operation of their use
    std::vector<std::vector<std::uint32_t>> begun_;   ///< gaps, by their first operation
    std::vector<std::vector<std::uint32_t>> placed_;  ///< chunks that the last round has decided
    std::vector<std::uint32_t> departing_;
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> uncopied_;
    double compute_us_ = 0;
    double horizon_us_ = 0;
    double lead_us_ = 0;          ///< the link's queue holds this much beyond the next operation
    double slow_backlog_us_ = 0;  ///< of the link to the host, were it slower, at slow_at_us_
    double slow_at_us_ = 0;
    double started_us_ = -1;
    double round_end_us_ = 0;
    double last_round_end_us_ = 0;
    double best_round_us_ = std::numeric_limits<double>::infinity();
    double best_horizon_ = 1;
    int round_ = -1;
    std::uint64_t position_ = 0;
    Plan plan_;                           ///< evictions without a copy, while the replay runs
    std::vector<Action> evictions_;       ///< the others, of the last round
    std::vector<Action> issued_actions_;  ///< fetches and copies of the last round
};

}  // namespace

Schedule schedule(const Workload& workload, const Machine& machine, const GapTable& table,
                  std::span<const std::uint64_t> away_bytes, const ScheduleOptions& options) {
    return Scheduler(workload, machine, table, away_bytes, options).run();
}

}  // namespace libswap::cost
