// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/g10.hpp"

#include <algorithm>
#include <queue>

#include <fmt/format.h>

namespace libswap::cost {

namespace {

constexpr double kTargetShare = 0.99;  // of the budget
constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

/// A period that was taken. Operations count on past the end of the iteration.
struct Migration {
    IdleSpan span;
    OpIndex evicted = 0;   // the operation by whose end it is away
    OpIndex fetch_at = 0;  // the operation at which its fetch begins
};

class G10 {
  public:
    explicit G10(const RivalInput& input) : in_(input), spans_(input.table.idle_spans(true)) {
        ops_ = static_cast<OpIndex>(input.workload().op_count());
        memory_.assign(input.table.live_bytes().begin(), input.table.live_bytes().end());
        limit_ = static_cast<std::int64_t>(kTargetShare * static_cast<double>(input.budget_bytes));
        for (OpIndex k = 0; k < ops_; ++k) {
            const double us = input.workload().op(k).duration_us;
            out_left_.push_back(us * input.machine.link.to_host.bytes_per_us(UINT64_MAX));
            in_left_.push_back(us * input.machine.link.to_device.bytes_per_us(UINT64_MAX));
        }
    }

    void run() {
        take_all(true);
        take_all(false);
        move_earlier();
    }

    std::size_t taken() const { return taken_.size(); }

    Advice advise() const {
        Advice advice(ops_);
        for (const Migration& m : taken_) {  // sorted by fetch_at
            advice.evict_after[m.span.from].push_back(m.span.tensor);
            advice.fetch_at[m.fetch_at % ops_].push_back(m.span.tensor);
        }
        return advice;
    }

  private:
    struct Entry {
        double benefit;
        double area;  // breaks ties: idle time times bytes
        std::uint32_t span;
        bool operator<(const Entry& o) const {
            if (benefit != o.benefit) return benefit < o.benefit;
            return area != o.area ? area < o.area : span > o.span;
        }
    };

    double op_us(OpIndex k) const { return in_.workload().op(k % ops_).duration_us; }

    double idle_us(const IdleSpan& s) const {
        const double whole = in_.table.start_us(ops_);
        const double end = in_.table.start_us(s.to % ops_) + (s.to >= ops_ ? whole : 0);
        return end - in_.table.start_us(s.from + 1);
    }

    /// The first operation by whose end the ledger from the span's start on holds `bytes`; span.to
    /// if none does.
    OpIndex out_done(const IdleSpan& s, double bytes) const {
        double sum = 0;
        for (OpIndex k = s.from + 1; k < s.to; ++k) {
            if ((sum += out_left_[k % ops_]) >= bytes) return k;
        }
        return s.to;
    }

    /// Likewise backwards from its end: the operation at which a fetch has to begin; span.from if
    /// there is none.
    OpIndex in_begin(const IdleSpan& s, double bytes) const {
        double sum = 0;
        for (OpIndex k = s.to; k-- > s.from + 1;) {
            if ((sum += in_left_[k % ops_]) >= bytes) return k;
        }
        return s.from;
    }

    double benefit(const IdleSpan& s, bool by_ledger) const {
        const auto bytes = static_cast<double>(in_.bytes(s.tensor));
        const OpIndex begin = by_ledger ? out_done(s, bytes / 2) : s.from + 1;
        const OpIndex end = by_ledger ? in_begin(s, bytes / 2) : s.to;
        double us = 0;
        for (OpIndex k = begin; k < end; ++k) {
            if (memory_[k % ops_] > limit_) us += op_us(k);
        }
        return us * bytes;
    }

