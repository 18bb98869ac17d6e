// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/hierarchy/residency.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace libswap::bench {

namespace {

constexpr std::uint32_t kCleanRounds = 3;
/// Rounds after which what still misses goes on missing, unless replacement is random. Less for
/// long circles, which take their time.
constexpr std::uint64_t kSettlingRounds = 24;
constexpr std::uint64_t kLongSettlingRounds = 8;
constexpr std::uint64_t kLongCircle = 2048;

std::uint64_t settling_rounds(std::uint64_t count) {
    return count > kLongCircle ? kLongSettlingRounds : kSettlingRounds;
}
constexpr std::uint64_t kPageBytes = 65536;  // the smallest that devices translate
constexpr std::uint64_t kUntranslatedBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostLoads = 6'000'000;  // of one test

/// Slow loads in the last rounds, of lines that count.
struct Slow {
    std::uint64_t total = 0;
    std::map<std::uint32_t, std::uint32_t> by_line;
};

struct Circle {
    std::uint64_t start_bytes = 0;
    std::uint64_t step_bytes = 0;
    std::uint32_t count = 0;
    std::uint32_t companion_bytes = 0;
    bool downwards = false;
    std::uint32_t order = 1;  ///< from one line to the next, unless downwards; coprime to the count

    std::uint32_t next() const { return downwards && count > 1 ? count - 1 : order; }
    std::uint32_t line(std::uint64_t load) const {
        return static_cast<std::uint32_t>(load % count * next() % count);
    }
};

/// Orders in which a circle of `count` can be read, other than up and down, as far apart as they
/// go: the golden section never meets the same twice. 0: there is no such order.
std::uint32_t order_through(std::uint32_t count, std::uint32_t which) {
    constexpr double kGoldenSection = 0.6180339887;
    const double part = std::fmod(0.38 + kGoldenSection * which, 1.0);
    auto order = std::max<std::uint32_t>(2, static_cast<std::uint32_t>(part * count));
    while (order < count && std::gcd(order, count) != 1) ++order;
    return order < count ? order : 0;
}

/// Downwards, the first load of a page is that of its last line, and that of the highest line.
bool counts(const Circle& circle, std::uint32_t line) {
    if (!circle.downwards || circle.step_bytes * circle.count <= kUntranslatedBytes) return true;
    const std::uint64_t offset = line * circle.step_bytes;
    return line + 1 != circle.count && offset % kPageBytes + circle.step_bytes < kPageBytes;
}

Slow slow_loads(Prober& prober, const LevelView& view, const Circle& circle, std::uint64_t rounds,
                std::uint32_t told_rounds) {
    Sweep sweep;
    sweep.path = view.path;
    sweep.start_bytes = circle.start_bytes;
    sweep.length_bytes = circle.step_bytes * circle.count;
    sweep.step_bytes = circle.step_bytes * circle.next();
    sweep.skip = static_cast<std::uint32_t>((rounds - told_rounds) * circle.count);
    sweep.count = told_rounds * circle.count;
    sweep.threshold_cycles = view.threshold.cycles(sweep.count);
    sweep.companion_bytes = circle.companion_bytes;
    const SweepResult result = prober.sweep(sweep);
    Slow slow;
    // What was not told is as the part that was.
    const std::uint64_t untold = result.flagged - result.samples.size();
    for (const Sample& s : result.samples) {
        const std::uint32_t line = circle.line(s.index);
        if (!counts(circle, line)) continue;
        ++slow.total;
        ++slow.by_line[line];
    }
    slow.total += untold;
    return slow;
}

/// Rounds to try, one after the other: a few, and where lines of before may be in the way of random
/// replacement, many.
std::vector<std::uint64_t> round_plan(const LevelView& view, std::uint64_t count) {
    std::vector<std::uint64_t> plan{kCleanRounds + 2, settling_rounds(count)};
    if (!view.starts_empty) plan.push_back(12 * count + 64);
    for (std::uint64_t& rounds : plan)
        rounds = std::clamp<std::uint64_t>(kMostLoads / std::max<std::uint64_t>(1, count),
                                           kCleanRounds + 2, rounds);
    plan.erase(std::unique(plan.begin(), plan.end()), plan.end());
    return plan;
}

/// Reads the circle in other orders, about `rounds` times in all. Lines of before can sit in a
/// tree's blind spot for ever while the order stays the same.
void shake(Prober& prober, const LevelView& view, const Circle& circle, std::uint64_t rounds,
           std::uint32_t first_order) {
    constexpr std::uint32_t kOrders = 6;
    for (std::uint32_t which = 0; which < kOrders; ++which) {
        Sweep sweep;
        sweep.path = view.path;
        sweep.start_bytes = circle.start_bytes;
        sweep.length_bytes = circle.step_bytes * circle.count;
        sweep.step_bytes = circle.step_bytes * order_through(circle.count, first_order + which);
        sweep.skip = static_cast<std::uint32_t>((rounds / kOrders + 1) * circle.count);
        sweep.companion_bytes = circle.companion_bytes;
        if (sweep.step_bytes != 0) prober.sweep(sweep);
    }
}

/// Lines that missed in every round.
std::vector<std::uint32_t> steady_lines(const Slow& slow) {
    std::vector<std::uint32_t> lines;
    for (const auto& [line, times] : slow.by_line)
        if (times == kCleanRounds) lines.push_back(line);
    return lines;
}

/// So many do not vanish with more rounds. Of a few lines they may: random replacement can throw
/// them out for those of before, again and again.
bool all_slow(const Circle& circle, const Slow& slow) {
    constexpr std::uint32_t kFew = 16;
    constexpr double kNearlyAll = 0.9;
    return circle.count >= kFew &&
           static_cast<double>(slow.total) >= kNearlyAll * kCleanRounds * circle.count;
}

enum class Verdict { Fits, DoesNot, Unknown };

/// Shakes, and reads the circle for some rounds.
Verdict try_circle(Prober& prober, const LevelView& view, const Circle& circle,
                   std::uint64_t rounds) {
    const bool settles = rounds >= settling_rounds(circle.count);
    const bool shakes = settles && !view.starts_empty && circle.count > 2;
    // What misses in every round, and again after other orders, does not vanish with more of them.
    constexpr std::uint32_t kAttempts = 4;
    std::vector<std::uint32_t> before;
    for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
        if (shakes) shake(prober, view, circle, rounds / 2, 6 * attempt);
        const Slow slow = slow_loads(prober, view, circle, rounds, kCleanRounds);
        if (!prober.error().empty()) return Verdict::DoesNot;
        if (slow.total == 0) return Verdict::Fits;
        if (!settles) return all_slow(circle, slow) ? Verdict::DoesNot : Verdict::Unknown;
        if (slow.total > std::max<std::uint64_t>(8, circle.count)) return Verdict::DoesNot;
        const std::vector<std::uint32_t> steady = steady_lines(slow);
        if (steady.size() < 2) return Verdict::Unknown;
        if (!shakes || steady == before) return Verdict::DoesNot;
        before = steady;
    }
    return Verdict::DoesNot;
}

