// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/hierarchy/replacement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <random>

namespace libswap::bench {

namespace {

constexpr std::uint32_t kLaunches = 6;
constexpr std::size_t kLeastEvictions = 40;
constexpr double kWrong = 0.08;  // of the evictions may be read wrongly, for noise
constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

/// A set of the tree kind of pseudo-LRU, full of lines 0 to ways - 1, of ways + 1 that are read.
class TreeSet {
  public:
    explicit TreeSet(std::uint32_t ways) : lines_(ways), right_(ways, false) {
        for (std::uint32_t w = 0; w < ways; ++w) {
            lines_[w] = w;
            touch(w);
        }
    }

    bool access(std::uint32_t line) {
        const auto found = std::find(lines_.begin(), lines_.end(), line);
        const std::uint32_t way =
            found == lines_.end() ? victim() : static_cast<std::uint32_t>(found - lines_.begin());
        lines_[way] = line;
        touch(way);
        return found == lines_.end();
    }

  private:
    void touch(std::uint32_t way) {
        std::uint32_t low = 0;
        auto high = static_cast<std::uint32_t>(lines_.size());
        while (high - low > 1) {
            const std::uint32_t middle = (low + high + 1) / 2;
            right_[middle] = way < middle;
            (way < middle ? high : low) = middle;
        }
    }
    std::uint32_t victim() const {
        std::uint32_t low = 0;
        auto high = static_cast<std::uint32_t>(lines_.size());
        while (high - low > 1) {
            const std::uint32_t middle = (low + high + 1) / 2;
            (right_[middle] ? low : high) = middle;
        }
        return low;
    }

