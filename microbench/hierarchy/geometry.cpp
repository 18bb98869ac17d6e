// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/hierarchy/geometry.hpp"

#include <algorithm>
#include <bit>
#include <set>

namespace libswap::bench {

namespace {

constexpr std::uint32_t kMostStrided = 1023;
constexpr std::uint32_t kToldRounds = 8;  // of those that come after others
constexpr std::uint64_t kNoTranslationBytes = std::uint64_t{512} << 10;

class Finder {
  public:
    Finder(Prober& prober, const GeometryRequest& request) : prober_(prober), request_(request) {}

    Geometry find() {
        geometry_.fill_bytes = request_.fill_bytes;
        geometry_.line_bytes = request_.fill_bytes;
        if (!by_strides()) by_runs();
        if (geometry_.ways != 0) {
            if (!request_.is_translation) find_line();
            geometry_.policy = find_policy(prober_, request_.view, group_, companion_);
        }
        return geometry_;
    }

  private:
    std::uint64_t stride_bytes(std::uint64_t step) const {
        return step + request_.view.stagger_bytes;
    }

    /// Addresses far apart need a translation each; where many do, another load brings it first: of
    /// the next line, which is in another set, or of the line's next sector.
    std::uint32_t companion(std::uint64_t span_bytes) const {
        if (request_.is_translation || span_bytes <= kNoTranslationBytes) return 0;
        return static_cast<std::uint32_t>(request_.fill_bytes);
    }

    std::uint32_t room(std::uint64_t step) const {
        return static_cast<std::uint32_t>(
            std::min<std::uint64_t>(prober_.bytes() / stride_bytes(step), kMostStrided));
    }

    std::uint32_t fit(std::uint64_t step, std::uint32_t most) {
        most = std::min(most, room(step));
        if (most == 0) return 0;
        return largest_fit(prober_, request_.view, {step, 0, companion(step * most)}, 0, most);
    }

    /// With a plain index, addresses a power of two apart meet in ever fewer sets the farther apart
    /// they are, and the span that fits stays the same: the capacity. That ends where the step is a
    /// whole turn through the sets, as far as that is a power of two; from there on equally many
    /// fit.
    bool by_strides() {
        std::uint64_t step = std::bit_floor(request_.most_bytes);
        while (step >= prober_.bytes() / 4) step /= 2;
        std::uint32_t wide = fit(step, kMostStrided);
        // As many as there is memory for: says nothing.
        while (wide != 0 && wide < kMostStrided && wide == room(step)) {
            step /= 2;
            wide = fit(step, kMostStrided);
        }
        if (wide == 0 || wide == kMostStrided) return false;
        for (; step >= 2 * request_.fill_bytes; step /= 2) {
            if (wide > kMostStrided / 2) return false;
            const std::uint32_t narrow = fit(step / 2, 2 * wide + 2);
            if (narrow == 2 * wide) return take_strided(step, wide);
            if (narrow != wide) return false;
        }
        return false;
    }

    bool take_strided(std::uint64_t step, std::uint32_t count) {
        const std::uint64_t bytes = step * count;
        if (bytes < request_.least_bytes || bytes > request_.most_bytes) return false;
        std::vector<std::uint64_t> offsets;
        for (std::uint32_t k = 0; k <= count; ++k) offsets.push_back(k * stride_bytes(step));
        companion_ = companion(step * (count + 1));
        group_ = contending(prober_, request_.view, offsets, companion_);
        if (group_.size() < 2) return false;
        geometry_.bytes = bytes;
        geometry_.ways = static_cast<std::uint32_t>(group_.size() - 1);
        // Hashed sets can look alike by chance, but not a capacity / ways apart.
        return !is_hashed();
    }

    void by_runs() {
        const std::uint64_t line = request_.fill_bytes;
        const auto least = static_cast<std::uint32_t>(request_.least_bytes / line);
        const auto most = static_cast<std::uint32_t>(
            std::min(request_.most_bytes, prober_.bytes() - line) / line);
        const std::uint32_t run = request_.is_translation
                                      ? largest_fit(prober_, request_.view, {line, 0, 0}, 0, most)
                                      : longest_run(prober_, request_.view, line, least, most);
        geometry_.bytes = geometry_.ways = 0;
        if (run <= least || run >= most) return;
        geometry_.bytes = run * line;
        companion_ = companion(run * line);
        if (!request_.is_translation) group_ = overflowing_set({line, run + 1, companion_});
        if (group_.size() < 2 && run < kMostStrided) {
            std::vector<std::uint64_t> offsets;
            for (std::uint32_t k = 0; k <= run; ++k) offsets.push_back(k * stride_bytes(line));
            group_ = contending(prober_, request_.view, offsets, companion_);
        }
        join_sectors();
        if (group_.size() < 2) return;
        geometry_.ways = static_cast<std::uint32_t>(group_.size() - 1);
        geometry_.hashed = is_hashed();
    }

