// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/schedule.hpp"

#include <algorithm>
#include <array>
#include <queue>

#include "cost/range_max.hpp"

namespace libswap::cost {

namespace {

/// A part of a gap's bytes, which is fetched in one go. Its place is the operation before which it
/// is issued, counted as in Gap: from < place <= to.
struct Chunk {
    std::uint32_t gap = 0;
    std::uint64_t bytes = 0;
    OpIndex place = 0;
    OpIndex released = 0;  ///< first operation by whose start all of the gap has left
    double transfer_us = 0;
};

/// Urgent fetches take memory first: those needed within this share of an iteration, then more.
constexpr std::array<double, 5> kHorizons{0.01, 0.05, 0.2, 0.5, 1.0};

class Scheduler {
  public:
    Scheduler(const Workload& workload, const Machine& machine, const GapTable& table,
              std::span<const std::uint64_t> away_bytes, std::span<const double> op_start_us,
              const ScheduleOptions& options)
        : machine_(machine),
          table_(table),
          away_(away_bytes),
          start_(op_start_us),
          options_(options),
          tensors_(workload.tensors()),
          ops_(static_cast<OpIndex>(workload.op_count())),
          used_(memory_with_fetches_at_use()),
          load_us_(ops_) {}

    Plan run() {
        place_evictions();
        make_chunks();
        for (const double share : kHorizons) sweep(share * start_[ops_]);
        add_fetches();
        return std::move(plan_);
    }

  private:
    double start(OpIndex op) const {
        return op < ops_ ? start_[op] : start_[op - ops_] + start_[ops_];
    }

    RangeMax memory_with_fetches_at_use() const {
        std::vector<std::int64_t> change(ops_ + 1);
        for (std::size_t g = 0; g < table_.gaps.size(); ++g) {
            const Gap& gap = table_.gaps[g];
            const auto bytes = static_cast<std::int64_t>(away_[g]);
            const OpIndex first = gap.from + 1;
            if (gap.to <= ops_) {
                change[first] -= bytes;
                change[gap.to] += bytes;
            } else {
                change[first] -= bytes;
                change[0] -= bytes;
                change[gap.to - ops_] += bytes;
            }
        }
        std::vector<std::int64_t> used(ops_);
        std::int64_t sum = 0;
        for (OpIndex k = 0; k < ops_; ++k) {
            sum += change[k];
            used[k] = static_cast<std::int64_t>(table_.live_bytes[k]) + sum;
        }
        return RangeMax(used);
    }

    std::uint64_t chunk_bytes(std::uint64_t left) const {
        if (options_.chunk_bytes == kWholeTensor) return left;
        const std::uint64_t unit = options_.part_bytes;
        const std::uint64_t chunk = std::max(unit, options_.chunk_bytes / unit * unit);
        // A small rest goes with its neighbour: every part pays the link's latency.
        return left < chunk + chunk / 2 ? left : chunk;
    }

    void add(ActionKind kind, const Gap& gap, OpIndex op, std::uint64_t bytes) {
        const bool whole = bytes == tensors_[gap.tensor].bytes;
        plan_.actions.push_back({kind, gap.tensor, op % ops_, whole ? kWholeTensor : bytes});
    }

    /// Evictions go at once, first in, first out. What the host has already goes without a copy.
    void place_evictions() {
        find_clean_parts();
        std::vector<std::uint32_t> order(table_.gaps.size());
        for (std::uint32_t g = 0; g < order.size(); ++g) order[g] = g;
        std::erase_if(order, [&](std::uint32_t g) { return away_[g] == 0; });
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return table_.gaps[a].from < table_.gaps[b].from;
        });
        left_us_.assign(table_.gaps.size(), 0);
        double link_free_us = 0;
        // Twice, as the first round does not know what the end of an iteration leaves to the next.
        for (int round = 0; round < 2; ++round) {
            for (const std::uint32_t g : order) {
                const double ready_us = start(table_.gaps[g].from + 1) + machine_.reaction_us;
                left_us_[g] = ready_us;
                evict(g, round == 1, link_free_us);
            }
            link_free_us = std::max(0.0, link_free_us - start_[ops_]);
        }
    }

    void evict(std::uint32_t g, bool write, double& link_free_us) {
        const Gap& gap = table_.gaps[g];
        const std::uint64_t clean = std::min(clean_[g], away_[g]);
        if (write && clean > 0) add(ActionKind::Out, gap, gap.from, clean);
        for (std::uint64_t left = away_[g] - clean; left > 0;) {
            const std::uint64_t bytes = chunk_bytes(left);
            left -= bytes;
            if (write) add(ActionKind::Out, gap, gap.from, bytes);
            link_free_us = std::max(link_free_us, left_us_[g]) +
                           machine_.link.transfer_us(Direction::ToHost, bytes, true);
        }
        if (away_[g] > clean) left_us_[g] = link_free_us;
    }

    void find_clean_parts() {
        clean_.assign(table_.gaps.size(), 0);
        std::uint64_t on_host = 0;
        for (std::size_t g = 0; g < table_.gaps.size(); ++g) {
            const bool first = g == 0 || table_.gaps[g].content != table_.gaps[g - 1].content;
            if (first) {
                on_host = table_.always_clean[table_.gaps[g].content]
                              ? tensors_[table_.gaps[g].tensor].bytes
                              : 0;
            }
            clean_[g] = on_host;
            on_host = std::max(on_host, away_[g]);
        }
    }

