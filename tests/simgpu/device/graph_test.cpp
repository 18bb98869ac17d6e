// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Graphs in simulated time: one launch, then each step behind those that it names.

#include <atomic>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "simgpu/device/machine.hpp"
#include "tests/simgpu/device/small_machine.hpp"

namespace simgpu {
namespace {

constexpr std::uint64_t kKernelNs = 50'000;
constexpr double kNodeLatencyUs = 1.0;

struct GraphTest : testing::Test {
    Machine machine{small_machine()};
    std::unique_ptr<Context> context = machine.create_context(0);
    std::unique_ptr<Stream> stream = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    std::unique_ptr<Stream> other = context->create_stream(CU_STREAM_NON_BLOCKING, 0);

    std::unique_ptr<Event> mark(Stream& where) {
        auto event = context->create_event(0);
        EXPECT_EQ(where.record(*event), CUDA_SUCCESS);
        return event;
    }

    static GraphStep kernel(std::vector<std::uint32_t> after, std::uint64_t ns = kKernelNs) {
        GraphStep step;
        step.kind = GraphStep::Kind::Kernel;
        step.after = std::move(after);
        step.launch = busy_kernel(ns);
        return step;
    }

    static GraphStep function(std::vector<std::uint32_t> after, std::function<void()> body) {
        GraphStep step;
        step.kind = GraphStep::Kind::Function;
        step.after = std::move(after);
        step.function = std::move(body);
        return step;
    }

    /// Simulated microseconds from a mark before the launch to one behind it.
    double us_of(const std::vector<GraphStep>& steps) {
        const auto begin = mark(*stream);
        EXPECT_EQ(stream->launch_graph(steps, run), CUDA_SUCCESS);
        const auto end = mark(*stream);
        EXPECT_EQ(end->synchronize(), CUDA_SUCCESS);
        return 1e3 * Event::elapsed_ms(*begin, *end).value();
    }

    double launch_us() const { return machine.profile().launch_latency_us; }

    GraphRun run;
};

TEST_F(GraphTest, ChainPaysForOneLaunch) {
    std::vector<GraphStep> chain;
    constexpr std::uint32_t kSteps = 20;
    for (std::uint32_t i = 0; i < kSteps; ++i)
        chain.push_back(kernel(i == 0 ? std::vector<std::uint32_t>{} : std::vector{i - 1}));
    const double expected = launch_us() + kSteps * (kNodeLatencyUs + kKernelNs / 1e3);
    EXPECT_NEAR(expected, us_of(chain), 5.0);
}

TEST_F(GraphTest, BranchesOverlapWhatDoesNotShareAnEngine) {
    const auto device = machine.allocate(0, 8 * kMiB).value();
    void* host = machine.host_allocate(8 * kMiB, 0).value();
    GraphStep copy;
    copy.kind = GraphStep::Kind::Copy;
    copy.copy = copy_of(device, host, 8 * kMiB);
    const double alone = us_of({copy});
    const auto long_ns = static_cast<std::uint64_t>(alone * 1e3);
    EXPECT_LT(us_of({copy, kernel({}, long_ns)}), 1.2 * alone);
    EXPECT_GT(us_of({copy, kernel({0}, long_ns)}), 1.8 * alone);
}

TEST_F(GraphTest, StepsAreBehindThoseTheyName) {
    std::vector<int> order;
    const auto note = [&order](int number) {
        return [&order, number] { order.push_back(number); };
    };
    const std::vector<GraphStep> diamond{function({}, note(1)), kernel({0}), kernel({0}),
                                         function({1, 2}, note(2))};
    us_of(diamond);
    EXPECT_EQ((std::vector{1, 2}), order);
}

TEST_F(GraphTest, StreamAndEarlierLaunchesComeFirst) {
    std::vector<int> order;
    const auto note = [&order](int number) {
        return [&order, number] { order.push_back(number); };
    };
    EXPECT_EQ(stream->launch(busy_kernel(200'000)), CUDA_SUCCESS);
    EXPECT_EQ(stream->host_function(note(1)), CUDA_SUCCESS);
    EXPECT_EQ(stream->launch_graph({kernel({}), function({0}, note(2))}, run), CUDA_SUCCESS);
    EXPECT_EQ(other->launch_graph({function({}, note(3))}, run), CUDA_SUCCESS);
    EXPECT_EQ(other->host_function(note(4)), CUDA_SUCCESS);
    EXPECT_EQ(context->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ((std::vector{1, 2, 3, 4}), order);
}

TEST_F(GraphTest, ChoiceRunsItsBodyUntilThereIsNone) {
    std::atomic<int> turns{0};
    const std::vector<GraphStep> body{function({}, [&] { ++turns; })};
    GraphStep choice;
    choice.kind = GraphStep::Kind::Choice;
    choice.next = [&]() -> const std::vector<GraphStep>* { return turns < 7 ? &body : nullptr; };
    int seen = -1;
    us_of({choice, function({0}, [&] { seen = turns; })});
    EXPECT_EQ(7, seen);
}

TEST_F(GraphTest, EmptyOneStillTakesItsPlace) { EXPECT_NEAR(launch_us(), us_of({}), 2.0); }

TEST_F(GraphTest, EventsStandForTheirSteps) {
    const auto recorded = context->create_event(0);
    GraphStep record;
    record.kind = GraphStep::Kind::Record;
    record.event = recorded.get();
    record.after = {0};
    EXPECT_EQ(stream->launch_graph({kernel({}, 5'000'000), record}, run), CUDA_SUCCESS);
    EXPECT_EQ(recorded->query(), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(recorded->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
}

TEST_F(GraphTest, FaultEndsTheRest) {
    bool called = false;
    GraphStep bad;
    bad.kind = GraphStep::Kind::Memset;
    bad.memset.dst = machine.memory().window_base() + 17 * kPage;
    bad.memset.width = 4;
    EXPECT_EQ(stream->launch_graph({bad, function({0}, [&] { called = true; })}, run),
              CUDA_SUCCESS);
    EXPECT_EQ(stream->synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_FALSE(called);
}

}  // namespace
}  // namespace simgpu
