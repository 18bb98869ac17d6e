// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// One allocation with many tensors in it: its blocks leave and come back alone, and what launches
// are believed to touch costs time where it is wrong, never data.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/device.hpp"
#include "tests/runtime/fake_driver.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kTensorBytes = 4 * kMiB;
constexpr std::size_t kTensors = 12;

/// An arena of twelve tensors on a device with room for five.
class PartsTest : public ::testing::Test {
  protected:
    PartsTest() {
        config_.budget.kind = Amount::Kind::Bytes;
        config_.budget.bytes = 22 * kMiB;
        config_.host_limit.kind = Amount::Kind::Bytes;
        config_.host_limit.bytes = 256 * kMiB;
        config_.min_swap_bytes = kMiB;
        config_.lifetimes = true;
        device_ = Device::open(fake_.table(), config_, nullptr, 0, fake_.context(), &host_limit_,
                               &edges_);
        CUdeviceptr ptr = 0;
        EXPECT_EQ(device_->mem_alloc(&ptr, kTensors * kTensorBytes, fake_.context()), CUDA_SUCCESS);
        arena_ = ptr;
    }
    ~PartsTest() override {
        fake_.pump();
        device_->mem_free(arena_);
    }
    std::uint64_t tensor(std::size_t i) const { return arena_ + i * kTensorBytes; }

    CUresult launch(const char* kernel, const std::vector<std::uint64_t>& pointers,
                    std::function<void()> work) {
        Operation op;
        op.by_parts = device_->by_parts();
        op.function = device_->functions().find(fake_.function(kernel));
        for (const std::uint64_t pointer : pointers) device_->name_address(op, pointer);
        op.signature = op.function->hash + pointers.size();
        return device_->run(op, fake_.context(), CU_STREAM_LEGACY,
                            [&] { return fake_.submit(CU_STREAM_LEGACY, work); });
    }
    /// A launch with the arena's base and an index, as its numbers. What it holds is given.
    struct Indexed {
        std::size_t brought = 0;
        std::size_t held = 0;
    };
    Indexed launch_indexed(const char* kernel, std::uint64_t pointer, std::uint64_t index,
                           std::function<void()> work) {
        fake_.param_counts[kernel] = 2;
        void* params[] = {&pointer, &index};
        LaunchRequest request;
        request.function = fake_.function(kernel);
        request.params = params;
        Operation op;
        op.by_parts = device_->by_parts();
        op.function = device_->functions().find(request.function);
        device_->name_address(op, pointer);
        device_->look_at_numbers(op, request);
        op.signature = op.function->hash;
        EXPECT_EQ(device_->run(op, fake_.context(), CU_STREAM_LEGACY,
                               [&] { return fake_.submit(CU_STREAM_LEGACY, work); }),
                  CUDA_SUCCESS);
        fake_.pump();
        device_->trials().settle();
        return {op.brought(), op.rest};
    }
    /// Writes `bytes` at a tensor, naming nothing else.
    void write(const char* kernel, std::size_t i, std::uint64_t value,
               std::uint64_t bytes = kTensorBytes) {
        const std::uint64_t at = tensor(i);
        EXPECT_EQ(launch(kernel, {at},
                         [=] {
                             auto* data = reinterpret_cast<std::uint64_t*>(at);
                             for (std::uint64_t k = 0; k < bytes / 8; k += 64) data[k] = value + k;
                         }),
                  CUDA_SUCCESS);
    }
    bool check(const char* kernel, std::size_t i, std::uint64_t value,
               std::uint64_t bytes = kTensorBytes) {
        bool good = true;
        const std::uint64_t at = tensor(i);
        bool* result = &good;
        EXPECT_EQ(launch(kernel, {at},
                         [=] {
                             const auto* data = reinterpret_cast<const std::uint64_t*>(at);
                             for (std::uint64_t k = 0; k < bytes / 8; k += 64)
                                 *result &= data[k] == value + k;
                         }),
                  CUDA_SUCCESS);
        fake_.pump();
        return good;
    }
    /// All tensors are used in turn, until their launches are known.
    void learn(int rounds) {
        for (int round = 0; round < rounds; ++round)
            for (std::size_t i = 0; i < kTensors; ++i) {
                write("write", i, 100 * i);
                EXPECT_TRUE(check("check", i, 100 * i)) << i;
            }
    }
    /// How many blocks a launch uses that names this address.
    std::size_t used(std::uint64_t address) {
        Operation op;
        op.by_parts = device_->by_parts();
        op.function = device_->functions().find(fake_.function("check"));
        device_->name_address(op, address);
        return op.blocks.size();
    }
    std::uint64_t count(const Counters::Count& count) const { return count.load(); }

    testing::FakeDriver fake_;
    Config config_;
    HostLimit host_limit_{256 * kMiB};
    PointerEdges edges_;
    std::unique_ptr<Device> device_;
    std::uint64_t arena_ = 0;
};

