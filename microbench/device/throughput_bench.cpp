// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Bytes and operations per second: the ceilings of the Roofline.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "microbench/device/suite.hpp"
#include "microbench/device/work_ptx.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kMib = 1 << 20;
constexpr unsigned kThreads = 256;

/// At least `least`, and more than the L2 holds, if there is room for eight of them.
std::uint64_t beyond_l2(const Bench& bench, std::uint64_t least) {
    const std::uint64_t no_less = (bench.session.info().l2_bytes / kMib + 1) * kMib;
    return std::min(std::max(least, no_less), bench.session.free_bytes() / 8 / kMib * kMib);
}

/// Bytes that cross memory per word of one array.
double words_moved(Stream4 kind) {
    if (kind == Stream4::Triad) return 3;
    return kind == Stream4::Copy ? 2 : 1;
}

void throughput(Bench& bench, Table& table, Stream4 kind, unsigned width,
                const DeviceBuffer& memory, std::uint64_t array_bytes) {
    Session& session = bench.session;
    Module module(session.driver(), stream_ptx(kind, width).c_str());
    CUfunction function = module.function("bench_stream");
    CUdeviceptr a = memory.address;
    CUdeviceptr b = a + array_bytes;
    CUdeviceptr c = b + array_bytes;
    std::uint64_t count = array_bytes / (4 * width);
    float zero = 0;
    void* parameters[] = {&a, &b, &c, &count, &zero};
    const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(
        count / kThreads, 1, 16ULL * static_cast<unsigned>(session.info().sm_count)));
    const auto us = session.times_us(bench.full() ? 7 : 2, [&] {
        BENCH_CU(session.driver(), cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0,
                                                  session.stream(), parameters, nullptr));
    });
    std::vector<double> gbps;
    for (const double t : us)
        gbps.push_back(1e-3 * words_moved(kind) * static_cast<double>(array_bytes) / t);
    table.add(fmt::format("{}, {} bytes per thread, arrays of {}", stream_name(kind), 4 * width,
                          size_name(static_cast<double>(array_bytes))),
              gbps);
}

/// The last row of the table, on the plot.
void draw(Bench& bench, std::size_t series, std::uint64_t array_bytes, const Table& table) {
    bench.report.plots.back().series[series].points.push_back(
        {static_cast<double>(array_bytes), table.rows.back().value.median});
}

/// min(peak, operations per byte * bytes/s).
void plot_ceiling(Bench& bench, const char* name, double tflops) {
    const double gbps = bench.report.profile.machine.ceilings.mem_gbps;
    Series series{name, {}, false};
    constexpr double kLow = 1.0 / 16, kHigh = 4096;
    for (const double intensity : {kLow, std::clamp(1e3 * tflops / gbps, kLow, kHigh), kHigh})
        series.points.push_back({intensity, std::min(tflops, intensity * gbps * 1e-3)});
    bench.report.plots.back().series.push_back(std::move(series));
}

}  // namespace

void measure_memory(Bench& bench) {
    const std::uint64_t most = beyond_l2(bench, (bench.full() ? 64 : 16) * kMib);
    const DeviceBuffer memory(bench.session.driver(), 3 * most);
    Table& table = bench.table("memory", "How fast is device memory?", "GB/s");
    Plot plot{"throughput",
              "Throughput of device memory, 16 bytes per thread",
              "bytes per array",
              "GB/s",
              {},
              {},
              true};
    std::vector<Stream4> kinds{Stream4::Read, Stream4::Triad};
    if (bench.full()) kinds = {Stream4::Read, Stream4::Write, Stream4::Copy, Stream4::Triad};
    for (const Stream4 kind : kinds) plot.series.push_back({stream_name(kind), {}, !bench.full()});
    bench.report.plots.push_back(std::move(plot));
    double best = 0;
    std::vector<unsigned> widths{4};
    if (bench.full()) widths = {1, 2, 4};
    for (std::size_t series = 0; series < kinds.size(); ++series) {
        const Stream4 kind = kinds[series];
        for (const unsigned width : widths) {
            throughput(bench, table, kind, width, memory, most);
            if (width == 4) draw(bench, series, most, table);
            if (kind == Stream4::Triad) best = std::max(best, table.rows.back().value.median);
        }
        if (!bench.full()) continue;
        for (std::uint64_t bytes = most / 4; bytes >= kMib / 4; bytes /= 4) {
            throughput(bench, table, kind, 4, memory, bytes);
            draw(bench, series, bytes, table);
        }
    }
    bench.report.profile.machine.ceilings.mem_gbps = best;
    table.notes.push_back(fmt::format("ceiling: {:.0f} GB/s (triad)", best));
    Plot& drawn = bench.report.plots.back();
    drawn.shows[0] = fmt::format("Large triads move {:.0f} GB/s.", best);
    drawn.shows[1] = "Where arrays are small, the launch takes longer than the bytes.";
}

