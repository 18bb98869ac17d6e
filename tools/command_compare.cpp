// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/comparison.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"

namespace libswap::tools {

namespace {

struct CompareArguments {
    std::vector<std::string> workloads;
    std::vector<std::string> budgets{"80%", "60%", "40%"};
    std::vector<std::string> policies;
    std::string machine = "pcie4-a100";
    std::string bounds;
    std::string svg;
    std::string output;
    bool json = false;
};

/// "folder/vit-b512.json.gz" -> "vit-b512"
std::string short_name(const std::string& path) {
    std::string name = std::filesystem::path(path).filename().string();
    for (const char* ending : {".gz", ".json"}) {
        if (name.ends_with(ending))
            name.resize(name.size() - std::char_traits<char>::length(ending));
    }
    return name;
}

Outcome outcome_of(cost::PolicyKind kind, const cost::Workload& workload,
                   const cost::Machine& machine, std::uint64_t budget_bytes) {
    const auto begin = std::chrono::steady_clock::now();
    const auto planned =
        cost::make_policy_plan(kind, workload, machine, {.budget_bytes = budget_bytes});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    Outcome outcome;
    outcome.planning_ms = took.count();
    if (planned) {
        outcome.iteration_us = planned->result.predicted.iteration_us;
        outcome.note = planned->note;
    } else {
        outcome.note = planned.error().message;
    }
    return outcome;
}

class CompareCommand {
  public:
    explicit CompareCommand(const CompareArguments& args) : args_(args) {}

    tl::expected<Comparison, std::string> run() {
        if (auto error = read_choices()) return tl::unexpected(std::move(*error));
        for (const std::string& path : args_.workloads) {
            if (auto error = compare(path)) return tl::unexpected(std::move(*error));
        }
        return std::move(result_);
    }

  private:
    std::optional<std::string> read_choices() {
        const auto machine = load_machine(args_.machine);
        if (!machine) return machine.error();
        machine_ = *machine;
        result_.machine = machine_.name;
        for (const std::string& name : args_.policies) {
            const auto policy = load_policy(name);
            if (!policy) return policy.error();
            result_.policies.push_back(*policy);
        }
        if (args_.policies.empty()) {
            const auto all = cost::all_policies();
            result_.policies.assign(all.begin(), all.end());
        }
        if (args_.bounds.empty()) return std::nullopt;
        const auto text = read_file(args_.bounds);
        if (!text) return text.error();
        auto bounds = Bounds::parse(*text);
        if (!bounds) return fmt::format("{}: {}", args_.bounds, bounds.error());
        bounds_ = std::move(*bounds);
        return std::nullopt;
    }

    std::optional<std::string> compare(const std::string& path) {
        const auto workload = load_workload(path);
        if (!workload) return workload.error();
        const std::uint64_t peak = workload->peak_bytes();
        for (const std::string& budget : args_.budgets) {
            const auto bytes = parse_budget(budget, peak);
            if (!bytes) return bytes.error();
            ComparedCase one;
            one.workload = short_name(path);
            one.budget = budget;
            one.share = static_cast<double>(*bytes) / static_cast<double>(peak);
            one.compute_us = workload->compute_us();
            one.bound_us = bounds_.find_us(one.workload, machine_.name, one.share);
            for (const cost::PolicyKind kind : result_.policies) {
                one.outcomes.push_back(outcome_of(kind, *workload, machine_, *bytes));
            }
            result_.cases.push_back(std::move(one));
        }
        return std::nullopt;
    }

    const CompareArguments& args_;
    cost::Machine machine_;
    Bounds bounds_;
    Comparison result_;
};

int run_compare(const CompareArguments& args) {
    const auto comparison = CompareCommand(args).run();
    if (!comparison) return fail(comparison.error());
    if (!args.svg.empty()) {
        const auto written = write_file(args.svg, format_svg(*comparison));
        if (!written) return fail(written.error());
    }
    const std::string text =
        args.json ? format_comparison_json(*comparison) : format_table(*comparison);
    if (args.output.empty()) {
        fmt::print("{}", text);
    } else if (const auto written = write_file(args.output, text); !written) {
        return fail(written.error());
    }
    return 0;
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_status) {
    auto args = std::make_shared<CompareArguments>();
    CLI::App* command = app.add_subcommand("compare", "Compare all policies on workloads");
    command->add_option("workload", args->workloads, "libswap-workload/1 files")->required();
    command->add_option("--budget", args->budgets, "budgets, separated by commas")
        ->delimiter(',')
        ->capture_default_str();
    command->add_option("--machine", args->machine, "a known machine's name, or a machine file")
        ->capture_default_str();
    command->add_option("--policy", args->policies, "only these, separated by commas (all)")
        ->delimiter(',');
    command->add_option("--bounds", args->bounds, "times that no plan can beat, as bounds.json");
    command->add_option("--svg", args->svg, "draw a picture of the table");
    command->add_option("-o,--output", args->output, "write the table here (standard output)");
    command->add_flag("--json", args->json, "one JSON object instead of a Markdown table");
    command->callback([args, &exit_status] { exit_status = run_compare(*args); });
}

}  // namespace libswap::tools
