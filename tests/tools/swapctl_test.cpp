// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <gtest/gtest.h>

#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/event_log.hpp"
#include "tests/cost/random_workload.hpp"
#include "tests/tools/command.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"

namespace libswap::tools {
namespace {

using nlohmann::json;

class Swapctl : public testing::Test {
  protected:
    static CommandResult swapctl(const std::string& arguments) {
        return run_command(fmt::format("{} {}", std::getenv("LIBSWAP_TEST_SWAPCTL"), arguments));
    }

    /// One clear line and a non-zero status.
    static void expect_complaint(const std::string& arguments, const std::string& about) {
        const CommandResult result = swapctl(arguments);
        EXPECT_NE(result.status, 0) << arguments;
        EXPECT_NE(result.output.find(about), std::string::npos)
            << arguments << ": " << result.output;
        EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
        EXPECT_TRUE(result.output.starts_with("swapctl: ")) << result.output;
    }

    std::string write(const std::string& name, const std::string& content) {
        const std::string path = folder_.file(name);
        EXPECT_TRUE(write_file(path, content));
        return path;
    }

    ScratchFolder folder_;
};

TEST_F(Swapctl, SaysItsVersion) {
    const CommandResult result = swapctl("--version");
    EXPECT_EQ(result.status, 0);
    EXPECT_TRUE(result.output.starts_with("swapctl ")) << result.output;
}

TEST_F(Swapctl, PlansAWorkload) {
    const cost::Workload w = cost::random_training(4, 20);
    const std::string file = write("w.json.gz", format_workload(w, {}));
    const std::string plan = folder_.file("plan.json");
    const CommandResult json_result =
        swapctl(fmt::format("plan {} --budget 70% --json -o {}", file, plan));
    ASSERT_EQ(json_result.status, 0) << json_result.output;
    const json figures = json::parse(json_result.output);
    EXPECT_EQ(figures["peak_bytes"], w.peak_bytes());
    EXPECT_GE(figures["slowdown"].get<double>(), 0.999999);
    const auto text = read_file(plan);
    ASSERT_TRUE(text);
    ASSERT_TRUE(parse_plan(*text, w));
    const CommandResult text_result = swapctl(fmt::format("plan {} --budget 70%", file));
    EXPECT_NE(text_result.output.find("slowdown"), std::string::npos);
    const CommandResult again =
        swapctl(fmt::format("plan {} --budget 70% --json --check {}", file, plan));
    ASSERT_EQ(again.status, 0) << again.output;
    EXPECT_NEAR(json::parse(again.output)["iteration_us"].get<double>(),
                figures["iteration_us"].get<double>(), 1e-3);
}

TEST_F(Swapctl, ComplainsOfBadInputInOneLine) {
    const std::string good = write("w.json", format_workload(cost::random_training(4, 8), {}));
    const std::string packed = write("w.json.gz", format_workload(cost::random_training(4, 8), {}));
    expect_complaint("plan /no/such/file", "/no/such/file");
    expect_complaint("plan " + write("not.json", "hello"), "not JSON");
    expect_complaint("plan " + write("other.json", "{\"format\": \"x\"}"), "libswap-workload/1");
    expect_complaint("plan " + write("array.json", "[]"), "not a JSON object");
    expect_complaint("plan " + write("empty.json", ""), "not JSON");
    std::filesystem::resize_file(packed, 200);
    expect_complaint("plan " + packed, "w.json.gz");
    expect_complaint(
        "plan " + write("unknown.json", R"({"format": "libswap-workload/1", "tensors": [], "ops": [
            {"name": "a", "duration_us": 1, "reads": [5], "writes": [], "workspace_bytes": 0, "frees": []}]})"),
        "operation 0: tensor 5");
    expect_complaint(
        "plan " +
            write("none.json", R"({"format": "libswap-workload/1", "tensors": [], "ops": []})"),
        "no operations");
    expect_complaint(fmt::format("plan {} --budget 1", good), "needs");
    expect_complaint(fmt::format("plan {} --budget 12parsecs", good), "not a budget");
    expect_complaint(fmt::format("plan {} --budget -5", good), "budget");
    expect_complaint(fmt::format("plan {} --machine abacus", good), "unknown machine abacus");
    expect_complaint(fmt::format("plan {} --policy magic", good), "unknown policy magic");
    expect_complaint(fmt::format("plan {} --machine {}", good, write("m.json", "{}")), "h2d_gbps");
    expect_complaint(fmt::format("plan {} -o /no/such/folder/plan.json", good), "/no/such/folder");
    expect_complaint(fmt::format("plan {} --host-limit 1K", good), "host");
    expect_complaint("workload /no/such/dump", "/no/such/dump");
    expect_complaint("workload " + good, "libswap-trace/1");
    expect_complaint("report " + write("dump", "{\"format\":\"libswap-trace/1\"}\nrubbish\n"),
                     "line 2");
    expect_complaint("plan", "workload");
    expect_complaint("dance", "dance");
}

