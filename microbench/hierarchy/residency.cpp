// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/hierarchy/residency.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

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
};

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
    // Downwards is upwards by all but one step.
    sweep.step_bytes = circle.downwards && circle.count > 1 ? sweep.length_bytes - circle.step_bytes
                                                            : circle.step_bytes;
    sweep.skip = static_cast<std::uint32_t>((rounds - told_rounds) * circle.count);
    sweep.count = told_rounds * circle.count;
    sweep.threshold_cycles = view.threshold.cycles(sweep.count);
    sweep.companion_bytes = circle.companion_bytes;
    const SweepResult result = prober.sweep(sweep);
    Slow slow;
    // What was not told is as the part that was.
    const std::uint64_t untold = result.flagged - result.samples.size();
    for (const Sample& s : result.samples) {
        const std::uint32_t place = s.index % circle.count;
        // Downwards begins at line 0, then goes on from the highest.
        const std::uint32_t line = circle.downwards ? (circle.count - place) % circle.count : place;
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

/// Reads the circle in other orders. Lines of before can sit in a tree's blind spot for ever while
/// the order stays the same.
void shake(Prober& prober, const LevelView& view, const Circle& circle, std::uint64_t rounds) {
    std::uint32_t stride = 1;
    for (const double part : {0.38, 0.71, 0.15}) {
        stride = std::max<std::uint32_t>(2, static_cast<std::uint32_t>(part * circle.count));
        while (std::gcd(stride, circle.count) != 1) ++stride;
        Sweep sweep;
        sweep.path = view.path;
        sweep.start_bytes = circle.start_bytes;
        sweep.length_bytes = circle.step_bytes * circle.count;
        sweep.step_bytes = circle.step_bytes * (stride % circle.count);
        sweep.skip = static_cast<std::uint32_t>(rounds * circle.count);
        sweep.companion_bytes = circle.companion_bytes;
        if (sweep.step_bytes != 0) prober.sweep(sweep);
    }
}

bool circle_fits(Prober& prober, const LevelView& view, const Circle& circle) {
    const std::uint64_t settling = settling_rounds(circle.count);
    for (const std::uint64_t rounds : round_plan(view, circle.count)) {
        if (!view.starts_empty && rounds >= settling && circle.count > 2)
            shake(prober, view, circle, rounds / 4);
        const Slow slow = slow_loads(prober, view, circle, rounds, kCleanRounds);
        if (!prober.error().empty()) return false;
        if (slow.total == 0) return true;
        // What misses in every round, or so many, does not vanish with more of them.
        const auto steady = std::count_if(slow.by_line.begin(), slow.by_line.end(),
                                          [](auto& line) { return line.second == kCleanRounds; });
        if (slow.total > std::max<std::uint64_t>(8, circle.count)) return false;
        if (rounds >= settling && steady >= 2) return false;
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

std::vector<std::uint64_t> slow_offsets(Prober& prober, const LevelView& view,
                                        std::uint64_t line_bytes, std::uint32_t lines) {
    constexpr std::uint64_t kRounds = 60;
    Circle circle;
    circle.step_bytes = line_bytes;
    circle.count = lines;
    circle.downwards = true;
    const std::uint64_t rounds =
        std::clamp<std::uint64_t>(kMostLoads / lines, kCleanRounds + 2, kRounds);
    const auto told = static_cast<std::uint32_t>(rounds - 2);
    const Slow slow = slow_loads(prober, view, circle, rounds, told);
    std::vector<std::uint64_t> offsets;
    for (const auto& [line, times] : slow.by_line) offsets.push_back(line * line_bytes);
    return offsets;
}

std::vector<std::uint64_t> contending(Prober& prober, const LevelView& view,
                                      const std::vector<std::uint64_t>& offsets,
                                      std::uint32_t companion_bytes) {
    const std::size_t count = offsets.size();
    const std::size_t launches = std::clamp<std::size_t>(count / 8, 8, 64);
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
        // The first half fills the set.
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
