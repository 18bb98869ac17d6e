// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/planner.hpp"
#include "tools/commands.hpp"
#include "tools/formats.hpp"
#include "tools/generate_options.hpp"

namespace libswap::tools {

namespace {

constexpr double kRounding = 1 + 1e-9;       // of times that are added up in another order
constexpr std::uint64_t kBudgetSteps = 256;  // the answer is exact to this share of the peak

struct FitArguments {
    GenerateChoices choices;  // its model is a workload file where there is no --memory
    std::string memory;
    std::string machine = "pcie4-a100";
    double max_slowdown = 1.2;
    bool json = false;
};

/// The slowdown under a budget; nothing where there is no plan, or a slower one than wanted.
std::optional<double> slowdown_of(const cost::Workload& workload, const cost::Machine& machine,
                                  std::uint64_t budget_bytes, double max_slowdown) {
    const auto plan = cost::make_plan(workload, machine, {.budget_bytes = budget_bytes});
    if (!plan || !(plan->compute_us > 0)) return std::nullopt;
    const double slowdown = plan->predicted.iteration_us / plan->compute_us;
    if (slowdown > max_slowdown * kRounding) return std::nullopt;
    return slowdown;
}

void print(const FitArguments& args, const nlohmann::ordered_json& figures) {
    if (args.json) {
        fmt::print("{}\n", figures.dump());
        return;
    }
    for (const auto& [key, value] : figures.items()) {
        const bool bytes = key.ends_with("_bytes");
        const std::string label = bytes ? key.substr(0, key.size() - 6) : key;
        const std::string text = bytes ? format_bytes(value.get<double>())
                                 : value.is_number_float()
                                     ? fmt::format("{:.3f}", value.get<double>())
                                     : value.dump();
        fmt::print("{:<12}{}\n", label, text);
    }
}

/// The smallest budget, in steps of the peak, that keeps the slowdown within the limit.
int fit_budget(const FitArguments& args, const cost::Machine& machine) {
    const auto workload = load_workload(args.choices.model);
    if (!workload) return fail(workload.error());
    const std::uint64_t peak = workload->peak_bytes();
    std::uint64_t least = 0;
    for (std::size_t i = 0; i < workload->op_count(); ++i) {
        least = std::max(least, workload->op_bytes(i));
    }
    const std::uint64_t step = std::max<std::uint64_t>(1, peak / kBudgetSteps);
    std::uint64_t low = least / step;  // times step: too little, or not known to be enough
    std::uint64_t high = (peak + step - 1) / step;
    double slowdown = 1;
    while (low + 1 < high) {
        const std::uint64_t mid = low + (high - low) / 2;
        const auto reached = slowdown_of(*workload, machine, mid * step, args.max_slowdown);
        if (reached) {
            high = mid;
            slowdown = *reached;
        } else {
            low = mid;
        }
    }
    const std::uint64_t budget = std::min(peak, high * step);
    print(args, {{"peak_bytes", peak},
                 {"budget_bytes", budget},
                 {"share", static_cast<double>(budget) / static_cast<double>(peak)},
                 {"slowdown", slowdown}});
    return 0;
}

/// The largest batch (a multiple of the micro-batches) whose iteration fits the memory.
class BatchFit {
  public:
    BatchFit(const FitArguments& args, const cost::Machine& machine, std::uint64_t memory_bytes,
             cost::GenerateOptions options)
        : args_(args), machine_(machine), memory_bytes_(memory_bytes), options_(options) {}

    /// The error is of the generator, or that not even the smallest batch fits.
    tl::expected<std::int64_t, std::string> run() {
        const auto unit = static_cast<std::int64_t>(options_.accumulation);
        if (!fits(unit)) return tl::unexpected(error_);
        std::int64_t low = 1;
        std::int64_t high = 2;
        while (fits(high * unit)) {
            low = high;
            high *= 2;
        }
        while (low + 1 < high) {
            const std::int64_t mid = low + (high - low) / 2;
            (fits(mid * unit) ? low : high) = mid;
        }
        return low * unit;
    }

    double slowdown() const { return slowdown_; }
    std::uint64_t peak_bytes() const { return peak_bytes_; }

  private:
    bool fits(std::int64_t batch) {
        options_.batch = batch;
        const auto workload = cost::generate_workload(args_.choices.model, options_);
        if (!workload) {
            error_ = workload.error();
            return false;
        }
        const auto reached = slowdown_of(*workload, machine_, memory_bytes_, args_.max_slowdown);
        error_ = fmt::format("not even a batch of {} fits {} within a slowdown of {}", batch,
                             format_bytes(static_cast<double>(memory_bytes_)), args_.max_slowdown);
        if (!reached) return false;
        slowdown_ = *reached;
        peak_bytes_ = workload->peak_bytes();
        return true;
    }

    const FitArguments& args_;
    const cost::Machine& machine_;
    std::uint64_t memory_bytes_;
    cost::GenerateOptions options_;
    std::string error_;
    double slowdown_ = 1;
    std::uint64_t peak_bytes_ = 0;
};

int fit_batch(const FitArguments& args, const cost::Machine& machine) {
    const auto memory = parse_budget(args.memory, 0);
    if (!memory || *memory == 0) return fail(fmt::format("not a memory size: {}", args.memory));
    const auto options = args.choices.options(machine.ceilings);
    if (!options) return fail(options.error());
    BatchFit fit(args, machine, *memory, *options);
    const auto batch = fit.run();
    if (!batch) return fail(batch.error());
    print(args, {{"batch", *batch},
                 {"memory_bytes", *memory},
                 {"peak_bytes", fit.peak_bytes()},
                 {"slowdown", fit.slowdown()}});
    return 0;
}

int run_fit(const FitArguments& args) {
    if (!(args.max_slowdown >= 1)) return fail("--max-slowdown must be at least 1");
    const auto machine = load_machine(args.machine);
    if (!machine) return fail(machine.error());
    return args.memory.empty() ? fit_budget(args, *machine) : fit_batch(args, *machine);
}

}  // namespace

void add_fit_command(CLI::App& app, int& exit_status) {
    auto args = std::make_shared<FitArguments>();
    CLI::App* command = app.add_subcommand(
        "fit",
        "The smallest budget for a workload, or with --memory the largest batch of a known model");
    args->choices.add_to(*command);
    command->get_option("model")->description("a workload file, or with --memory one of: " +
                                              generated_model_names());
    command->add_option("--memory", args->memory,
                        "device memory that the batch has to fit, as 24GiB");
    command->add_option("--max-slowdown", args->max_slowdown, "most that swapping may cost")
        ->capture_default_str();
    command->add_option("--machine", args->machine, "a known machine's name, or a machine file")
        ->capture_default_str();
    command->add_flag("--json", args->json, "one JSON object");
    command->callback([args, &exit_status] { exit_status = run_fit(*args); });
}

}  // namespace libswap::tools
