// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Plans every workload at several budgets and shows how far each is from the bound, where one is
// known. Run by scripts/plan_scoreboard.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cost/planner.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"

namespace libswap::tools {
namespace {

struct Settings {
    std::string shared;
    std::string machine = "pcie4-a100";
    std::string only;
    std::vector<double> shares{0.8, 0.6, 0.4};
    std::string plans;
    double effort_ms = cost::PlanRequest{}.effort_ms;
};

double processor_ms() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

/// Unit us, by workload, machine and share of the peak.
std::map<std::string, double> read_bounds(const std::string& shared) {
    std::map<std::string, double> bounds;
    const auto text = read_file(shared + "/referee/bounds.json");
    if (!text) return bounds;
    for (const auto& b : nlohmann::json::parse(*text, nullptr, false)) {
        const std::string key =
            fmt::format("{} {} {}", b["workload"].get<std::string>(),
                        b["machine"].get<std::string>(), b["share"].get<double>());
        bounds[key] = b["iteration_us"];
    }
    return bounds;
}

std::vector<std::filesystem::path> workload_files(const Settings& settings) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(settings.shared + "/workloads")) {
        const std::string name = entry.path().filename();
        if (name.find(".json") == std::string::npos) continue;
        if (name.find(settings.only) == std::string::npos) continue;
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

class Scoreboard {
  public:
    Scoreboard(Settings settings, cost::Machine machine)
        : settings_(std::move(settings)),
          machine_(std::move(machine)),
          bounds_(read_bounds(settings_.shared)) {}

    int run() {
        fmt::print("{:<20}{:>6}{:>11}{:>9}{:>11}{:>9}{:>8}\n", "workload", "ops", "budget %",
                   "bound", "slowdown", "ratio", "ms");
        for (const auto& file : workload_files(settings_)) {
            const auto text = read_file(file);
            const auto workload = text ? parse_workload(*text) : tl::unexpected(text.error());
            if (!workload) {
                fmt::print("{}: {}\n", file.string(), workload.error());
                ++failed_;
                continue;
            }
            const std::string name = file.filename().string();
            for (const double share : settings_.shares) {
                judge(name.substr(0, name.find(".json")), *workload, share);
            }
        }
        summary();
        return failed_ > 0 ? 1 : 0;
    }

  private:
    void judge(const std::string& name, const cost::Workload& workload, double share) {
        const auto budget =
            static_cast<std::uint64_t>(share * static_cast<double>(workload.peak_bytes()));
        const double before_ms = processor_ms();
        const auto result = cost::make_plan(
            workload, machine_, {.budget_bytes = budget, .effort_ms = settings_.effort_ms});
        const double ms = processor_ms() - before_ms;
        if (!result) {
            fmt::print("{:<20}{:>6}{:>11.0f}  {}\n", name, workload.op_count(), 100 * share,
                       result.error().message);
            ++failed_;
            return;
        }
        const auto known = bounds_.find(fmt::format("{} {} {}", name, machine_.name, share));
        const double compute_us = workload.compute_us();
        const double bound_us = known == bounds_.end() ? compute_us : known->second;
        const double ratio = result->predicted.iteration_us / bound_us;
        fmt::print("{:<20}{:>6}{:>11.0f}{:>9.3f}{:>11.4f}{:>9.4f}{:>8.1f}\n", name,
                   workload.op_count(), 100 * share, bound_us / compute_us,
                   result->predicted.iteration_us / compute_us, ratio, ms);
        log_sum_ += std::log(ratio);
        worst_ = std::max(worst_, ratio);
        total_ms_ += ms;
        slowest_ms_ = std::max(slowest_ms_, ms);
        ++count_;
        if (settings_.plans.empty()) return;
        const auto file = fmt::format("{}/{}.{:.0f}.json", settings_.plans, name, 100 * share);
        if (!write_file(file, format_plan(result->plan, workload))) ++failed_;
    }

    void summary() const {
        if (count_ == 0) return;
        fmt::print(
            "{} cases: geometric mean {:.4f}, worst {:.4f}, planning {:.1f} ms in the mean, "
            "{:.1f} at most, {} failed\n",
            count_, std::exp(log_sum_ / count_), worst_, total_ms_ / count_, slowest_ms_, failed_);
    }

    Settings settings_;
    cost::Machine machine_;
    std::map<std::string, double> bounds_;
    double log_sum_ = 0;
    double worst_ = 0;
    double total_ms_ = 0;
    double slowest_ms_ = 0;
    int count_ = 0;
    int failed_ = 0;
};

}  // namespace
}  // namespace libswap::tools

int main(int argc, char** argv) {
    using namespace libswap::tools;
    Settings settings;
    CLI::App app("Plans the handed workloads and compares with the bounds");
    app.add_option("shared", settings.shared, "folder with workloads/ and referee/")->required();
    app.add_option("--machine", settings.machine)->capture_default_str();
    app.add_option("--effort", settings.effort_ms, "of each plan, ms")->capture_default_str();
    app.add_option("--only", settings.only, "workloads whose name has this");
    app.add_option("--shares", settings.shares, "budgets, as shares of the peak")->delimiter(',');
    app.add_option("--plans", settings.plans, "write the plans to this folder");
    CLI11_PARSE(app, argc, argv);
    const auto machine = load_machine(settings.machine);
    if (!machine) {
        fmt::print(stderr, "{}\n", machine.error());
        return 1;
    }
    return Scoreboard(settings, *machine).run();
}
