// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <memory>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/formats.hpp"
#include "tools/generate_options.hpp"
#include "tools/workload_output.hpp"

namespace libswap::tools {

namespace {

struct GenerateArguments {
    GenerateChoices choices;
    std::string machine = "pcie4-a100";
    std::string output;
};

int run_generate(const GenerateArguments& args) {
    const auto machine = load_machine(args.machine);
    if (!machine) return fail(machine.error());
    const auto options = args.choices.options(machine->ceilings);
    if (!options) return fail(options.error());
    const auto workload = cost::generate_workload(args.choices.model, *options);
    if (!workload) return fail(workload.error());
    return put_out(
        *workload,
        {"swapctl generate", args.choices.model, machine->name + " (Roofline)", "", options->batch},
        args.output);
}

}  // namespace

void add_generate_command(CLI::App& app, int& exit_status) {
    auto args = std::make_shared<GenerateArguments>();
    CLI::App* command =
        app.add_subcommand("generate", "Make the workload of a known model's training iteration");
    args->choices.add_to(*command);
    command->add_option("--machine", args->machine, "whose ceilings give the times")
        ->capture_default_str();
    command->add_option("-o,--output", args->output,
                        "libswap-workload/1 file, packed if it ends in .gz (standard output)");
    command->callback([args, &exit_status] { exit_status = run_generate(*args); });
}

}  // namespace libswap::tools