    void take_all(bool by_ledger) {
        std::priority_queue<Entry> queue;
        for (std::uint32_t i = 0; i < spans_.size(); ++i) {
            const IdleSpan& s = spans_[i];
            const double transfers = in_.copy_us(Direction::ToHost, s.tensor) +
                                     in_.copy_us(Direction::ToDevice, s.tensor);
            if (in_.bytes(s.tensor) == 0 || (by_ledger && idle_us(s) <= transfers)) continue;
            const double area = idle_us(s) * static_cast<double>(in_.bytes(s.tensor));
            queue.push({benefit(s, by_ledger), area, i});
        }
        used_.resize(spans_.size());
        while (!queue.empty() && over()) {
            Entry top = queue.top();
            queue.pop();
            if (used_[top.span]) continue;
            const double now = benefit(spans_[top.span], by_ledger);
            if (now <= 0) continue;
            if (now < top.benefit && !queue.empty() && now < queue.top().benefit) {
                top.benefit = now;
                queue.push(top);
                continue;
            }
            used_[top.span] =
                by_ledger ? take_by_ledger(spans_[top.span]) : tolerate(spans_[top.span]);
        }
    }

    bool over() const {
        return std::any_of(memory_.begin(), memory_.end(),
                           [&](std::int64_t bytes) { return bytes > limit_; });
    }

    bool take_by_ledger(const IdleSpan& s) {
        const auto bytes = static_cast<double>(in_.bytes(s.tensor));
        const OpIndex evicted = out_done(s, bytes);
        const OpIndex fetch_at = in_begin(s, bytes);
        if (fetch_at <= evicted) return false;
        double left = bytes;
        for (OpIndex k = s.from + 1; left > 0 && k < s.to; ++k)
            left -= debit(out_left_[k % ops_], left);
        left = bytes;
        for (OpIndex k = s.to; left > 0 && k-- > s.from + 1;)
            left -= debit(in_left_[k % ops_], left);
        take({s, evicted, fetch_at});
        return true;
    }

    static double debit(double& ledger, double wanted) {
        const double n = std::min(ledger, wanted);
        ledger -= n;
        return n;
    }

    bool tolerate(const IdleSpan& s) {
        double left_us = in_.copy_us(Direction::ToDevice, s.tensor);
        OpIndex fetch_at = s.to;
        while (left_us > 0 && fetch_at > s.from + 2) left_us -= op_us(--fetch_at);
        // Late rather than useless: the fetch may begin where memory is within its limit.
        while (fetch_at < s.to && memory_[fetch_at % ops_] > limit_) ++fetch_at;
        take({s, s.from, fetch_at});
        return true;
    }

    void take(const Migration& m) {
        taken_.push_back(m);
        for (OpIndex k = m.evicted + 1; k < m.fetch_at; ++k) {
            memory_[k % ops_] -= static_cast<std::int64_t>(in_.bytes(m.span.tensor));
        }
    }

    void move_earlier() {
        const auto by_fetch = [](const Migration& a, const Migration& b) {
            return a.fetch_at < b.fetch_at;
        };
        std::stable_sort(taken_.begin(), taken_.end(), by_fetch);
        for (Migration& m : taken_) {
            const auto bytes = static_cast<std::int64_t>(in_.bytes(m.span.tensor));
            while (m.fetch_at > m.evicted + 1 &&
                   memory_[(m.fetch_at - 1) % ops_] + bytes <= limit_) {
                memory_[--m.fetch_at % ops_] += bytes;
            }
        }
        std::stable_sort(taken_.begin(), taken_.end(), by_fetch);
    }

    const RivalInput& in_;
    OpIndex ops_ = 0;
    std::vector<IdleSpan> spans_;
    std::vector<bool> used_;
    std::vector<std::int64_t> memory_;
    std::int64_t limit_ = 0;
    std::vector<double> out_left_;
    std::vector<double> in_left_;
    std::vector<Migration> taken_;
};

}  // namespace

RivalResult g10_plan(const RivalInput& input) {
    G10 g10(input);
    g10.run();
    return run_advice(input, g10.advise(), {.page_bytes = input.page_bytes(kPageBytes)},
                      fmt::format("{} migrations", g10.taken()));
}

}  // namespace libswap::cost