TEST_F(PartsTest, ATensorComesAlone) {
    learn(4);
    for (std::size_t i = 0; i < kTensors; ++i) EXPECT_TRUE(check("check", i, 100 * i)) << i;
    const std::uint64_t before = count(device_->counters().bytes_in);
    EXPECT_TRUE(check("check", 1, 100));  // the coldest but one
    const std::uint64_t moved = count(device_->counters().bytes_in) - before;
    EXPECT_GT(moved, 0u);
    EXPECT_LE(moved, kTensorBytes);
    EXPECT_EQ(count(device_->counters().guard_hits), 0u);
    EXPECT_TRUE(device_->is_valid());
}

TEST_F(PartsTest, KeepsWhatAKernelWroteBeyondItsExtent) {
    learn(3);
    // From tensor 2 on it writes three, though the next launches name them as others.
    for (std::uint64_t round = 0; round < 12; ++round) {
        write("overrun", 2, 7000 * round, 3 * kTensorBytes);
        for (std::size_t i = 5; i < kTensors; ++i) EXPECT_TRUE(check("check", i, 100 * i)) << i;
        EXPECT_TRUE(check("overrun", 2, 7000 * round, 3 * kTensorBytes)) << round;
    }
    EXPECT_TRUE(device_->is_valid());
    EXPECT_FALSE(device_->lost());
}

TEST_F(PartsTest, ALaunchThatWritesBeyondItsExtentUsesTheWholeBufferFromThenOn) {
    learn(3);
    for (std::uint64_t round = 0; round < 4; ++round) {
        write("overrun", 2, round, 3 * kTensorBytes);
        fake_.pump();
        device_->trials().settle();
    }
    Operation op;
    op.by_parts = true;
    op.function = device_->functions().find(fake_.function("overrun"));
    device_->name_address(op, tensor(2));
    op.signature = op.function->hash + 1;
    device_->look_at_parts(op);
    EXPECT_EQ(op.belief, Belief::Refuted);
    EXPECT_EQ(op.brought(), op.blocks.size());
    EXPECT_GE(op.blocks.size(), kTensors);
}

/// A kernel has kept to its extent so far, and then writes on, into what lies on the host and has
/// just been given out by the program's own allocator.
TEST_F(PartsTest, KeepsWhatIsWrittenBeyondAnExtentIntoANewContent) {
    learn(4);
    const auto use_others = [&] {
        for (std::size_t i = 5; i < kTensors; ++i) EXPECT_TRUE(check("check", i, 100 * i)) << i;
        device_->trials().settle();
    };
    device_->content_begins(tensor(0), 3 * kTensorBytes);
    device_->content_begins(tensor(3), 2 * kTensorBytes);
    for (int round = 0; round < 24; ++round) {
        write("later", 2, 200);
        fake_.pump();
        device_->trials().settle();
        use_others();
    }
    device_->content_ends(tensor(3), 2 * kTensorBytes);
    EXPECT_EQ(count(device_->counters().contents_ended), 4u);
    device_->content_begins(tensor(3), 2 * kTensorBytes);
    write("later", 2, 7000, 3 * kTensorBytes);
    fake_.pump();
    EXPECT_TRUE(check("check", 3, 7000 + kTensorBytes / 8));
    EXPECT_TRUE(check("check", 4, 7000 + 2 * kTensorBytes / 8));
}

/// Two tensors lay where one lies now, and both were named: a launch that names the new one reads
/// all of it, which none of its numbers says.
TEST_F(PartsTest, ALaunchUsesAllOfWhatTheAllocatorGaveOut) {
    learn(3);
    for (std::size_t i = 0; i < kTensors; ++i) {
        device_->content_begins(tensor(i), kTensorBytes / 2);
        device_->content_begins(tensor(i) + kTensorBytes / 2, kTensorBytes / 2);
    }
    for (const std::uint64_t half : {tensor(2), tensor(2) + kTensorBytes / 2})
        for (int round = 0; round < 3; ++round) launch("halves", {half}, [] {});
    fake_.pump();
    device_->content_ends(tensor(2), kTensorBytes / 2);
    device_->content_ends(tensor(2) + kTensorBytes / 2, kTensorBytes / 2);
    device_->content_begins(tensor(2), kTensorBytes);
    EXPECT_EQ(used(tensor(2)), kTensorBytes / (2 * kMiB));
    EXPECT_EQ(used(tensor(2) + kTensorBytes / 2), kTensorBytes / (2 * kMiB));
}

TEST_F(PartsTest, ALaunchUsesAPartOfADataSetThatTheAllocatorGaveOut) {
    device_->content_begins(tensor(0), kTensors * kTensorBytes);
    learn(4);
    EXPECT_EQ(used(tensor(1)), kTensorBytes / (2 * kMiB));
}