    /// Of a run one line too long: the lines of the set that has one too many. Only all of them
    /// together do not fit.
    std::vector<std::uint64_t> overflowing_set(const Run& run) {
        constexpr std::uint32_t kMostTries = 20;
        std::set<std::uint64_t> slow;
        std::vector<std::uint64_t> group;
        for (std::uint32_t which = 0; which < kMostTries && group.size() < 2; ++which) {
            const std::size_t before = slow.size();
            find_slow_offsets(prober_, request_.view, run, which, &slow);
            if (slow.size() == before) continue;
            group = contending(prober_, request_.view, {slow.begin(), slow.end()}, companion_);
        }
        return companion_ == 0 ? group : without_companions(group);
    }

    /// The last line's companion lies behind the run, and its set may be one too full as well.
    std::vector<std::uint64_t> without_companions(const std::vector<std::uint64_t>& group) {
        auto alone = contending(prober_, request_.view, group, 0);
        return alone.size() < 2 ? group : alone;
    }

    /// Sectors of one line leave it together: one address per line is enough.
    void join_sectors() {
        if (request_.is_translation || group_.size() < 2) return;
        std::uint64_t line = request_.fill_bytes;
        const auto aligned_runs = [&](std::uint64_t bytes) {
            // Each line but the last is there with all its sectors.
            std::size_t lines = 0;
            for (std::size_t k = 0; k < group_.size(); ++k)
                lines += k == 0 || group_[k] / bytes != group_[k - 1] / bytes ? 1 : 0;
            return (lines - 1) * (bytes / request_.fill_bytes) + 1 == group_.size();
        };
        while (line < 4096 && group_.size() > 2 && aligned_runs(2 * line)) line *= 2;
        // One set: all lines are neighbours, and nothing tells sectors from lines.
        if (group_.size() == geometry_.bytes / request_.fill_bytes + 1) line = request_.fill_bytes;
        std::vector<std::uint64_t> lines;
        for (const std::uint64_t offset : group_) {
            if (lines.empty() || lines.back() / line != offset / line)
                lines.push_back(offset / line * line);
        }
        group_ = lines;
        geometry_.line_bytes = line;
    }

    bool is_hashed() {
        if (request_.is_translation) return false;
        const std::uint64_t turn = geometry_.bytes / geometry_.ways;
        if (turn * geometry_.ways != geometry_.bytes) return true;
        const Stride stride{turn, geometry_.ways + 1, companion(geometry_.bytes)};
        return fits(prober_, request_.view, stride);  // with a plain index they share a set
    }

    /// A line is what leaves together: another address in the line of a member of the group is as
    /// good as the member.
    void find_line() {
        const std::uint64_t most = std::min<std::uint64_t>(4096, geometry_.bytes / geometry_.ways);
        while (geometry_.line_bytes < most) {
            const std::uint64_t other = geometry_.line_bytes;
            std::vector<std::uint64_t> moved(group_);
            for (std::size_t k = 1; k < moved.size(); k += 2) moved[k] ^= other;
            // The companions must not be the others.
            const auto companion = static_cast<std::uint32_t>(companion_ == 0 ? 0 : 2 * other);
            if (contending(prober_, request_.view, moved, companion).size() != group_.size()) break;
            geometry_.line_bytes *= 2;
        }
    }

    Prober& prober_;
    GeometryRequest request_;
    Geometry geometry_;
    std::vector<std::uint64_t> group_;
    std::uint32_t companion_ = 0;
};

}  // namespace

Geometry find_geometry(Prober& prober, const GeometryRequest& request) {
    return Finder(prober, request).find();
}

std::uint64_t find_fill_bytes(Prober& prober, const LevelView& view, std::uint64_t start_bytes,
                              std::uint64_t step_bytes, std::uint32_t loads, std::uint32_t rounds) {
    const std::uint32_t told = rounds == 0 ? 1 : kToldRounds;
    Sweep sweep;
    sweep.skip = rounds * loads;
    sweep.path = view.path;
    sweep.start_bytes = start_bytes;
    sweep.length_bytes = step_bytes * loads;
    sweep.step_bytes = step_bytes;
    sweep.count = told * loads;
    sweep.threshold_cycles = view.threshold.cycles(sweep.count);
    const auto samples = prober.sweep(sweep).samples;
    constexpr double kAligned = 0.95;
    constexpr double kPresent = 0.5;
    for (std::uint64_t size = sweep.length_bytes / 4; size >= step_bytes; size /= 2) {
        if (!std::has_single_bit(size)) size = std::bit_floor(size);
        std::size_t aligned = 0;
        for (const Sample& s : samples)
            aligned += (start_bytes + s.index % loads * step_bytes) % size < step_bytes ? 1 : 0;
        const auto expected = static_cast<double>(told * sweep.length_bytes / size);
        if (static_cast<double>(aligned) >= kAligned * static_cast<double>(samples.size()) &&
            static_cast<double>(aligned) >= kPresent * expected)
            return size;
    }
    return 0;
}

}  // namespace libswap::bench
