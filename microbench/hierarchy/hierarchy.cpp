// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/hierarchy/hierarchy.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "microbench/hierarchy/statistics.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kLeastCurveStep = 128;
constexpr std::uint64_t kMostCurveStep = 1024;
constexpr std::uint64_t kColdBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kPageStep = std::uint64_t{2} << 20;  // as large as pages are
constexpr double kSame = 0.06;                               // relative

bool same(double a, double b) { return std::abs(a - b) <= kSame * std::max(a, b); }

class Analysis {
  public:
    Analysis(Prober& prober, std::uint64_t circle_bytes)
        : prober_(prober), circle_bytes_(std::min(circle_bytes, prober.bytes())) {}

    Hierarchy run() {
        for (const LoadPath path : {LoadPath::Global, LoadPath::Data, LoadPath::ReadOnly}) {
            step_bytes(path) = curve_step(path);
            curve(path) = measure_latency_curve(prober_, {path, step_bytes(path), circle_bytes_});
        }
        if (found_.global_curve.levels.empty()) {
            miss("nothing of the memory hierarchy: " + prober_.error());
            return found_;
        }
        found_.memory_cycles = found_.global_curve.levels.back().cycles;
        nearest(LoadPath::Data, "L1");
        nearest(LoadPath::ReadOnly, "read-only");
        device_levels();
        translations();
        strides();
        return found_;
    }

  private:
    LatencyCurve& curve(LoadPath path) {
        if (path == LoadPath::Data) return found_.data_curve;
        return path == LoadPath::Global ? found_.global_curve : found_.read_only_curve;
    }

    std::uint64_t& step_bytes(LoadPath path) { return step_bytes_[static_cast<std::size_t>(path)]; }

    /// Latencies of loads in memory that nobody has read yet: the `place`th MiB from the end.
    std::vector<double> cold_cycles(LoadPath path, std::uint64_t step, std::uint64_t place) {
        Sweep sweep;
        sweep.path = path;
        sweep.start_bytes = prober_.bytes() - place * kColdBytes;
        sweep.step_bytes = step;
        sweep.count = kColdBytes / kMostCurveStep;
        sweep.length_bytes = sweep.step_bytes * sweep.count;
        std::vector<double> cycles;
        for (const Sample& s : prober_.sweep(sweep).samples) cycles.push_back(s.cycles);
        return cycles;
    }

    /// The smallest step between two loads at which neighbours bring nothing for each other.
    std::uint64_t curve_step(LoadPath path) {
        constexpr double kSlow = 0.88;  // of what loads far apart take
        constexpr std::uint64_t kPlaces = 5;
        if (prober_.bytes() < 3 * kPlaces * kColdBytes) return kLeastCurveStep;
        std::uint64_t place = kPlaces * static_cast<std::uint64_t>(path);
        const double apart = median(cold_cycles(path, kMostCurveStep, ++place));
        std::uint64_t step = kLeastCurveStep;
        while (step < kMostCurveStep &&
               quantile(cold_cycles(path, step, ++place), 0.25) < kSlow * apart)
            step *= 2;
        return step;
    }

    void miss(std::string what) { found_.not_measured.push_back(std::move(what)); }

    /// The cache of an SM, if the path has one that the device's does not begin with.
    void nearest(LoadPath path, const char* name) {
        const auto& levels = curve(path).levels;
        if (levels.size() < 2 || same(levels[0].cycles, found_.global_curve.levels[0].cycles)) {
            miss(std::string(name) + " cache: none seen");
            return;
        }
        cache(path, 0, name, true);
    }

    void device_levels() {
        const auto& levels = found_.global_curve.levels;
        if (levels.size() < 2)
            miss("L2 cache: memory that was probed is too small, or there is none");
        for (std::size_t k = 0; k + 1 < levels.size(); ++k)
            cache(LoadPath::Global, k, k == 0 ? "L2" : "L3", false);
    }

    void cache(LoadPath path, std::size_t level, const char* name, bool starts_empty) {
        const auto& levels = curve(path).levels;
        FoundCache cache;
        cache.name = name;
        cache.path = path;
        cache.latency = levels[level];
        GeometryRequest request;
        request.view = {path, threshold_between(levels[level], levels[level + 1]), starts_empty, 0};
        request.fill_bytes = fill_bytes(request.view, 4 * levels[level + 1].first_bytes);
        if (request.fill_bytes == 0) {
            miss(std::string(name) + " cache: lines");
        } else {
            // Hashed, a cache holds as many lines of the curve's step as of its own, which are
            // smaller.
            constexpr std::uint64_t kSmallestLine = 32;
            request.least_bytes = levels[level].last_bytes * kSmallestLine / (4 * step_bytes(path));
            request.most_bytes = 2 * levels[level + 1].first_bytes;
            cache.geometry = find_geometry(prober_, request);
        }
        if (cache.geometry.bytes == 0) miss(std::string(name) + " cache: capacity");
        if (cache.geometry.ways == 0) miss(std::string(name) + " cache: ways and replacement");
        found_.caches.push_back(std::move(cache));
    }

