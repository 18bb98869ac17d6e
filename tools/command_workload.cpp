// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <memory>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"
#include "tools/trace_dump.hpp"
#include "tools/workload_output.hpp"

namespace libswap::tools {

namespace {

struct WorkloadArguments {
    std::string dump;
    std::string output;
};

int run_workload(const WorkloadArguments& args) {
    const auto text = read_file(args.dump);
    if (!text) return fail(text.error());
    const auto dump = parse_trace(*text);
    if (!dump) return fail(fmt::format("{}: {}", args.dump, dump.error()));
    if (dump->dropped > 0) {
        fmt::print(stderr, "swapctl: {}: {} events were dropped while recording\n", args.dump,
                   dump->dropped);
    }
    const auto workload = workload_of(*dump);
    if (!workload) return fail(fmt::format("{}: {}", args.dump, workload.error()));
    return put_out(*workload, {"libswap-trace/1", args.dump, dump->device_name, "", 0},
                   args.output);
}

}  // namespace

void add_workload_command(CLI::App& app, int& exit_status) {
    auto args = std::make_shared<WorkloadArguments>();
    CLI::App* command = app.add_subcommand(
        "workload", "Turn a trace dump (LIBSWAP_TRACE) into a workload of one iteration");
    command->add_option("dump", args->dump, "the dump")->required();
    command->add_option("-o,--output", args->output,
                        "libswap-workload/1 file, packed if it ends in .gz (standard output)");
    command->callback([args, &exit_status] { exit_status = run_workload(*args); });
}

}  // namespace libswap::tools
