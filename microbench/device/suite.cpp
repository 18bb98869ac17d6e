// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/device/suite.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "microbench/device/gpu_prober.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kMib = 1 << 20;

std::string header(const DeviceInfo& info, const SuiteOptions& options) {
    return fmt::format(
        "libswap {}, {} benchmarks\n"
        "{}, compute capability {}.{}, {} SMs at {:.2f} GHz, {:.1f} GiB, L2 {:.1f} MiB\n"
        "{}, CUDA driver {}.{}\n",
        options.version, options.depth == Depth::Full ? "full" : "quick", info.name,
        info.compute_major, info.compute_minor, info.sm_count, info.clock_khz * 1e-6,
        static_cast<double>(info.memory_bytes) / (1024.0 * kMib),
        static_cast<double>(info.l2_bytes) / kMib, info.uuid, info.driver_version / 1000,
        info.driver_version % 1000 / 10);
}

/// Four times the L2, for circles that it cannot hold.
std::uint64_t probed_bytes(const Session& session) {
    std::uint64_t bytes = 256 * kMib;
    while (bytes < 4 * session.info().l2_bytes) bytes *= 2;
    while (bytes > session.free_bytes() / 2 && bytes > kMib) bytes /= 2;
    return bytes;
}

void measure_hierarchy(Bench& bench) {
    GpuProber prober(bench.session, probed_bytes(bench.session));
    const std::uint64_t circle =
        std::max<std::uint64_t>(64 * kMib, std::bit_ceil(4 * bench.session.info().l2_bytes));
    bench.report.hierarchy = analyse_hierarchy(prober, circle);
    for (Table& table : hierarchy_tables(bench.report.hierarchy))
        bench.report.tables.push_back(std::move(table));
    for (Plot& plot : hierarchy_plots(bench.report.hierarchy))
        bench.report.plots.push_back(std::move(plot));
    for (const std::string& line : bench.report.hierarchy.not_measured)
        bench.report.not_measured.push_back(line);
    if (!prober.error().empty())
        bench.report.not_measured.push_back("memory hierarchy: " + prober.error());
}

struct Measurement {
    const char* name;
    void (*measure)(Bench&);
    bool only_full;
    bool in_profile;  ///< plans rest on it
};

// Launches first: what they cost is subtracted from later ones. Device memory before arithmetic,
// and kernels behind both: the Roofline has all three.
constexpr Measurement kMeasurements[] = {
    {"calls", measure_calls, false, true},           {"link", measure_transfers, false, true},
    {"duplex", measure_duplex, false, true},         {"pageable", measure_pageable, false, false},
    {"chunks", measure_chunks, true, false},         {"vmm", measure_vmm, false, true},
    {"host", measure_host_memory, false, false},     {"memory", measure_memory, false, true},
    {"arithmetic", measure_arithmetic, false, true}, {"kernels", measure_kernels, false, false},
    {"digest", measure_digest, false, false},        {"hierarchy", measure_hierarchy, true, false},
};

bool wanted(const SuiteOptions& options, const Measurement& measurement) {
    if (options.only.empty()) return options.depth == Depth::Full || !measurement.only_full;
    return std::find(options.only.begin(), options.only.end(), measurement.name) !=
           options.only.end();
}

void measure_all(const SuiteOptions& options, Bench& bench) {
    std::string left_out;
    for (const Measurement& measurement : kMeasurements) {
        if (!wanted(options, measurement)) {
            left_out += fmt::format("{}{}", left_out.empty() ? "" : ", ", measurement.name);
            if (measurement.in_profile) bench.report.missing.emplace_back(measurement.name);
            continue;
        }
        try {
            measurement.measure(bench);
        } catch (const CudaError& failure) {
            bench.report.not_measured.push_back(
                fmt::format("{}: {}", measurement.name, failure.what()));
            if (measurement.in_profile) bench.report.missing.emplace_back(measurement.name);
        }
    }
    if (!left_out.empty()) bench.report.not_measured.push_back(left_out + ": not asked for");
    if (!bench.full())
        bench.report.not_measured.push_back(
            "writes and copies in device memory, arithmetic of other types than fp32: only with "
            "--full");
}

}  // namespace

std::vector<std::string> measurement_names() {
    std::vector<std::string> names;
    for (const Measurement& measurement : kMeasurements) names.emplace_back(measurement.name);
    return names;
}

Report run_suite(const SuiteOptions& options) {
    Session session(options.device);
    const DeviceInfo& info = session.info();
    Report report;
    report.header = header(info, options);
    report.profile.device_name = info.name;
    report.profile.uuid = info.uuid;
    report.profile.driver_version = info.driver_version;
    report.profile.measured_by = fmt::format("libswap {}, {}", options.version,
                                             options.depth == Depth::Full ? "full" : "quick");
    report.profile.machine = cost::engine_machine();
    report.profile.machine.name = info.name;
    Bench bench{session, options.depth, report, options.digest_ptx};
    measure_all(options, bench);
    return report;
}

}  // namespace libswap::bench
