// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include "tools/command_bench.hpp"
#include "tools/commands.hpp"

namespace libswap::tools {

int fail(const std::string& text) {
    fmt::print(stderr, "swapctl: {}\n", text);
    return 1;
}

}  // namespace libswap::tools

namespace {

bool is_command(const CLI::App& app, const std::string& name) {
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    return std::any_of(commands.begin(), commands.end(),
                       [&](const CLI::App* command) { return command->get_name() == name; });
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Plans, runs and explains GPU memory swapping with libswap.", "swapctl");
    app.set_version_flag("--version", "swapctl " LIBSWAP_VERSION);
    app.require_subcommand(1);
    int exit_status = 0;
    libswap::tools::add_run_command(app, exit_status);
    libswap::tools::add_report_command(app, exit_status);
    libswap::tools::add_workload_command(app, exit_status);
    libswap::tools::add_plan_command(app, exit_status);
    libswap::tools::add_compare_command(app, exit_status);
    libswap::tools::add_generate_command(app, exit_status);
    libswap::tools::add_fit_command(app, exit_status);
    libswap::tools::add_trace_command(app, exit_status);
    libswap::tools::add_bench_command(app, exit_status);
    if (argc > 1 && argv[1][0] != '-' && !is_command(app, argv[1])) {
        libswap::tools::fail(
            fmt::format("unknown command {} (swapctl --help lists them)", argv[1]));
        return 2;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
        libswap::tools::fail(e.what());
        return 2;
    } catch (const std::exception& e) {
        return libswap::tools::fail(e.what());
    }
    return exit_status;
}