    /// In memory that circles of the curve have read last, all in order: it is in no cache.
    std::uint64_t fill_bytes(const LevelView& view, std::uint64_t beyond_bytes) {
        constexpr std::uint64_t kStep = 4;
        constexpr std::uint32_t kLoads = 2048;
        if (!view.starts_empty) evict(std::min(beyond_bytes, circle_bytes_ / 2));
        return find_fill_bytes(prober_, view, circle_bytes_ / 4, kStep, kLoads, 0);
    }

    void strides() {
        const auto& levels = found_.data_curve.levels;
        if (levels.size() < 2) return;
        const std::uint64_t circle = std::min(circle_bytes_, 4 * levels[1].first_bytes);
        for (std::uint64_t step = 4; step <= 4096; step *= 2) {
            Sweep sweep;
            sweep.length_bytes = circle;
            sweep.step_bytes = step;
            sweep.skip = static_cast<std::uint32_t>(circle / std::max<std::uint64_t>(step, 32));
            sweep.count = 2048;
            double sum = 0;
            const auto samples = prober_.sweep(sweep).samples;
            for (const Sample& s : samples) sum += s.cycles;
            const double mean = sum / std::max<double>(1, static_cast<double>(samples.size()));
            found_.stride_curve.push_back({step, mean, mean, mean});
        }
    }

    void evict(std::uint64_t bytes) {
        Sweep sweep;
        sweep.path = LoadPath::Global;
        sweep.step_bytes = 32;
        sweep.start_bytes = circle_bytes_ / 2;
        sweep.length_bytes = bytes;
        sweep.skip = static_cast<std::uint32_t>(sweep.length_bytes / sweep.step_bytes);
        sweep.count = 1;
        prober_.sweep(sweep);
    }

    void translations() {
        // To other sets of the device's cache, and not by the one line that a hashed index can
        // undo.
        const std::uint64_t stagger = step_bytes(LoadPath::Global) * 3 / 2;
        auto& curve = found_.translation_curve;
        curve = measure_latency_curve(prober_,
                                      {LoadPath::Global, kPageStep + stagger, prober_.bytes()});
        for (std::size_t k = 0; k + 1 < curve.levels.size(); ++k) {
            translation(k, stagger);
        }
        if (found_.translations.empty()) miss("translations: no effect of pages seen");
    }

    void translation(std::size_t level, std::uint64_t stagger) {
        const auto& levels = found_.translation_curve.levels;
        FoundTranslation tlb;
        tlb.miss_cycles = levels[level + 1].cycles - levels[level].cycles;
        const LevelView view{LoadPath::Global, threshold_between(levels[level], levels[level + 1]),
                             false, stagger};
        const std::uint64_t reach = levels[level + 1].first_bytes;
        tlb.page_bytes = page_bytes(view, reach / (kPageStep + stagger));
        if (tlb.page_bytes == 0) {
            miss("translations: pages");
        } else {
            GeometryRequest request;
            request.view = view;
            request.is_translation = true;
            request.fill_bytes = tlb.page_bytes;
            request.least_bytes = 0;
            request.most_bytes = 2 * reach;
            const Geometry geometry = find_geometry(prober_, request);
            tlb.entries = static_cast<std::uint32_t>(geometry.bytes / tlb.page_bytes);
            tlb.ways = geometry.ways;
            tlb.policy = geometry.policy;
        }
        if (tlb.entries == 0) miss("translations: entries");
        found_.translations.push_back(std::move(tlb));
    }

    /// With twice as many loads as there are entries and a page between two of them, all are slow;
    /// with half a page, every other one. From large steps to small ones until some are fast; with
    /// more loads where those far apart all met in few of the table's sets.
    std::uint64_t page_bytes(const LevelView& view, std::uint64_t entries) {
        constexpr std::uint64_t kLargest = std::uint64_t{1} << 20;
        constexpr std::uint64_t kSmallest = 2048;
        constexpr std::uint64_t kMostLoads = 4096;
        for (std::uint64_t loads = 2 * entries; loads <= kMostLoads; loads *= 4) {
            for (std::uint64_t step = kLargest; step >= kSmallest; step /= 2) {
                if ((step + view.stagger_bytes) * loads > prober_.bytes()) continue;
                const std::uint64_t found =
                    find_fill_bytes(prober_, view, 0, step + view.stagger_bytes,
                                    static_cast<std::uint32_t>(loads), 3);
                if (found != 0) return found;
            }
        }
        return 0;
    }

    Prober& prober_;
    std::uint64_t circle_bytes_;
    std::array<std::uint64_t, 3> step_bytes_{};  ///< of each path's curve
    Hierarchy found_;
};

}  // namespace

Hierarchy analyse_hierarchy(Prober& prober, std::uint64_t circle_bytes) {
    return Analysis(prober, circle_bytes).run();
}

}  // namespace libswap::bench