TEST_F(Swapctl, PlansByEveryPolicyAndSaysWhereItWaits) {
    const std::string file = write("w.json", format_workload(cost::random_training(4, 20), {}));
    for (const cost::PolicyKind kind : cost::all_policies()) {
        const std::string common =
            fmt::format("plan {} --budget 50% --policy {}", file, cost::policy_name(kind));
        const CommandResult result = swapctl(common + " --json");
        ASSERT_EQ(result.status, 0) << result.output;
        const json f = json::parse(result.output);
        double waited_us = 0;
        for (const json& stall : f["stalls"]) waited_us += stall["us"].get<double>();
        EXPECT_LE(waited_us, f["iteration_us"].get<double>() - f["compute_us"].get<double>() + 1);
        EXPECT_TRUE(waited_us > 0 || f["slowdown"].get<double>() < 1.2);
        EXPECT_EQ(swapctl(common).status, 0);
    }
}

TEST_F(Swapctl, TakesAMachineFile) {
    const std::string file = write("w.json", format_workload(cost::random_training(4, 20), {}));
    const std::string slow = write(
        "slow.json",
        R"({"h2d_gbps": 1, "d2h_gbps": 1, "h2d_duplex_gbps": 1, "d2h_duplex_gbps": 1, "transfer_latency_us": 5})");
    const auto time = [&](const std::string& machine) {
        const CommandResult r =
            swapctl(fmt::format("plan {} --budget 60% --json --machine {}", file, machine));
        EXPECT_EQ(r.status, 0) << r.output;
        return json::parse(r.output)["iteration_us"].get<double>();
    };
    EXPECT_GT(time(slow), time("pcie5-h100"));
}

/// What a program of four iterations leaves: weights, an activation that is allocated anew each
/// time.
void write_dump(const std::string& path) {
    auto log = EventLog::open(path, {"0.1.0", "Test GPU", 1 << 30, 1 << 29, 0, 12040});
    ASSERT_TRUE(log) << log.error();
    const std::uint32_t names[] = {(*log)->name("forward"), (*log)->name("backward"),
                                   (*log)->name("update")};
    std::uint64_t serial = 0;
    std::uint64_t block = 100;
    (*log)->alloc(1, 4 << 20, 4 << 20);
    (*log)->alloc(2, 4 << 20, 4 << 20);
    for (int iteration = 0; iteration < 12; ++iteration) {
        std::vector<std::uint64_t> activations;
        const auto op = [&](std::uint32_t name, std::vector<cost::TracedOperand> operands) {
            (*log)->op({.serial = serial, .name = name, .signature = name * 100 + operands.size()},
                       operands);
            (*log)->op_time(serial, serial * 1000, serial * 1000 + 500);
            ++serial;
        };
        for (std::uint64_t l = 0; l < 4; ++l) {
            activations.push_back(++block);
            (*log)->alloc(block, 2 << 20, 1 << 20);
            std::vector<cost::TracedOperand> operands{{1 + l % 2, 4 << 20, true, false},
                                                      {block, 2 << 20, false, true}};
            if (l > 0) operands.push_back({activations[l - 1], 2 << 20, true, false});
            op(names[0], operands);
        }
        for (std::uint64_t l = 4; l-- > 0;) {
            op(names[1],
               {{activations[l], 2 << 20, true, false}, {1 + l % 2, 4 << 20, true, true}});
            (*log)->free(activations[l]);
        }
        op(names[2], {{1, 4 << 20, true, true}});
    }
    (*log)->model((*log)->name("the link out"), 0, 120, 2.31, 1.04);
    (*log)->model((*log)->name("matrix products"), 0, 36, 0.5, 1);
    (*log)->close();
}

