// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/shared_usage.hpp"

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simgpu/device/small_machine.hpp"

namespace simgpu {
namespace {

constexpr std::uint64_t kCapacity = 64 * kMiB;

/// Another process on the devices of `path`: it does `work`, says so, and stays until it is ended.
class Neighbour {
  public:
    template <typename Work>
    Neighbour(const std::string& path, Work&& work) {
        int ready[2];
        if (pipe(ready) != 0) std::abort();
        pid_ = fork();
        if (pid_ == 0) {
            std::string error;
            const auto usage = SharedUsage::open(path, &error);
            if (usage != nullptr) work(*usage);
            const char byte = usage != nullptr ? 'y' : 'n';
            if (write(ready[1], &byte, 1) != 1) std::abort();
            for (;;) pause();
        }
        close(ready[1]);
        char byte = 0;
        ready_ = read(ready[0], &byte, 1) == 1 && byte == 'y';
        close(ready[0]);
    }
    ~Neighbour() { end(); }
    Neighbour(const Neighbour&) = delete;
    Neighbour& operator=(const Neighbour&) = delete;

    bool ready() const { return ready_; }
    void end() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

  private:
    pid_t pid_ = -1;
    bool ready_ = false;
};

struct SharedUsageTest : testing::Test {
    std::string path = testing::TempDir() + "shared_usage_" + std::to_string(getpid());
    std::string error;

    ~SharedUsageTest() override { unlink(path.c_str()); }
    Memory memory_on_it(int device_count = 1) {
        MemoryConfig config = small_machine(kCapacity, device_count).memory;
        config.shared = SharedUsage::open(path, &error);
        EXPECT_NE(config.shared, nullptr) << error;
        return Memory(config);
    }
};

TEST_F(SharedUsageTest, WhatOthersHoldIsNotFree) {
    Neighbour neighbour(path, [](SharedUsage& usage) { usage.take(0, 40 * kMiB, kCapacity); });
    ASSERT_TRUE(neighbour.ready());
    Memory memory = memory_on_it();
    EXPECT_EQ(memory.usage(0).others, 40 * kMiB);
    EXPECT_EQ(memory.usage(0).free(), 24 * kMiB);
    EXPECT_EQ(memory.create(26 * kMiB, {}).error(), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_TRUE(memory.create(24 * kMiB, {}).has_value());
    EXPECT_EQ(memory.usage(0).free(), 0u);
}

TEST_F(SharedUsageTest, HostMemoryIsNotShared) {
    Neighbour neighbour(path, [](SharedUsage& usage) { usage.take(0, kCapacity, kCapacity); });
    Memory memory = memory_on_it();
    EXPECT_TRUE(memory.create(kPage, Location{Location::Kind::HostNuma, 0}).has_value());
}

TEST_F(SharedUsageTest, WhatAKilledProcessHeldIsFree) {
    Memory memory = memory_on_it();
    Neighbour neighbour(path, [](SharedUsage& usage) { usage.take(0, 60 * kMiB, kCapacity); });
    EXPECT_FALSE(memory.create(8 * kMiB, {}).has_value());
    neighbour.end();
    EXPECT_EQ(memory.usage(0).others, 0u);
    EXPECT_TRUE(memory.create(kCapacity, {}).has_value());
}

TEST_F(SharedUsageTest, WhatIsReleasedIsFreeForOthers) {
    Memory memory = memory_on_it();
    const auto handle = memory.create(60 * kMiB, {}).value();
    const auto plain = memory.allocate(0, kMiB).value();
    EXPECT_EQ(memory.release(handle), CUDA_SUCCESS);
    EXPECT_EQ(memory.free(plain), CUDA_SUCCESS);
    Neighbour neighbour(path, [](SharedUsage& usage) {
        if (!usage.take(0, kCapacity, kCapacity)) std::abort();
    });
    EXPECT_TRUE(neighbour.ready());
}

TEST_F(SharedUsageTest, EachDeviceHasItsOwn) {
    Neighbour neighbour(path, [](SharedUsage& usage) { usage.take(1, kCapacity, kCapacity); });
    Memory memory = memory_on_it(2);
    EXPECT_EQ(memory.usage(0).free(), kCapacity);
    EXPECT_EQ(memory.usage(1).free(), 0u);
}

TEST_F(SharedUsageTest, AtTheSameTimeNoMoreIsTakenThanThereIs) {
    constexpr int kProcesses = 8;
    const auto usage = SharedUsage::open(path, &error);
    ASSERT_NE(usage, nullptr) << error;
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
        children.push_back(fork());
        if (children.back() != 0) continue;
        const auto own = SharedUsage::open(path, &error);
        for (int round = 0; own != nullptr && round < 2000; ++round) {
            if (!own->take(0, 20 * kMiB, kCapacity)) continue;
            if (own->others(0) > kCapacity - 20 * kMiB) _exit(1);
            own->give_back(0, 20 * kMiB);
        }
        _exit(own != nullptr ? 0 : 2);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(usage->others(0), 0u);
}

TEST_F(SharedUsageTest, AFileThatCannotBeUsedIsSaid) {
    EXPECT_EQ(SharedUsage::open("/nonexistent/share", &error), nullptr);
    EXPECT_NE(error.find("/nonexistent/share: No such file"), std::string::npos) << error;
    EXPECT_EQ(SharedUsage::open(testing::TempDir(), &error), nullptr);
}

TEST_F(SharedUsageTest, TooManyProcessesAreRefused) {
    std::vector<std::unique_ptr<Neighbour>> all;
    for (int i = 0; i < SharedUsage::kMaxProcesses; ++i) {
        all.push_back(std::make_unique<Neighbour>(path, [](SharedUsage&) {}));
        ASSERT_TRUE(all.back()->ready()) << i;
    }
    EXPECT_EQ(SharedUsage::open(path, &error), nullptr);
    EXPECT_NE(error.find("64 processes"), std::string::npos) << error;
    all.front()->end();
    EXPECT_NE(SharedUsage::open(path, &error), nullptr);
}

}  // namespace
}  // namespace simgpu