    std::vector<std::uint32_t> lines_;
    std::vector<bool> right_;
};

struct Evictions {
    std::vector<double> by_age;  // counts
    std::size_t total = 0, oldest = 0, first_come = 0;
};

/// Reads the victims of one trace. `settle`: loads at its start that only fill the set.
void read_evictions(const SetTrace& trace, std::uint32_t ways, std::size_t settle, Evictions& out) {
    std::vector<std::uint32_t> used(ways + 1, kNever);  // when last
    std::vector<std::uint32_t> came(ways + 1, kNever);
    std::vector<std::uint32_t> used_before;  // as of the miss whose victim is not known yet
    std::vector<std::uint32_t> came_before;
    std::uint32_t newcomer = kNever;
    for (std::uint32_t t = 0; t < trace.lines.size(); ++t) {
        const std::uint32_t line = trace.lines[t];
        if (trace.missed[t]) {
            if (newcomer != kNever && line != newcomer && t > settle &&
                std::find(used_before.begin(), used_before.end(), kNever) == used_before.end()) {
                std::uint32_t age = 0;
                std::uint32_t earlier = 0;
                for (std::uint32_t other = 0; other <= ways; ++other) {
                    if (other == newcomer || other == line) continue;
                    age += used_before[other] > used_before[line] ? 1 : 0;
                    earlier += came_before[other] != kNever && came_before[line] != kNever &&
                                       came_before[other] < came_before[line]
                                   ? 1
                                   : 0;
                }
                out.by_age[age] += 1;
                ++out.total;
                out.oldest += age == ways - 1 ? 1 : 0;
                out.first_come += came_before[line] == kNever || earlier == 0 ? 1 : 0;
            }
            newcomer = line;
            used_before = used;
            came_before = came;
            came[line] = t;
        }
        used[line] = t;
    }
}

SetTrace simulate_tree(std::uint32_t ways, std::size_t loads) {
    SetTrace trace;
    TreeSet set(ways);
    std::mt19937 random(7);
    std::uniform_int_distribution<std::uint32_t> any(0, ways);
    for (std::size_t t = 0; t < loads; ++t) {
        const std::uint32_t line = any(random);
        trace.lines.push_back(line);
        trace.missed.push_back(set.access(line));
    }
    return trace;
}

/// How old the victims of a tree are, on average.
const std::vector<double>& tree_ages(std::uint32_t ways) {
    static std::mutex mutex;
    static std::map<std::uint32_t, std::vector<double>> known;
    std::lock_guard lock(mutex);
    auto& ages = known[ways];
    if (!ages.empty()) return ages;
    Evictions evictions;
    evictions.by_age.assign(ways, 0);
    constexpr std::size_t kLoadsPerWay = 4000;
    read_evictions(simulate_tree(ways, kLoadsPerWay * (ways + 1)), ways, 10 * ways, evictions);
    ages = evictions.by_age;
    for (double& part : ages)
        part /= static_cast<double>(std::max<std::size_t>(1, evictions.total));
    return ages;
}

double log_likelihood(const Evictions& seen, const std::vector<double>& expected) {
    double sum = 0;
    const auto ways = static_cast<double>(expected.size());
    for (std::size_t age = 0; age < expected.size(); ++age)
        sum += seen.by_age[age] * std::log((1 - kWrong) * expected[age] + kWrong / ways);
    return sum / static_cast<double>(seen.total);
}

/// The most that a policy could have reached: that of exactly these ages. Far below it, none fits.
double best_likelihood(const Evictions& seen) {
    std::vector<double> exact(seen.by_age);
    for (double& part : exact) part /= static_cast<double>(seen.total);
    return log_likelihood(seen, exact);
}

}  // namespace

const char* policy_name(Policy policy) {
    constexpr std::array<const char*, 6> kNames{"not determined", "direct-mapped", "LRU",
                                                "pseudo-LRU",     "random",        "FIFO"};
    return kNames[static_cast<std::size_t>(policy)];
}

PolicyFinding judge_policy(const std::vector<SetTrace>& traces, std::uint32_t ways) {
    PolicyFinding finding;
    if (ways <= 1) {
        finding.policy = Policy::DirectMapped;
        return finding;
    }
    Evictions seen;
    seen.by_age.assign(ways, 0);
    for (const SetTrace& trace : traces) read_evictions(trace, ways, trace.lines.size() / 3, seen);
    finding.evictions = seen.total;
    if (seen.total < kLeastEvictions) return finding;
    const auto total = static_cast<double>(seen.total);
    finding.oldest_part = static_cast<double>(seen.oldest) / total;
    finding.first_come_part = static_cast<double>(seen.first_come) / total;
    finding.by_age = seen.by_age;
    for (double& part : finding.by_age) part /= total;

    std::vector<double> oldest(ways, 0);
    oldest.back() = 1;
    const std::vector<double> any(ways, 1.0 / ways);
    // First in, first out is not told by ages but by the order of coming.
    const double first_come = finding.first_come_part;
    const double fifo = first_come * std::log(1 - kWrong + kWrong / ways) +
                        (1 - first_come) * std::log(kWrong / ways);
    struct Candidate {
        double likelihood;
        Policy policy;
    };
    std::vector<Candidate> candidates{{log_likelihood(seen, oldest), Policy::Lru},
                                      {log_likelihood(seen, any), Policy::Random},
                                      {fifo, Policy::Fifo}};
    if (ways > 2) candidates.push_back({log_likelihood(seen, tree_ages(ways)), Policy::PseudoLru});
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.likelihood > b.likelihood; });
    finding.certainty = candidates[0].likelihood - candidates[1].likelihood;
    constexpr double kFarOff = 0.35;
    const bool fits =
        candidates[0].policy == Policy::Fifo
            ? first_come > 1 - 3 * kWrong
            : best_likelihood(seen) - candidates[0].likelihood < kFarOff + ways / total;
    if (fits) finding.policy = candidates[0].policy;
    return finding;
}

PolicyFinding find_policy(Prober& prober, const LevelView& view,
                          const std::vector<std::uint64_t>& group, std::uint32_t companion_bytes) {
    if (group.size() < 2) return {};
    const auto ways = static_cast<std::uint32_t>(group.size() - 1);
    const std::uint32_t threshold = view.threshold.cycles(group.size());
    std::mt19937 random(11);
    std::uniform_int_distribution<std::uint32_t> any(0, ways);
    std::vector<SetTrace> traces;
    const std::uint32_t launches = ways > 1 ? kLaunches + ways / 8 : 0;
    for (std::uint32_t launch = 0; launch < launches; ++launch) {
        SetTrace trace;
        std::vector<std::uint64_t> sequence;
        for (std::size_t k = 0; k < Prober::kMostSamples; ++k) {
            trace.lines.push_back(any(random));
            sequence.push_back(group[trace.lines.back()]);
        }
        const auto cycles = prober.probe(view.path, sequence, companion_bytes);
        if (cycles.size() != sequence.size()) return {};
        for (const std::uint32_t c : cycles) trace.missed.push_back(c >= threshold);
        traces.push_back(std::move(trace));
    }
    return judge_policy(traces, ways);
}

}  // namespace libswap::bench