bool circle_fits(Prober& prober, const LevelView& view, const Circle& circle) {
    for (const std::uint64_t rounds : round_plan(view, circle.count)) {
        const Verdict verdict = try_circle(prober, view, circle, rounds);
        if (verdict != Verdict::Unknown) return verdict == Verdict::Fits;
    }
    return false;
}

template <typename Fits>
std::uint32_t bisect(std::uint32_t least, std::uint32_t most, Fits fits) {
    std::uint32_t low = least;  // fits, or is not known to
    std::uint32_t high = most + 1;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low;
}

}  // namespace

bool fits(Prober& prober, const LevelView& view, const Stride& stride) {
    Circle circle;
    circle.step_bytes = stride.step_bytes + view.stagger_bytes;
    circle.count = stride.count;
    circle.companion_bytes = stride.companion_bytes;
    if (circle.step_bytes * circle.count > prober.bytes()) return false;
    return circle_fits(prober, view, circle);
}

std::uint32_t largest_fit(Prober& prober, const LevelView& view, Stride stride, std::uint32_t least,
                          std::uint32_t most) {
    return bisect(least, most, [&](std::uint32_t count) {
        stride.count = count;
        return fits(prober, view, stride);
    });
}

bool run_fits(Prober& prober, const LevelView& view, std::uint64_t line_bytes,
              std::uint32_t lines) {
    Circle circle;
    circle.step_bytes = line_bytes;
    circle.count = lines;
    circle.downwards = true;
    if (line_bytes * lines > prober.bytes()) return false;
    return circle_fits(prober, view, circle);
}