TEST_F(Swapctl, MakesAWorkloadOfADump) {
    const std::string dump = folder_.file("dump");
    write_dump(dump);
    const std::string file = folder_.file("w.json.gz");
    const CommandResult result = swapctl(fmt::format("workload {} -o {}", dump, file));
    ASSERT_EQ(result.status, 0) << result.output;
    const auto text = read_file(file);
    ASSERT_TRUE(text);
    const auto w = parse_workload(*text);
    ASSERT_TRUE(w) << w.error();
    EXPECT_EQ(w->op_count(), 9U);
    EXPECT_EQ(w->tensors().size(), 6U);
    EXPECT_EQ(w->peak_bytes(), std::uint64_t{16} << 20);
    EXPECT_DOUBLE_EQ(w->compute_us(), 4.5);
    // Nothing lives on before the update, nor after it.
    EXPECT_TRUE(w->name(0) == "forward" || w->name(0) == "update") << w->name(0);
    EXPECT_EQ(swapctl(fmt::format("plan {} --budget 80%", file)).status, 0);
}

TEST_F(Swapctl, ReportsOnADump) {
    const std::string dump = folder_.file("dump");
    write_dump(dump);
    const CommandResult result = swapctl("report " + dump);
    ASSERT_EQ(result.status, 0) << result.output;
    for (const char* part : {"Test GPU", "108, 108 launch", "forward", "16.00 MiB",
                             "2.3 % in the mean of     120, lately 1.04 times  the link out",
                             "0.5 % in the mean of      36, lately 1.00 times  matrix products"}) {
        EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
    }
    EXPECT_EQ(result.output.find("incomplete"), std::string::npos);
}

TEST_F(Swapctl, ReadsADumpThatWasCutShort) {
    const std::string dump = folder_.file("dump");
    write_dump(dump);
    std::filesystem::resize_file(dump, std::filesystem::file_size(dump) - 30);
    const CommandResult result = swapctl("report " + dump);
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_NE(result.output.find("incomplete"), std::string::npos);
}

TEST_F(Swapctl, RunsAProgramWithWhatWasAsked) {
    const std::string library = write("libswap.so", "");
    const std::string echo = "sh -c 'echo [$LIBSWAP_BUDGET] [$LIBSWAP_HOST_LIMIT] [$LD_PRELOAD]'";
    const std::string run =
        "2>/dev/null LD_PRELOAD= " + std::string(std::getenv("LIBSWAP_TEST_SWAPCTL"));
    const CommandResult result = run_command(fmt::format(
        "env {} run --libswap {} --budget 60% --host-limit 8GiB -- {}", run, library, echo));
    EXPECT_NE(result.output.find(fmt::format("[60%] [8GiB] [{}]", library)), std::string::npos)
        << result.output;
    const CommandResult twice = run_command(
        fmt::format("env {} run --libswap {} -- sh -c 'LIBSWAP_X=1 {} run --libswap {} -- {}'", run,
                    library, std::getenv("LIBSWAP_TEST_SWAPCTL"), library, "env"));
    const std::string line = "LD_PRELOAD=" + library;
    const std::size_t at = twice.output.find(line);
    ASSERT_NE(at, std::string::npos) << twice.output;
    EXPECT_EQ(twice.output[at + line.size()], '\n') << "named twice";
}

TEST_F(Swapctl, RunPassesTheStatusOnAndComplainsOfWhatIsNotThere) {
    const std::string library = write("libswap.so", "");
    EXPECT_EQ(
        swapctl(fmt::format("run --libswap {} -- sh -c 'exit 7' 2>/dev/null", library)).status, 7);
    expect_complaint("run --libswap /no/libswap.so -- true", "/no/libswap.so");
    expect_complaint("run", "command");
}

}  // namespace
}  // namespace libswap::tools