void measure_arithmetic(Bench& bench) {
    Session& session = bench.session;
    const DeviceBuffer out(session.driver(), 4096);
    Table& table = bench.table("arithmetic", "How many operations per second?", "1e12/s");
    cost::Ceilings& ceilings = bench.report.profile.machine.ceilings;
    bench.report.plots.push_back(
        {"roofline", "Roofline", "operations per byte", "1e12 operations/s", {}, {}, false});
    std::vector<Arithmetic> kinds{Arithmetic::Fp32};
    if (bench.full())
        kinds = {Arithmetic::Fp32,  Arithmetic::Fp64,       Arithmetic::Fp16,
                 Arithmetic::Int32, Arithmetic::Tf32Matrix, Arithmetic::Fp16Matrix};
    for (const Arithmetic kind : kinds) {
        try {
            Module module(session.driver(), arithmetic_ptx(kind).c_str());
            CUfunction function = module.function("bench_arithmetic");
            std::uint32_t rounds = bench.full() ? 256 : 64;
            CUdeviceptr result = out.address;
            void* parameters[] = {&rounds, &result};
            const auto blocks = static_cast<unsigned>(4 * session.info().sm_count);
            const auto us = session.times_us(3, [&] {
                BENCH_CU(session.driver(), cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0,
                                                          session.stream(), parameters, nullptr));
            });
            // What a launch costs is not the arithmetic's.
            std::vector<double> tflops;
            for (const double t : us)
                tflops.push_back(1e-6 * arithmetic_operations(kind) * rounds * blocks * kThreads /
                                 std::max(0.1, t - ceilings.launch_us));
            table.add(arithmetic_name(kind), tflops);
            const double median_tflops = median(tflops);
            plot_ceiling(bench, arithmetic_name(kind), median_tflops);
            if (kind == Arithmetic::Fp32) ceilings.fp32_tflops = median_tflops;
            if (kind == Arithmetic::Fp64) ceilings.fp64_tflops = median_tflops;
            if (kind == Arithmetic::Tf32Matrix) ceilings.tf32_tflops = median_tflops;
            if (kind == Arithmetic::Fp16Matrix) ceilings.fp16_tflops = median_tflops;
        } catch (const CudaError& failure) {
            bench.report.not_measured.push_back(
                fmt::format("arithmetic, {}: {}", arithmetic_name(kind), failure.what()));
            if (kind == Arithmetic::Fp32) bench.report.missing.emplace_back("arithmetic");
        }
    }
    bench.report.plots.back().shows[0] =
        fmt::format("Below {:.0f} fp32 operations per byte memory is the limit.",
                    ceilings.fp32_tflops * 1e3 / ceilings.mem_gbps);
}

void measure_digest(Bench& bench) {
    if (bench.digest_ptx == nullptr) return;
    Session& session = bench.session;
    const std::uint64_t bytes = beyond_l2(bench, (bench.full() ? 64 : 16) * kMib);
    const DeviceBuffer memory(session.driver(), bytes);
    const DeviceBuffer sums(session.driver(), 4096);
    Module module(session.driver(), bench.digest_ptx);
    CUfunction function = module.function("libswap_digest");
    CUdeviceptr base = memory.address;
    std::uint64_t words = bytes / 8;
    std::uint64_t first = 0;
    CUdeviceptr out = sums.address;
    std::uint64_t low = 0;
    std::uint64_t span = 0;
    CUdeviceptr result = 0;
    void* parameters[] = {&base, &words, &first, &out, &low, &span, &result};
    constexpr unsigned kBlocks = 512;
    const auto us = session.times_us(bench.full() ? 7 : 2, [&] {
        BENCH_CU(session.driver(), cuLaunchKernel(function, kBlocks, 1, 1, kThreads, 1, 1, 0,
                                                  session.stream(), parameters, nullptr));
    });
    std::vector<double> gbps;
    for (const double t : us) gbps.push_back(1e-3 * static_cast<double>(bytes) / t);
    Table& table = bench.table("digest", "How fast are digests?", "GB/s");
    table.add(fmt::format("libswap_digest, {}", size_name(static_cast<double>(bytes))), gbps);
}

}  // namespace libswap::bench