std::uint32_t longest_run(Prober& prober, const LevelView& view, std::uint64_t line_bytes,
                          std::uint32_t least, std::uint32_t most) {
    return bisect(least, most,
                  [&](std::uint32_t lines) { return run_fits(prober, view, line_bytes, lines); });
}

void find_slow_offsets(Prober& prober, const LevelView& view, const Run& run, std::uint32_t which,
                       std::set<std::uint64_t>* offsets) {
    constexpr std::uint64_t kRoundsDown = 60;
    constexpr std::uint64_t kRounds = 12;
    constexpr std::uint32_t kOrders = 4;
    Circle circle;
    circle.step_bytes = run.line_bytes;
    circle.count = run.lines;
    circle.downwards = which == 0;
    if (which != 0) circle.companion_bytes = run.companion_bytes;
    const std::uint64_t rounds = std::clamp<std::uint64_t>(kMostLoads / run.lines, kCleanRounds + 2,
                                                           which == 0 ? kRoundsDown : kRounds);
    for (std::uint32_t k = 0; k < (which == 0 ? 1 : kOrders); ++k) {
        if (which != 0) circle.order = order_through(run.lines, kOrders * (which - 1) + k);
        if (circle.order == 0) continue;
        const Slow slow =
            slow_loads(prober, view, circle, rounds, static_cast<std::uint32_t>(rounds - 2));
        for (const auto& [line, times] : slow.by_line) offsets->insert(line * run.line_bytes);
    }
}

std::vector<std::uint64_t> contending(Prober& prober, const LevelView& view,
                                      const std::vector<std::uint64_t>& offsets,
                                      std::uint32_t companion_bytes) {
    const std::size_t count = offsets.size();
    const std::size_t launches = std::clamp<std::size_t>(count / 2, 16, 64);
    if (count == 0 || count > Prober::kMostSamples / 4) return {};
    std::vector<std::uint32_t> slow(count, 0);
    std::mt19937 random(1);
    double rounds = 0;
    const std::uint32_t threshold = view.threshold.cycles(count);
    for (std::size_t launch = 0; launch < launches; ++launch) {
        std::vector<std::size_t> order(count);
        std::iota(order.begin(), order.end(), 0);
        std::vector<std::size_t> who;
        std::vector<std::uint64_t> sequence;
        while (sequence.size() + count <= Prober::kMostSamples) {
            std::shuffle(order.begin(), order.end(), random);
            for (const std::size_t k : order) {
                who.push_back(k);
                sequence.push_back(offsets[k]);
            }
        }
        const auto cycles = prober.probe(view.path, sequence, companion_bytes);
        // The first half fills the set, and what was in it before takes its time to go.
        if (launch < launches / 2) continue;
        rounds += static_cast<double>(cycles.size()) / 2 / static_cast<double>(count);
        for (std::size_t k = cycles.size() / 2; k < cycles.size(); ++k) {
            if (cycles[k] >= threshold) ++slow[who[k]];
        }
    }
    // Of w + 1 lines in w ways each misses in about one round of (w + 1) / 2, or more often. Noise
    // is rarer than that, and than a part of what others have.
    std::vector<std::uint64_t> found;
    const auto most = static_cast<double>(*std::max_element(slow.begin(), slow.end()));
    const double share = std::min(0.02, 0.7 / static_cast<double>(count));
    const double least = std::max({2.0, most / 6, share * rounds});
    for (std::size_t k = 0; k < count; ++k) {
        if (slow[k] >= least) found.push_back(offsets[k]);
    }
    return found;
}

}  // namespace libswap::bench
