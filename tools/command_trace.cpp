// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <memory>

#include <fmt/format.h>

#include "tools/chrome_trace.hpp"
#include "tools/commands.hpp"
#include "tools/files.hpp"

namespace libswap::tools {

namespace {

struct TraceArguments {
    std::string dump;
    std::string output;
};

int run_trace(const TraceArguments& args) {
    const auto text = read_file(args.dump);
    if (!text) return fail(text.error());
    const auto dump = parse_trace(*text);
    if (!dump) return fail(fmt::format("{}: {}", args.dump, dump.error()));
    const std::string trace = format_chrome_trace(*dump);
    if (args.output.empty()) {
        fmt::print("{}", trace);
    } else if (const auto written = write_file(args.output, trace); !written) {
        return fail(written.error());
    }
    return 0;
}

}  // namespace

void add_trace_command(CLI::App& app, int& exit_status) {
    auto args = std::make_shared<TraceArguments>();
    CLI::App* command =
        app.add_subcommand("trace", "Turn a trace dump into a picture for ui.perfetto.dev");
    command->add_option("dump", args->dump, "the dump")->required();
    command->add_option("-o,--output", args->output,
                        "Chrome trace JSON, packed if it ends in .gz (standard output)");
    command->callback([args, &exit_status] { exit_status = run_trace(*args); });
}

}  // namespace libswap::tools
