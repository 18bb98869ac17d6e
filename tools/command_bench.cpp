// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/command_bench.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <tl/expected.hpp>

#include "microbench/device/suite.hpp"
#include "runtime/device_profile.hpp"
#include "runtime/digest.hpp"
#include "runtime/measuring.hpp"
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
    std::string aside;
    std::vector<std::string> only;
};

/// Keeps what was measured where libswap and swapctl look for it. The error says why not.
tl::expected<std::string, std::string> save_profile(const bench::Report& report) {
    // A profile of which half was not measured would pass for one.
    if (!report.missing.empty())
        return tl::unexpected(fmt::format("the profile is not kept: {} not measured",
                                          fmt::join(report.missing, ", ")));
    const std::string path =
        device_profile_path(report.profile.uuid, report.profile.driver_version);
    if (path.empty())
        return tl::unexpected(
            std::string("no folder for the profile: neither XDG_CACHE_HOME nor HOME is set"));
    if (!save_device_profile(path, bench::format_profile(report.profile)))
        return tl::unexpected(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
    unlink(measuring_failure_path(path).c_str());
    return path;
}

void print_report(const bench::Report& report) {
    fmt::print("{}", report.header);
    for (const bench::Table& table : report.tables) fmt::print("{}", bench::format_table(table));
    if (report.not_measured.empty()) return;
    fmt::print("\nNot measured\n");
    for (const std::string& line : report.not_measured) fmt::print("  {}\n", line);
}

bench::SuiteOptions suite_options(const BenchArguments& args) {
    // The device is measured, not libswap, which may be preloaded.
    setenv("LIBSWAP_MODE", "off", 1);
    bench::SuiteOptions options;
    options.device = args.device;
    options.depth = args.full ? bench::Depth::Full : bench::Depth::Quick;
    options.only = args.only;
    options.digest_ptx = kDigestPtx;
    options.version = LIBSWAP_VERSION;
    return options;
}

int run_bench(const BenchArguments& args) {
    const bench::SuiteOptions options = suite_options(args);
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
    if (args.no_cache || !args.only.empty()) return 0;
    const auto kept = save_profile(report);
    fmt::print(stderr, "swapctl: {}\n", kept ? "profile: " + *kept : kept.error());
    return 0;
}

/// Waits until no other process of this user measures. Where that cannot be had, it is not waited
/// for.
void lock_folder() {
    const int folder = open(device_profile_folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) flock(folder, LOCK_EX);  // until the end of the process
}

tl::expected<std::string, std::string> measure_aside(const BenchArguments& args) try {
    const bench::Report report = bench::run_suite(suite_options(args));
    const std::string path =
        device_profile_path(report.profile.uuid, report.profile.driver_version);
    if (path != args.aside) return tl::unexpected(std::string("it is another device here"));
    return save_profile(report);
} catch (const std::exception& failure) {
    return tl::unexpected(std::string(failure.what()));
}

/// As libswap starts it beside a program: in nobody's way, and for so long at most.
int run_aside(const BenchArguments& args) {
    constexpr unsigned kMostSeconds = 60;
    std::signal(SIGALRM, SIG_DFL);
    alarm(kMostSeconds);
    setpriority(PRIO_PROCESS, 0, 19);
    close_range(STDERR_FILENO + 1, ~0U, 0);  // the program's
    lock_folder();
    if (is_device_profile(args.aside)) return 0;
    const auto kept = measure_aside(args);
    if (kept) return 0;
    save_device_profile(measuring_failure_path(args.aside), kept.error() + "\n");
    return 1;
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
    command
        ->add_option(
            "--aside", args->aside,
            "as libswap does it beside a program: quick, silent, unless this profile is there")
        ->excludes("--full", "--only", "--json", "--svg", "--no-cache");
    command->callback([args, &exit_status] {
        exit_status = args->aside.empty() ? run_bench(*args) : run_aside(*args);
    });
}

}  // namespace libswap::tools
