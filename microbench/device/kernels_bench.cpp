// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Kernels as programs have them, below the Roofline's ceilings.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "microbench/device/kernels_ptx.hpp"
#include "microbench/device/suite.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kMib = 1 << 20;
constexpr double kWord = sizeof(float);

/// What a kernel has to do by its sizes, each operand crossing memory once.
struct Work {
    std::string name;
    double operations = 0;
    double bytes = 0;
};

class Kernels {
  public:
    Kernels(Bench& bench, Table& table)
        : bench_(bench),
          session_(bench.session),
          table_(table),
          bytes_(std::min<std::uint64_t>((bench.full() ? 16 : 4) * kMib,
                                         session_.free_bytes() / 8 / kMib * kMib)),
          a_(session_.driver(), bytes_),
          b_(session_.driver(), bytes_),
          c_(session_.driver(), bytes_) {
        for (const DeviceBuffer* buffer : {&a_, &b_, &c_})
            BENCH_CU(session_.driver(),
                     cuMemsetD8Async(buffer->address, 0, bytes_, session_.stream()));
    }

    /// n x n x n for each size.
    Series products(const std::vector<unsigned>& sizes) {
        Series dots{"matrix products", {}, true};
        const Module module(session_.driver(), product_ptx().c_str());
        CUfunction function = module.function("bench_product");
        for (unsigned n : sizes) {
            const double words = static_cast<double>(n) * n;
            if (words * kWord > static_cast<double>(bytes_)) continue;
            void* parameters[] = {address(a_), address(b_), address(c_), &n};
            const unsigned tiles = n / kProductTile;
            run({fmt::format("matrix product, {0} x {0} x {0}", n), 2 * words * n,
                 3 * words * kWord},
                function, tiles, tiles, parameters, dots);
        }
        return dots;
    }

    Series convolutions(const std::vector<unsigned>& channels) {
        Series dots{"convolutions", {}, true};
        constexpr double kPixels = double{kConvolutionSide} * kConvolutionSide;
        constexpr double kPadded = double{kConvolutionPadded} * kConvolutionPadded;
        constexpr double kTaps = 9;
        for (const unsigned n : channels) {
            if (n * kPadded * kWord > static_cast<double>(bytes_)) continue;
            const Module module(session_.driver(), convolution_ptx(n).c_str());
            void* parameters[] = {address(a_), address(b_), address(c_)};
            run({fmt::format("convolution, 3 x 3, {} channels", n), 2 * kTaps * n * n * kPixels,
                 (n * kPadded + n * kPixels + kTaps * n * n) * kWord},
                module.function("bench_convolution"),
                kConvolutionSide * kConvolutionSide / kKernelThreads, n / kConvolutionDepth,
                parameters, dots);
        }
        return dots;
    }

    /// With so many multiply-adds more.
    Series elementwise(const std::vector<unsigned>& steps) {
        Series dots{"elementwise kernels", {}, true};
        std::uint64_t fours = bytes_ / 16;
        const double words = 4 * static_cast<double>(fours);
        for (const unsigned n : steps) {
            const Module module(session_.driver(), elementwise_ptx(n).c_str());
            void* parameters[] = {address(a_), address(b_), &fours};
            run({fmt::format("elementwise, {} operations each", 2 * n + 3), words * (2 * n + 3),
                 2 * words * kWord},
                module.function("bench_elementwise"), blocks(fours), 1, parameters, dots);
        }
        return dots;
    }

    Series reductions() {
        Series dots{"reductions", {}, true};
        const Module module(session_.driver(), reduction_ptx().c_str());
        CUfunction function = module.function("bench_reduction");
        for (std::uint64_t bytes = bytes_; bytes >= bytes_ / 4; bytes /= 4) {
            std::uint64_t fours = bytes / 16;
            const double words = 4 * static_cast<double>(fours);
            void* parameters[] = {address(a_), address(b_), &fours};
            run({fmt::format("sum of {}", size_name(static_cast<double>(bytes))), words,
                 words * kWord},
                function, blocks(fours), 1, parameters, dots);
        }
        return dots;
    }

  private:
    static void* address(const DeviceBuffer& buffer) {
        return const_cast<CUdeviceptr*>(&buffer.address);
    }
    unsigned blocks(std::uint64_t threads) const {
        return static_cast<unsigned>(std::clamp<std::uint64_t>(
            threads / kKernelThreads, 1, 16ULL * static_cast<unsigned>(session_.info().sm_count)));
    }

    void run(const Work& work, CUfunction function, unsigned grid_x, unsigned grid_y,
             void** parameters, Series& dots) {
        const auto us = session_.times_us(bench_.full() ? 5 : 3, [&] {
            BENCH_CU(session_.driver(),
                     cuLaunchKernel(function, grid_x, grid_y, 1, kKernelThreads, 1, 1, 0,
                                    session_.stream(), parameters, nullptr));
        });
        std::vector<double> tflops;
        for (const double t : us) tflops.push_back(1e-6 * work.operations / t);
        const Spread reached = spread_of(tflops);
        table_.rows.push_back({work.name, reached});
        dots.points.push_back({work.operations / work.bytes, reached.median});
    }

    Bench& bench_;
    Session& session_;
    Table& table_;
    std::uint64_t bytes_;
    DeviceBuffer a_, b_, c_;
};

/// The triads that were measured: a multiply-add per 12 bytes.
Series triads(const std::vector<Plot>& plots) {
    constexpr double kIntensity = 2.0 / 12;
    Series dots{"triads", {}, true};
    for (const Plot& plot : plots) {
        if (plot.file != "throughput") continue;
        for (const Point& p : plot.series.back().points)
            dots.points.push_back({kIntensity, p.y * kIntensity * 1e-3});
    }
    return dots;
}

std::string note(const cost::Ceilings& ceilings, const Series& kind) {
    double best = 0;
    for (const Point& p : kind.points)
        best = std::max(best, p.y / std::min(ceilings.fp32_tflops, p.x * ceilings.mem_gbps * 1e-3));
    return fmt::format("{}: {:.0f} % of the roof at best", kind.name, 100 * best);
}

}  // namespace

void measure_kernels(Bench& bench) {
    Table table{
        "kernels", "How near to the Roofline do kernels come?", "1e12 operations/s", {}, {}};
    Kernels kernels(bench, table);
    const bool full = bench.full();
    std::vector<Series> kinds;
    kinds.push_back(kernels.products(full ? std::vector{256u, 512u, 1024u} : std::vector{256u}));
    kinds.push_back(kernels.convolutions(full ? std::vector{16u, 64u} : std::vector{16u}));
    kinds.push_back(kernels.elementwise(full ? std::vector{0u, 4u, 16u, 64u} : std::vector{0u}));
    kinds.push_back(kernels.reductions());
    const auto roofline = std::find_if(bench.report.plots.begin(), bench.report.plots.end(),
                                       [](const Plot& plot) { return plot.file == "roofline"; });
    if (roofline != bench.report.plots.end()) {
        for (Series& kind : kinds) {
            table.notes.push_back(note(bench.report.profile.machine.ceilings, kind));
            roofline->series.push_back(std::move(kind));
        }
        roofline->series.push_back(triads(bench.report.plots));
        roofline->shows[1] =
            "Kernels lie below the roof by what their launch takes, and by what they read again.";
    }
    bench.report.tables.push_back(std::move(table));
}

}  // namespace libswap::bench
