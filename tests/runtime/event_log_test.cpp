// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/event_log.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace libswap {
namespace {

using nlohmann::json;

class TraceFile {
  public:
    TraceFile() : path_(testing::TempDir() + "libswap-event-log-" + std::to_string(getpid())) {}
    ~TraceFile() { std::filesystem::remove(path_); }
    const std::string& path() const { return path_; }
    std::vector<json> lines() const {
        std::ifstream in(path_);
        std::vector<json> all;
        for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
        return all;
    }

  private:
    std::string path_;
};

std::size_t count_of(const std::vector<json>& lines, const std::string& event) {
    std::size_t n = 0;
    for (const json& line : lines) n += line.value("e", "") == event;
    return n;
}

TEST(EventLog, WritesWhatHappenedAsJsonLines) {
    TraceFile file;
    auto log = EventLog::open(file.path(), {"0.1.0", "A \"GPU\"", 1 << 30, 1 << 29, 0, 12040});
    ASSERT_TRUE(log) << log.error();
    const std::uint32_t kernel = (*log)->name("conv\n<float>");
    EXPECT_EQ((*log)->name("conv\n<float>"), kernel);
    (*log)->alloc(7, 2 << 20, 1 << 20);
    const cost::TracedOperand operands[] = {{7, 2 << 20, true, false}, {8, 4096, true, true}};
    (*log)->op({.serial = 3, .name = kernel, .stream = 1, .signature = 0xabc}, operands);
    (*log)->op_time(3, 100, 350);
    (*log)->move(MoveKind::EvictClean, 7, 2 << 20, 3, 400, 410);
    (*log)->stall(4, 1000, (*log)->name("no room"));
    (*log)->iteration(9, 0, 5);
    (*log)->plan(0, 1000, 900, 12);
    (*log)->model((*log)->name("the link in"), 1, 42, 2.3456, 1.01);
    (*log)->free(7);
    (*log)->close();
    const auto lines = file.lines();
    EXPECT_EQ(lines.front()["format"], "libswap-trace/1");
    EXPECT_EQ(lines.front()["device"], "A \"GPU\"");
    EXPECT_EQ(lines.front()["pid"], getpid());
    EXPECT_EQ(lines.back()["e"], "end");
    EXPECT_EQ(lines.back()["dropped"], 0);
    std::string name;
    bool used_before_defined = false;
    for (const json& line : lines) {
        if (line.value("e", "") == "name" && line["name"] == kernel) name = line["text"];
        if (line.value("e", "") == "op") used_before_defined |= name.empty();
    }
    EXPECT_FALSE(used_before_defined);
    EXPECT_EQ(name, "conv\n<float>");
    EXPECT_EQ(count_of(lines, "use"), 2U);
    EXPECT_EQ(count_of(lines, "move"), 1U);
    EXPECT_EQ(count_of(lines, "free"), 1U);
    const auto model = std::find_if(lines.begin(), lines.end(), [](const json& line) {
        return line.value("e", "") == "model";
    });
    ASSERT_NE(model, lines.end());
    EXPECT_EQ((*model)["device"], 1);
    EXPECT_EQ((*model)["count"], 42);
    EXPECT_EQ((*model)["mean_percent"], 2.346);
    EXPECT_EQ((*model)["ratio"], 1.01);
}

TEST(EventLog, AnUnwritableFileIsOneLine) {
    const auto log = EventLog::open("/nowhere/at/all.trace", {});
    ASSERT_FALSE(log);
    EXPECT_NE(log.error().find("/nowhere/at/all.trace"), std::string::npos);
    EXPECT_EQ(log.error().find('\n'), std::string::npos);
}

TEST(EventLog, KeepsEveryRecordOfManyThreadsOrCountsIt) {
    TraceFile file;
    auto log = EventLog::open(file.path(), {}, 1 << 12);
    ASSERT_TRUE(log);
    constexpr int kThreads = 4;
    constexpr std::uint64_t kEach = 20'000;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&log] {
            for (std::uint64_t i = 0; i < kEach; ++i) (*log)->free(i);
        });
    }
    for (std::thread& thread : threads) thread.join();
    (*log)->close();
    const auto lines = file.lines();
    EXPECT_EQ(count_of(lines, "free") + (*log)->dropped(), kThreads * kEach);
    EXPECT_EQ(lines.back()["dropped"], (*log)->dropped());
    std::vector<bool> seen(kThreads * kEach);
    for (const json& line : lines) {
        if (!line.contains("s")) continue;
        const std::uint64_t s = line["s"];
        ASSERT_LT(s, seen.size());
        EXPECT_FALSE(seen[s]);
        seen[s] = true;
    }
}

TEST(EventLog, AnOperationWithMoreOperandsThanABatchIsWhole) {
    TraceFile file;
    auto log = EventLog::open(file.path(), {});
    ASSERT_TRUE(log);
    const std::vector<cost::TracedOperand> operands(161, {5, 4096, true, true});
    (*log)->op({.serial = 1}, operands);
    (*log)->close();
    EXPECT_EQ(count_of(file.lines(), "use"), 161U);
}

TEST(EventLog, AForkedChildWritesNothingAndExits) {
    TraceFile file;
    auto log = EventLog::open(file.path(), {});
    ASSERT_TRUE(log);
    (*log)->free(1);
    const pid_t child = fork();
    if (child == 0) {
        (*log)->free(2);
        (*log)->name("of the child");
        log->reset();
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (*log)->free(3);
    (*log)->close();
    EXPECT_EQ(count_of(file.lines(), "free"), 2U);
    EXPECT_EQ(count_of(file.lines(), "end"), 1U);
}

TEST(EventLog, IgnoresWhatComesAfterClose) {
    TraceFile file;
    auto log = EventLog::open(file.path(), {});
    ASSERT_TRUE(log);
    (*log)->close();
    (*log)->free(1);
    (*log)->close();
    EXPECT_EQ(count_of(file.lines(), "free"), 0U);
}

}  // namespace
}  // namespace libswap
