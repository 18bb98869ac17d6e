// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/bound.hpp"
#include "cost/policies/policy.hpp"
#include "cost/replay.hpp"
#include "tools/commands.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"

namespace libswap::tools {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kStallsShown = 5;

struct PlanArguments {
    std::string workload;
    std::string budget = "60%";
    std::string host_limit;
    std::string machine = "pcie4-a100";
    std::string policy = "libswap";
    std::string output;
    std::string check;
    std::size_t bound_slots = 64;
    bool whole_tensors = false;
    bool json = false;
};

/// What one operation waited for before it began.
struct Stall {
    cost::OpIndex op = 0;
    double us = 0;
};

/// The longest waits of an iteration, longest first. One before the first operation is not seen.
std::vector<Stall> longest_stalls(const cost::Workload& workload,
                                  const std::vector<double>& op_start_us) {
    std::vector<Stall> stalls;
    for (cost::OpIndex k = 1; k < workload.op_count() && k < op_start_us.size(); ++k) {
        const double us = op_start_us[k] - op_start_us[k - 1] - workload.op(k - 1).duration_us;
        if (us > 1) stalls.push_back({k, us});
    }
    std::stable_sort(stalls.begin(), stalls.end(),
                     [](const Stall& a, const Stall& b) { return a.us > b.us; });
    stalls.resize(std::min(stalls.size(), kStallsShown));
    return stalls;
}

/// The figures, in the order they are shown.
ordered_json figures(const cost::PolicyResult& planned, const cost::Workload& workload,
                     std::uint64_t budget_bytes, const std::string& machine,
                     std::optional<double> bound_us) {
    const cost::PlanResult& result = planned.result;
    ordered_json bound = nullptr;
    if (bound_us) bound = *bound_us;
    ordered_json stalls = ordered_json::array();
    for (const Stall& s : longest_stalls(workload, result.predicted.op_start_us)) {
        stalls.push_back({{"op", s.op}, {"name", std::string(workload.name(s.op))}, {"us", s.us}});
    }
    return {{"machine", machine},
            {"operations", workload.op_count()},
            {"peak_bytes", result.peak_bytes},
            {"budget_bytes", budget_bytes},
            {"host_bytes", result.host_bytes},
            {"iteration_us", result.predicted.iteration_us},
            {"compute_us", result.compute_us},
            {"bound_us", std::move(bound)},
            {"slowdown", result.predicted.iteration_us / result.compute_us},
            {"d2h_bytes", result.predicted.to_host_bytes},
            {"h2d_bytes", result.predicted.to_device_bytes},
            {"peak_used_bytes", result.predicted.peak_used_bytes},
            {"actions", result.plan.actions.size()},
            {"stalls", std::move(stalls)},
            {"note", planned.note}};
}

void print_figures(const std::string& policy, const ordered_json& f) {
    const auto line = [](const char* what, const std::string& value) {
        fmt::print("{:<12}{}\n", what, value);
    };
    const double peak = f["peak_bytes"];
    const double budget = f["budget_bytes"];
    const double time_us = f["iteration_us"];
    const double compute_us = f["compute_us"];
    const auto note = f["note"].get<std::string>();
    line("policy", note.empty() ? policy : fmt::format("{} ({})", policy, note));
    line("machine", f["machine"].get<std::string>());
    line("operations", fmt::format("{}", f["operations"].get<std::size_t>()));
    line("peak", format_bytes(peak));
    line("budget",
         fmt::format("{} ({:.1f}% of the peak)", format_bytes(budget), 100 * budget / peak));
    line("host", format_bytes(f["host_bytes"]));
    line("time", fmt::format("{:.3f} ms", time_us / 1e3));
    line("ideal", fmt::format("{:.3f} ms", compute_us / 1e3));
    line("slowdown", fmt::format("{:.3f}", f["slowdown"].get<double>()));
    if (!f["bound_us"].is_null()) {
        const double bound_us = f["bound_us"];
        line("bound", fmt::format("{:.3f} ms, no plan is faster; this one is {:.1f}% above it",
                                  bound_us / 1e3, 100 * (time_us / bound_us - 1)));
    }
    line("stalled", fmt::format("{:.3f} ms", (time_us - compute_us) / 1e3));
    line("out", fmt::format("{} per iteration", format_bytes(f["d2h_bytes"])));
    line("in", fmt::format("{} per iteration", format_bytes(f["h2d_bytes"])));
    line("actions", fmt::format("{}", f["actions"].get<std::size_t>()));
    for (const auto& s : f["stalls"]) {
        line("waits", fmt::format("{:.3f} ms before operation {} ({})", s["us"].get<double>() / 1e3,
                                  s["op"].get<std::size_t>(), s["name"].get<std::string>()));
    }
}

/// A plan from elsewhere, replayed instead of made.
tl::expected<cost::PolicyResult, std::string> check_plan(const PlanArguments& args,
                                                         const cost::Workload& workload,
                                                         const cost::Machine& machine,
                                                         std::uint64_t budget_bytes) {
    const auto text = read_file(args.check);
    if (!text) return tl::unexpected(text.error());
    auto plan = parse_plan(*text, workload);
    if (!plan) return tl::unexpected(fmt::format("{}: {}", args.check, plan.error()));
    auto replayed = cost::replay(workload, machine, budget_bytes, *plan, {.timeline = true});
    if (!replayed) {
        return tl::unexpected(fmt::format("{}: {}", args.check, replayed.error().message));
    }
    cost::PolicyResult checked;
    checked.result.plan = std::move(*plan);
    checked.result.predicted = std::move(*replayed);
    checked.result.compute_us = workload.compute_us();
    checked.result.peak_bytes = workload.peak_bytes();
    checked.result.host_bytes = checked.result.predicted.host_bytes;
    return checked;
}

tl::expected<cost::PolicyResult, std::string> make_plan(const PlanArguments& args,
                                                        const cost::Workload& workload,
                                                        const cost::Machine& machine,
                                                        std::uint64_t budget_bytes) {
    const auto policy = load_policy(args.policy);
    if (!policy) return tl::unexpected(policy.error());
    cost::PlanRequest request;
    request.budget_bytes = budget_bytes;
    request.whole_tensors = args.whole_tensors;
    if (!args.host_limit.empty()) {
        const auto limit = parse_budget(args.host_limit, workload.peak_bytes());
        if (!limit) return tl::unexpected(limit.error());
        request.host_limit_bytes = *limit;
    }
    auto result = cost::make_policy_plan(*policy, workload, machine, request);
    if (!result) return tl::unexpected(result.error().message);
    return std::move(*result);
}

int run_plan(const PlanArguments& args) {
    const auto workload = load_workload(args.workload);
    if (!workload) return fail(workload.error());
    const auto machine = load_machine(args.machine);
    if (!machine) return fail(machine.error());
    const auto budget = parse_budget(args.budget, workload->peak_bytes());
    if (!budget) return fail(budget.error());
    const auto result = args.check.empty() ? make_plan(args, *workload, *machine, *budget)
                                           : check_plan(args, *workload, *machine, *budget);
    if (!result) return fail(result.error());
    if (!args.output.empty()) {
        const auto written = write_file(args.output, format_plan(result->result.plan, *workload));
        if (!written) return fail(written.error());
    }
    std::optional<double> bound_us;
    if (args.bound_slots > 0) {
        bound_us = cost::iteration_bound_us(*workload, *machine, *budget, args.bound_slots);
    }
    const auto f = figures(*result, *workload, *budget, machine->name, bound_us);
    if (args.json) {
        fmt::print("{}\n", f.dump());
    } else {
        print_figures(args.check.empty() ? args.policy : args.check, f);
    }
    return 0;
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_status) {
    auto args = std::make_shared<PlanArguments>();
    CLI::App* command =
        app.add_subcommand("plan", "Plan the swapping of a workload and predict its time");
    command->add_option("workload", args->workload, "libswap-workload/1 file, .gz or plain")
        ->required();
    command->add_option("--budget", args->budget, "device memory: 8GiB, or 60% of the peak")
        ->capture_default_str();
    command->add_option("--host-limit", args->host_limit, "memory for host copies (no limit)");
    command->add_option("--machine", args->machine, "a known machine's name, or a machine file")
        ->capture_default_str();
    command->add_option("--policy", args->policy, policy_names())->capture_default_str();
    command->add_option("-o,--output", args->output, "write the plan (libswap-plan/1) here");
    command->add_option("--check", args->check, "replay this plan instead of making one");
    command
        ->add_option("--bound", args->bound_slots,
                     "slots of the lower bound: more are tighter and take longer; 0: without")
        ->check(CLI::Range(0, 1000))
        ->capture_default_str();
    command->add_flag("--whole-tensors", args->whole_tensors, "move no parts of tensors");
    command->add_flag("--json", args->json, "the figures as one JSON object");
    command->callback([args, &exit_status] { exit_status = run_plan(*args); });
}

}  // namespace libswap::tools
