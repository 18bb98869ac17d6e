// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/host_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace libswap {
namespace {

class HostMemory : public ::testing::Test {
  protected:
    void SetUp() override {
        root_ =
            std::filesystem::temp_directory_path() / ("host_memory_" + std::to_string(::getpid()));
        write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   4096 kB\n");
        write("proc/self/cgroup", "0::/a/b\n");
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void write(const std::string& name, const std::string& text) {
        std::filesystem::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text;
    }
    std::uint64_t available() {
        return available_host_bytes((root_ / "proc").c_str(), (root_ / "cgroup").c_str());
    }
    std::filesystem::path root_;
};

TEST_F(HostMemory, IsWhatTheSystemHasWithoutLimits) { EXPECT_EQ(available(), 4096u * 1024); }

TEST_F(HostMemory, IsBoundByTheGroupAndEveryGroupAboveIt) {
    write("cgroup/a/memory.max", "1000000\n");
    write("cgroup/a/memory.current", "400000\n");
    EXPECT_EQ(available(), 600000u);
    write("cgroup/a/b/memory.max", "max\n");
    EXPECT_EQ(available(), 600000u);
    write("cgroup/a/b/memory.max", "500000\n");
    write("cgroup/a/b/memory.current", "600000\n");
    EXPECT_EQ(available(), 0u);
}

TEST_F(HostMemory, KnowsTheOlderHierarchy) {
    write("cgroup/memory/memory.limit_in_bytes", "2000000\n");
    write("cgroup/memory/memory.usage_in_bytes", "500000\n");
    EXPECT_EQ(available(), 1500000u);
}

}  // namespace
}  // namespace libswap