TEST_F(PartsTest, ALaunchThatReadsBeyondItsExtentReadsOnTheHost) {
    learn(3);
    for (std::uint64_t round = 0; round < 4; ++round)
        EXPECT_TRUE(check("reads on", 0, 0, kTensorBytes)) << round;
    std::vector<std::uint64_t> seen(3);
    for (std::size_t i = 0; i < 3; ++i) write("write", i, 100 * i);
    for (std::size_t i = 5; i < kTensors; ++i) EXPECT_TRUE(check("check", i, 100 * i)) << i;
    const std::uint64_t at = tensor(0);
    launch("reads on", {at}, [&, at] {
        for (std::size_t i = 0; i < 3; ++i)
            seen[i] = *reinterpret_cast<const std::uint64_t*>(at + i * kTensorBytes);
    });
    fake_.pump();
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 100, 200}));
}

/// Nobody sees what is read, and while a mapping changes there is nothing to be read.
TEST_F(PartsTest, NothingIsRemappedUnderALaunchThatReadsWhereOthersWroteBeyondTheirExtents) {
    learn(3);
    write("overrun", 3, 7000, 2 * kTensorBytes);
    fake_.pump();
    write("write", 3, 300);
    write("write", 4, 400);
    for (int round = 0; round < 4; ++round) EXPECT_TRUE(check("reads on", 0, 0, kTensorBytes));
    fake_.hold(CU_STREAM_LEGACY, true);
    const std::uint64_t at = tensor(0);
    std::uint64_t seen = 1;
    launch("reads on", {at},
           [&, at] { seen = *reinterpret_cast<const std::uint64_t*>(at + 2 * kTensorBytes); });
    const std::uint64_t remaps = fake_.calls("cuMemUnmap");
    std::thread other([&] {
        for (std::size_t i = 1; i < kTensors; ++i) launch("check", {tensor(i)}, [] {});
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_EQ(fake_.calls("cuMemUnmap"), remaps);
    fake_.hold(CU_STREAM_LEGACY, false);
    std::atomic<bool> ended{false};
    std::thread device([&] {
        while (!ended) {
            fake_.pump();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    other.join();
    ended = true;
    device.join();
    EXPECT_EQ(seen, 200u);
    EXPECT_GT(fake_.calls("cuMemUnmap"), remaps);
    EXPECT_TRUE(device_->is_valid());
}

TEST_F(PartsTest, ALaunchWhoseNumbersStayAsTheyAreHoldsItsPartOnly) {
    learn(3);
    for (int i = 0; i < 3; ++i) launch_indexed("count", tensor(3), kTensorBytes / 4, [] {});
    const Indexed last = launch_indexed("count", tensor(3), kTensorBytes / 4, [] {});
    EXPECT_LE(last.brought, kTensors / 2);
    EXPECT_EQ(last.held, 0u);
}

TEST_F(PartsTest, ALaunchWithAnIndexThatChangesHoldsTheBuffer) {
    learn(3);
    for (std::uint64_t i = 0; i < 4; ++i) launch_indexed("index", tensor(3), 100 * (i % 2), [] {});
    const Indexed last = launch_indexed("index", tensor(3), 0, [] {});
    EXPECT_GE(last.held + last.brought, kTensors);
    EXPECT_LE(last.brought, kTensors / 2) << "and brings no more than it did";
}

TEST_F(PartsTest, ALaunchWithAnIndexThatLeadsOutOfItsPartHoldsTheBuffer) {
    learn(3);
    const std::uint64_t index = 3 * kTensorBytes / 4;
    for (int i = 0; i < 4; ++i) launch_indexed("index", tensor(3), index, [] {});
    EXPECT_GE(launch_indexed("index", tensor(3), index, [] {}).held, kTensors / 2);
}

TEST_F(PartsTest, ALaunchWithTheBaseAndAnIndexHoldsTheBufferEvenIfItMayBeACount) {
    learn(3);
    const std::uint64_t index = kTensorBytes / 4;
    for (int i = 0; i < 4; ++i) launch_indexed("index", arena_, index, [] {});
    EXPECT_GE(launch_indexed("index", arena_, index, [] {}).held, kTensors / 2);
}

TEST_F(PartsTest, SeesWhatFunctionsLeaveAlone) {
    learn(4);
    fake_.pump();
    device_->trials().settle();
    EXPECT_TRUE(device_->functions().find(fake_.function("check"))->leaves_alone(0));
    // It writes the same each time, and did not the first time.
    EXPECT_FALSE(device_->functions().find(fake_.function("write"))->leaves_alone(0));
}

TEST_F(PartsTest, LaunchesThatAreNotWatchedUseNoLooksUp) {
    learn(2);
    // The program is ahead: one of these is watched, the others are like it.
    fake_.hold(CU_STREAM_LEGACY, true);
    for (int i = 0; i < 300; ++i) launch("look", {tensor(11)}, [] {});
    fake_.hold(CU_STREAM_LEGACY, false);
    for (int i = 0; i < 3; ++i) {
        fake_.pump();
        device_->trials().settle();
        launch("look", {tensor(11)}, [] {});
    }
    fake_.pump();
    device_->trials().settle();
    EXPECT_TRUE(device_->functions().find(fake_.function("look"))->leaves_alone(0));
}

}  // namespace
}  // namespace libswap
