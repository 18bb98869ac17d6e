// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Calls that the engine makes: virtual memory, pinned memory, events, streams, launches.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "microbench/device/chunks.hpp"
#include "microbench/device/suite.hpp"
#include "microbench/device/work_ptx.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kMib = 1 << 20;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

/// Medians of one chunk size, us per call.
struct ChunkCosts {
    std::uint64_t bytes = 0;
    double map_us = 0;  ///< cuMemMap and cuMemSetAccess
    double unmap_us = 0;
};

ChunkCosts measure_chunk(Bench& bench, std::uint64_t bytes, std::size_t count, Table& table) {
    Chunks chunks(bench.session, bytes, count);
    struct Step {
        const char* name;
        void (Chunks::*call)(std::size_t);
        std::vector<double> us;
    };
    Step steps[] = {{"cuMemCreate", &Chunks::create, {}},
                    {"cuMemMap", &Chunks::map, {}},
                    {"cuMemSetAccess", &Chunks::grant, {}},
                    {"cuMemUnmap", &Chunks::unmap, {}},
                    {"cuMemRelease", &Chunks::release, {}}};
    for (Step& step : steps) {
        for (std::size_t k = 0; k < count; ++k)
            step.us.push_back(bench.session.time_us([&] { (chunks.*step.call)(k); }));
        table.add(fmt::format("{}, {}", step.name, size_name(static_cast<double>(bytes))), step.us);
    }
    return {bytes, median(steps[1].us) + median(steps[2].us), median(steps[3].us)};
}

/// us = per_chunk + per_gib * GiB through the smallest and the largest size.
struct Line {
    double per_chunk = 0, per_gib = 0;
};
Line line_through(double small_bytes, double small_us, double large_bytes, double large_us) {
    Line line;
    line.per_gib = std::max(0.0, (large_us - small_us) / (large_bytes - small_bytes) * kGib);
    line.per_chunk = std::max(0.0, small_us - line.per_gib * small_bytes / kGib);
    return line;
}

template <typename Work>
void add_call(Bench& bench, Table& table, const char* name, std::size_t in_a_row, Work work) {
    std::vector<double> each;
    const auto all = bench.session.times_us(bench.full() ? 20 : 5, [&] {
        for (std::size_t k = 0; k < in_a_row; ++k) work();
    });
    for (const double us : all) each.push_back(us / static_cast<double>(in_a_row));
    table.add(name, each);
}

}  // namespace

void measure_vmm(Bench& bench) {
    if (!bench.session.info().has_vmm)
        throw CudaError(CUDA_ERROR_NOT_SUPPORTED, "no virtual memory management");
    std::vector<std::uint64_t> sizes{2 * kMib, 16 * kMib, 64 * kMib};
    if (bench.full())
        sizes = {2 * kMib, 4 * kMib, 8 * kMib, 16 * kMib, 32 * kMib, 64 * kMib, 128 * kMib};
    Table table{"vmm", "What do chunks of device memory cost?", "us per call", {}, {}};
    std::vector<ChunkCosts> costs;
    for (const std::uint64_t bytes : sizes) {
        const std::size_t room = bench.session.free_bytes() / 2 / bytes;
        const std::size_t count = std::min<std::size_t>(bench.full() ? 8 : 3, room);
        if (count == 0) break;
        costs.push_back(measure_chunk(bench, bytes, count, table));
    }
    if (costs.size() < 2) throw CudaError(CUDA_ERROR_OUT_OF_MEMORY, "too little memory is free");
    const ChunkCosts& small = costs.front();
    const ChunkCosts& large = costs.back();
    const auto small_bytes = static_cast<double>(small.bytes);
    const auto large_bytes = static_cast<double>(large.bytes);
    // A fetch swaps a mapping: it unmaps, maps and grants. What leaves is unmapped.
    const Line fetch = line_through(small_bytes, small.map_us + small.unmap_us, large_bytes,
                                    large.map_us + large.unmap_us);
    const Line leave = line_through(small_bytes, small.unmap_us, large_bytes, large.unmap_us);
    cost::RemapModel& remap = bench.report.profile.machine.remap;
    remap.map_us_per_gib = fetch.per_gib;
    remap.map_us_per_chunk = fetch.per_chunk;
    remap.unmap_us_per_gib = leave.per_gib;
    remap.unmap_us_per_chunk = leave.per_chunk;
    table.notes.push_back(
        fmt::format("a fetch's remap: {:.1f} us per chunk and {:.0f} us per GiB; an eviction's: "
                    "{:.1f} and {:.0f}",
                    fetch.per_chunk, fetch.per_gib, leave.per_chunk, leave.per_gib));
    bench.report.tables.push_back(std::move(table));
}

void measure_host_memory(Bench& bench) {
    const Driver& driver = bench.session.driver();
    const std::uint64_t bytes = (bench.full() ? 256 : 16) * kMib;
    const double per_gib = kGib / static_cast<double>(bytes);
    Table& table = bench.table("host_memory", "What does pinned host memory cost?", "us per GiB");
    std::vector<double> alloc;
    std::vector<double> attach;
    std::vector<double> detach;
    for (int k = 0; k < (bench.full() ? 3 : 2); ++k) {
        void* pinned = nullptr;
        alloc.push_back(per_gib * bench.session.time_us([&] {
            BENCH_CU(driver, cuMemHostAlloc(&pinned, bytes, CU_MEMHOSTALLOC_PORTABLE));
        }));
        BENCH_CU(driver, cuMemFreeHost(pinned));
        const std::unique_ptr<void, decltype(&std::free)> plain(std::aligned_alloc(4096, bytes),
                                                                &std::free);
        if (plain == nullptr) throw CudaError(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
        attach.push_back(per_gib * bench.session.time_us([&] {
            BENCH_CU(driver, cuMemHostRegister(plain.get(), bytes, 0));
        }));
        detach.push_back(per_gib * bench.session.time_us([&] {
            BENCH_CU(driver, cuMemHostUnregister(plain.get()));
        }));
    }
    table.add("cuMemHostAlloc", alloc);
    table.add("cuMemHostRegister", attach);
    table.add("cuMemHostUnregister", detach);
}

void measure_calls(Bench& bench) {
    const Driver& driver = bench.session.driver();
    const CUstream stream = bench.session.stream();
    Table& table = bench.table("calls", "What do launches, events and waits cost?", "us");
    Module module(driver, kEmptyPtx);
    CUfunction empty = module.function("bench_empty");
    const auto launch = [&] {
        BENCH_CU(driver, cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
    };
    add_call(bench, table, "launch of an empty kernel, one", 1, launch);
    bench.report.profile.machine.ceilings.launch_us = table.rows.back().value.median;
    add_call(bench, table, "launch of an empty kernel, each of 64", 64, launch);
    Event event(driver);
    Stream other(driver);
    add_call(bench, table, "cuEventRecord", 64,
             [&] { BENCH_CU(driver, cuEventRecord(event.handle, other.handle)); });
    bench.session.synchronize();
    add_call(bench, table, "cuEventQuery of a completed event", 64,
             [&] { BENCH_CU(driver, cuEventQuery(event.handle)); });
    add_call(bench, table, "cuStreamQuery of an idle stream", 64,
             [&] { BENCH_CU(driver, cuStreamQuery(other.handle)); });
    add_call(bench, table, "cuStreamWaitEvent", 64,
             [&] { BENCH_CU(driver, cuStreamWaitEvent(other.handle, event.handle, 0)); });
}

}  // namespace libswap::bench