    void make_chunks() {
        for (std::uint32_t g = 0; g < table_.gaps.size(); ++g) {
            const Gap& gap = table_.gaps[g];
            const OpIndex released = first_op_after(left_us_[g], gap);
            for (std::uint64_t left = away_[g]; left > 0;) {
                const std::uint64_t bytes = chunk_bytes(left);
                left -= bytes;
                const double us = machine_.link.transfer_us(Direction::ToDevice, bytes, true);
                load_us_[gap.to % ops_] += us;
                chunks_.push_back({g, bytes, gap.to, released, us});
            }
        }
    }

    OpIndex first_op_after(double us, const Gap& gap) const {
        OpIndex lo = gap.from + 1;
        OpIndex hi = gap.to;
        while (lo < hi) {
            const OpIndex mid = (lo + hi) / 2;
            if (start(mid) < us) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        return lo;
    }

    struct Waiting {
        OpIndex deadline;  ///< place of the chunk, counted from this iteration's start
        std::uint32_t chunk;
        OpIndex offset;
        bool operator>(const Waiting& o) const {
            return deadline != o.deadline ? deadline > o.deadline : chunk > o.chunk;
        }
    };

    void sweep(double horizon_us) {
        std::vector<std::vector<Waiting>> released(ops_);
        for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
            const Chunk& chunk = chunks_[c];
            if (chunk.released < ops_ && chunk.released < chunk.place) {
                released[chunk.released].push_back({chunk.place, c, 0});
            }
            const OpIndex from = std::max(chunk.released, ops_) - ops_;
            if (chunk.place > ops_ + from) {
                released[from].push_back({chunk.place - ops_, c, ops_});
            }
        }
        std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
        for (OpIndex k = 0; k < ops_; ++k) {
            for (const Waiting& w : released[k]) waiting.push(w);
            link_free_us_ = std::max(link_free_us_, start_[k]) + load_us_[k];
            while (link_free_us_ < start_[k + 1] && pull(waiting, k, horizon_us)) {
            }
        }
        link_free_us_ = std::max(0.0, link_free_us_ - start_[ops_]);
    }

    /// Moves the waiting chunk that is needed first to operation k, if there is one and memory has
    /// room for it from there to where it is now.
    template <typename Queue>
    bool pull(Queue& waiting, OpIndex k, double horizon_us) {
        while (!waiting.empty()) {
            const Waiting w = waiting.top();
            Chunk& chunk = chunks_[w.chunk];
            if (w.deadline <= k || chunk.place != w.deadline + w.offset) {
                waiting.pop();
                continue;
            }
            if (start(w.deadline) > start_[k] + horizon_us) return false;
            const auto bytes = static_cast<std::int64_t>(chunk.bytes);
            if (used_.max(k, w.deadline) + bytes > static_cast<std::int64_t>(options_.budget_bytes))
                return false;
            waiting.pop();
            used_.add(k, w.deadline, bytes);
            load_us_[w.deadline % ops_] -= chunk.transfer_us;
            load_us_[k] += chunk.transfer_us;
            chunk.place = k + w.offset;
            link_free_us_ += chunk.transfer_us;
            return true;
        }
        return false;
    }

    void add_fetches() {
        std::stable_sort(chunks_.begin(), chunks_.end(), [&](const Chunk& a, const Chunk& b) {
            const OpIndex pa = a.place % ops_;
            const OpIndex pb = b.place % ops_;
            if (pa != pb) return pa < pb;
            const OpIndex da = table_.gaps[a.gap].to - a.place;
            const OpIndex db = table_.gaps[b.gap].to - b.place;
            return da < db;
        });
        for (std::size_t c = 0; c < chunks_.size(); ++c) {
            std::uint64_t bytes = chunks_[c].bytes;
            // Fusion: parts of one tensor that are fetched in a row are one fetch.
            for (; c + 1 < chunks_.size() && chunks_[c + 1].gap == chunks_[c].gap &&
                   chunks_[c + 1].place == chunks_[c].place;
                 ++c) {
                bytes += chunks_[c + 1].bytes;
            }
            add(ActionKind::In, table_.gaps[chunks_[c].gap], chunks_[c].place, bytes);
        }
    }

    const Machine& machine_;
    const GapTable& table_;
    std::span<const std::uint64_t> away_;
    std::span<const double> start_;
    const ScheduleOptions& options_;
    const std::vector<Tensor>& tensors_;
    OpIndex ops_;
    RangeMax used_;
    std::vector<double> load_us_;  ///< link time of the fetches placed at each operation
    std::vector<std::uint64_t> clean_;
    std::vector<double> left_us_;
    std::vector<Chunk> chunks_;
    double link_free_us_ = 0;
    Plan plan_;
};

}  // namespace

Plan schedule(const Workload& workload, const Machine& machine, const GapTable& table,
              std::span<const std::uint64_t> away_bytes, std::span<const double> op_start_us,
              const ScheduleOptions& options) {
    return Scheduler(workload, machine, table, away_bytes, op_start_us, options).run();
}

}  // namespace libswap::cost
