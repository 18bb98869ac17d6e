// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/command_bench.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "microbench/device/suite.hpp"
#include "runtime/device_profile.hpp"
#include "runtime/digest.hpp"
#include "tools/commands.hpp"
#include "tools/files.hpp"

namespace libswap::tools {

namespace {

struct BenchArguments {
    int device = 0;
    bool quick = false;
    bool full = false;
    bool json = false;
    bool no_cache = false;
    std::string output;
    std::string svg;
    std::vector<std::string> only;
};

/// What was measured, where libswap and swapctl look for it.
std::string save_profile(const bench::DeviceProfile& profile) {
    const std::string path = device_profile_path(profile.uuid, profile.driver_version);
    if (path.empty()) return "no folder for the profile: neither XDG_CACHE_HOME nor HOME is set";
    const std::string text = bench::format_profile(profile);
    if (!save_device_profile(path, text)) return fmt::format("cannot write {}", path);
    return fmt::format("profile: {}", path);
}

void print_report(const bench::Report& report) {
    fmt::print("{}", report.header);
    for (const bench::Table& table : report.tables) fmt::print("{}", bench::format_table(table));
    if (report.not_measured.empty()) return;
    fmt::print("\nNot measured\n");
    for (const std::string& line : report.not_measured) fmt::print("  {}\n", line);
}

int run_bench(const BenchArguments& args) {
    bench::SuiteOptions options;
    options.device = args.device;
    options.depth = args.full ? bench::Depth::Full : bench::Depth::Quick;
    options.only = args.only;
    options.digest_ptx = kDigestPtx;
    options.version = LIBSWAP_VERSION;
    const auto begin = std::chrono::steady_clock::now();
    const bench::Report report = bench::run_suite(options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!args.output.empty()) {
        const auto written = write_file(args.output, bench::format_profile(report.profile));
        if (!written) return fail(written.error());
    }
    for (const bench::Plot& plot : report.plots) {
        if (args.svg.empty()) break;
        const auto written =
            write_file(fmt::format("{}/{}.svg", args.svg, plot.file), bench::format_svg(plot));
        if (!written) return fail(written.error());
    }
    if (args.json) {
        fmt::print("{}", bench::format_json(report));
    } else {
        print_report(report);
        fmt::print("\nTook {:.1f} s.\n", took.count());
    }
    // A profile of which half was not measured would pass for one.
    if (!args.no_cache && args.only.empty())
        fmt::print(stderr, "swapctl: {}\n", save_profile(report.profile));
    return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
    auto args = std::make_shared<BenchArguments>();
    CLI::App* command =
        app.add_subcommand("bench", "Measure a device, its link and the calls that move memory");
    auto* quick = command->add_flag("--quick", args->quick, "under a second (the default)");
    command->add_flag("--full", args->full, "everything, under two minutes")->excludes(quick);
    command->add_flag("--json", args->json, "all figures as one JSON object");
    command->add_option("--device", args->device, "the driver's number of the device")
        ->capture_default_str();
    command->add_option("-o,--output", args->output, "write the profile (a machine file) here too");
    command->add_option("--only", args->only, "only these measurements, comma-separated")
        ->delimiter(',')
        ->check(CLI::IsMember(bench::measurement_names()));
    command->add_option("--svg", args->svg, "write plots into this folder");
    command->add_flag("--no-cache", args->no_cache, "do not keep the profile");
    command->callback([args, &exit_status] { exit_status = run_bench(*args); });
}

}  // namespace libswap::tools
