// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// play WORKLOAD [--iterations N] [--json FILE]: see README.md.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "examples/play/player.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"

namespace {

struct Arguments {
    std::string workload;
    int iterations = 8;
    std::string json;
};

int fail(const std::string& message) {
    fmt::print(stderr, "play: {}\n", message);
    return 1;
}

std::string json_of(const std::vector<double>& times_ms, double recorded_ms, std::uint64_t digest) {
    return fmt::format(
        "{{\"format\": \"libswap-play/1\", \"iterations_ms\": [{:.6f}], \"recorded_ms\": {:.6f}, "
        "\"digest\": \"{:016x}\"}}\n",
        fmt::join(times_ms, ", "), recorded_ms, digest);
}

int run(const Arguments& args) {
    const auto workload = libswap::tools::load_workload(args.workload);
    if (!workload) return fail(workload.error());
    const double recorded_ms = workload->compute_us() / 1000;
    fmt::print("{} operations, {:.3f} ms, peak {}\n", workload->op_count(), recorded_ms,
               libswap::tools::format_bytes(static_cast<double>(workload->peak_bytes())));
    play::Player player(*workload);
    std::vector<double> times_ms;
    for (int i = 1; i <= args.iterations; ++i) {
        times_ms.push_back(player.run_iteration());
        fmt::print("iteration {}: {:.3f} ms\n", i, times_ms.back());
        std::fflush(stdout);
    }
    const std::uint64_t digest = player.digest();
    fmt::print("digest {:016x}\n", digest);
    if (args.json.empty()) return 0;
    const auto written =
        libswap::tools::write_file(args.json, json_of(times_ms, recorded_ms, digest));
    return written ? 0 : fail(written.error());
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Runs a workload file as a training program would", "play");
    Arguments args;
    app.add_option("workload", args.workload, "libswap-workload/1 file, .gz or plain")->required();
    app.add_option("--iterations", args.iterations, "how many")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--json", args.json, "write the iterations' times here");
    CLI11_PARSE(app, argc, argv);
    try {
        return run(args);
    } catch (const std::exception& error) {
        return fail(error.what());
    }
}
