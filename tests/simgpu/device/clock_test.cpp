// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simgpu/device/host_threads.hpp"
#include "simgpu/device/machine.hpp"
#include "tests/simgpu/device/small_machine.hpp"

namespace simgpu {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
using RealClock = std::chrono::steady_clock;

double seconds_since(RealClock::time_point start) {
    return std::chrono::duration<double>(RealClock::now() - start).count();
}

struct ClockTest : testing::Test {
    Machine machine{small_machine()};
    std::unique_ptr<Context> context = machine.create_context(0);
    std::unique_ptr<Stream> stream = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    RealClock::time_point start = RealClock::now();

    void launch(int count, std::uint64_t ns) {
        for (int i = 0; i < count; ++i) ASSERT_EQ(stream->launch(busy_kernel(ns)), CUDA_SUCCESS);
    }
};

TEST_F(ClockTest, JumpsWhenTheOnlyThreadWaits) {
    launch(100, 1000 * kMs);
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_GE(machine.now_ns(), 100'000 * kMs);
    EXPECT_LT(seconds_since(start), 10) << "100 simulated seconds";
}

TEST_F(ClockTest, JumpsForAThreadThatPolls) {
    launch(100, 1000 * kMs);
    while (stream->query() == CUDA_ERROR_NOT_READY) {
    }
    EXPECT_LT(seconds_since(start), 10);
}

TEST_F(ClockTest, JumpsForAThreadThatPollsWithSleeps) {
    const auto event = context->create_event(0);
    for (int i = 0; i < 50; ++i) {
        launch(1, 100 * kMs);
        stream->record(*event);
        const auto before = machine.now_ns();
        while (event->query() == CUDA_ERROR_NOT_READY) usleep(50);
        // The poller reacts within microseconds of simulated time, whatever its sleep really took.
        EXPECT_NEAR(static_cast<double>(machine.now_ns() - before), 100e6, 50e3);
    }
    EXPECT_LT(seconds_since(start), 10);
}

TEST_F(ClockTest, WaitsForAPollerToNoticeBeforeItGoesOn) {
    const auto other = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    const auto event = context->create_event(0);
    launch(1, kMs);
    stream->record(*event);
    for (int i = 0; i < 1000; ++i) other->launch(busy_kernel(kMs));
    while (event->query() == CUDA_ERROR_NOT_READY) usleep(50);
    // Without the notice the clock would have run to the end of the other stream's work.
    EXPECT_LT(machine.now_ns(), 200 * kMs);
}

TEST_F(ClockTest, FollowsAThreadThatSpinsOnPinnedMemory) {
    auto* flag = static_cast<std::atomic<int>*>(machine.host_allocate(64, 0).value());
    const auto va = reinterpret_cast<std::uint64_t>(flag);
    launch(1, 3 * kMs);
    stream->launch({"flag", [va](KernelMemory& memory) {
                        reinterpret_cast<std::atomic<int>*>(memory.span(va, 4, true))->store(1);
                        return KernelOutcome{};
                    }});
    while (flag->load() == 0) {
    }
    EXPECT_LT(seconds_since(start), 10);
}

TEST_F(ClockTest, FollowsAThreadThatSpinsForAHostFunction) {
    std::atomic<bool> called{false};
    launch(1, 3 * kMs);
    stream->host_function([&] { called = true; });
    while (!called) {
    }
    EXPECT_LT(seconds_since(start), 10);
}

TEST_F(ClockTest, JumpsWhileTheOnlyThreadSleeps) {
    launch(20, 1000 * kMs);
    for (int i = 0; i < 1000 && machine.now_ns() < 20'000 * kMs; ++i) usleep(10'000);
    EXPECT_GE(machine.now_ns(), 20'000 * kMs);
    EXPECT_EQ(stream->query(), CUDA_SUCCESS);
}

TEST_F(ClockTest, JumpsWhenOneThreadWaitsForAnotherThatPolls) {
    std::mutex lock;
    std::condition_variable wake;
    bool over = false;
    launch(50, 1000 * kMs);
    std::thread poller([&] {
        while (stream->query() == CUDA_ERROR_NOT_READY) usleep(50);
        std::lock_guard guard(lock);
        over = true;
        wake.notify_one();
    });
    {
        std::unique_lock guard(lock);
        wake.wait(guard, [&] { return over; });
    }
    poller.join();
    EXPECT_LT(seconds_since(start), 10);
}

TEST_F(ClockTest, ThreadsThatNeverCallUsAreLookedAtToo) {
    std::atomic<bool> stop{false};
    std::thread sleeper([&] {
        while (!stop) usleep(2000);
    });
    launch(50, 1000 * kMs);
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_LT(seconds_since(start), 10);
    stop = true;
    sleeper.join();
}

TEST_F(ClockTest, DoesNotJumpPastAThreadThatComputes) {
    std::atomic<bool> stop{false};
    std::thread computing([&] {
        while (!stop) {
        }
    });
    usleep(20'000);
    const auto before = machine.now_ns();
    launch(1, 10'000 * kMs);
    usleep(100'000);
    EXPECT_LT(machine.now_ns() - before, 2'000 * kMs);
    stop = true;
    computing.join();
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
}

/// Simulated time between two events, between which the only thread computes for 20 ms.
double gap_ms(double host_speed) {
    MachineConfig config = small_machine();
    config.host_speed = host_speed;
    Machine machine(config);
    const auto context = machine.create_context(0);
    const auto stream = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    const auto first = context->create_event(0);
    const auto second = context->create_event(0);
    stream->record(*first);
    const auto begin_ns = HostThreads::own_cpu_ns();
    while (HostThreads::own_cpu_ns() < begin_ns + 20 * kMs) {
    }
    stream->record(*second);
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
    return Event::elapsed_ms(*first, *second).value();
}

TEST(HostSpeed, DividesWhatComputingTakes) {
    EXPECT_GT(gap_ms(1), 15.0);
    EXPECT_LT(gap_ms(100), 5.0);
}

TEST_F(ClockTest, StandsStillWhileWorkIsBehind) {
    const auto event = context->create_event(0);
    const auto end = context->create_event(0);
    stream->record(*event);
    stream->launch({"slow to simulate", [](KernelMemory& memory) {
                        usleep(50'000);
                        return busy_kernel(10'000).work(memory);
                    }});
    stream->record(*end);
    std::atomic<long> sum = 0;
    const auto begin = RealClock::now();
    while (seconds_since(begin) < 0.03) ++sum;
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_NEAR(Event::elapsed_ms(*event, *end).value(), 0.0125, 0.02);
}

TEST_F(ClockTest, ThreadsComeAndGo) {
    for (int i = 0; i < 20; ++i) {
        std::thread([&] {
            launch(3, 100 * kMs);
            EXPECT_EQ(stream->query(), CUDA_ERROR_NOT_READY);
        }).join();
    }
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_LT(seconds_since(start), 10);
}

TEST_F(ClockTest, SurvivesAForkWhoseChildExits) {
    launch(5, 10 * kMs);
    const pid_t child = fork();
    if (child == 0) {
        machine.after_fork_in_child();
        const bool refused = stream->launch(busy_kernel(1)) == CUDA_ERROR_DEINITIALIZED &&
                             stream->synchronize() == CUDA_ERROR_DEINITIALIZED;
        std::exit(refused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
}

/// Processes that keep every processor busy.
class Load {
  public:
    explicit Load(int count) {
        for (int i = 0; i < count; ++i) {
            const pid_t child = fork();
            if (child == 0) {
                alarm(60);
                for (std::atomic<int> n = 0;; ++n) {
                }
            }
            children_.push_back(child);
        }
    }
    ~Load() {
        for (const pid_t child : children_) {
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
    }

  private:
    std::vector<pid_t> children_;
};

/// A thread that gets a processor when nobody else wants one.
void be_starved() {
    const sched_param parameters{};
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &parameters);
}

TEST_F(ClockTest, AStarvedPollerNoticesBeforeTheClockGoesOn) {
    const auto other = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    const auto event = context->create_event(0);
    std::vector<double> noticed_ms;
    Load load(4);
    std::thread poller([&] {
        be_starved();
        for (int i = 0; i < 5; ++i) {
            launch(1, kMs);
            stream->record(*event);
            for (int k = 0; k < 1000; ++k) other->launch(busy_kernel(kMs));
            const auto before = machine.now_ns();
            while (event->query() == CUDA_ERROR_NOT_READY) usleep(50);
            noticed_ms.push_back(static_cast<double>(machine.now_ns() - before) / kMs);
            other->synchronize();
        }
    });
    poller.join();
    // Its kernel shares the device with the other stream's.
    for (const double ms : noticed_ms) EXPECT_LT(ms, 10);
}

TEST_F(ClockTest, APollerThatSomebodyWokeActsBeforeTheClockGoesOn) {
    const auto va = machine.allocate(0, 2 * kMiB).value();
    const auto other = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    const auto event = context->create_event(0);
    other->wait_value(va, 5, 4, WaitCompare::Equal);
    other->record(*event);  // not before the end of the test
    std::mutex lock;
    std::condition_variable wake;
    int asked = 0;
    int answered = 0;
    std::atomic<int> rounds{0};
    std::uint64_t answered_ns = 0;
    Load load(4);
    std::thread poller([&] {
        be_starved();
        std::unique_lock guard(lock);
        while (answered < 10) {
            wake.wait_for(guard, std::chrono::microseconds(50), [&] { return asked > answered; });
            EXPECT_EQ(event->query(), CUDA_ERROR_NOT_READY);
            answered_ns = machine.now_ns();
            ++rounds;
            if (asked == answered) continue;
            ++answered;
            wake.notify_all();
        }
    });
    // Until it is known for one that sleeps.
    while (rounds < 5) usleep(50);
    for (int i = 1; i <= 10; ++i) {
        std::unique_lock guard(lock);
        launch(1000, kMs);
        const auto before = machine.now_ns();
        asked = i;
        wake.notify_all();
        wake.wait(guard, [&] { return answered == i; });
        // The launches themselves take a millisecond.
        EXPECT_LT(answered_ns - before, 10 * kMs) << "after question " << i;
    }
    poller.join();
    stream->write_value(va, 5, 4);
    EXPECT_EQ(other->synchronize(), CUDA_SUCCESS);
}

/// Like a step of a training loop: copies in, many kernels, a look at the loss; a worker polls
/// beside it.
double iteration_ms(Machine& machine, Context& context, Stream& stream, std::uint64_t va,
                    void* pinned) {
    const auto begin = context.create_event(0);
    const auto end = context.create_event(0);
    stream.record(*begin);
    stream.copy_async(copy_of(va, pinned, kMiB));
    for (int i = 0; i < 60; ++i) {
        stream.launch({"layer", [va, i](KernelMemory& memory) {
                           auto* bytes =
                               reinterpret_cast<unsigned char*>(memory.span(va, kMiB, true));
                           for (int n = 0; n < 20'000; ++n)
                               bytes[n] = static_cast<unsigned char>(bytes[n] + i);
                           return busy_kernel(40'000).work(memory);
                       }});
    }
    float loss = 0;
    stream.copy(copy_of(&loss, va, sizeof loss));
    stream.record(*end);
    stream.synchronize();
    (void)machine;
    return Event::elapsed_ms(*begin, *end).value();
}

double median_iteration_ms(Machine& machine, Context& context, Stream& stream, std::uint64_t va,
                           void* pinned) {
    std::vector<double> times;
    for (int i = 0; i < 15; ++i)
        times.push_back(iteration_ms(machine, context, stream, va, pinned));
    std::nth_element(times.begin(), times.begin() + 7, times.end());
    return times[7];
}

TEST_F(ClockTest, IterationTimesDoNotDependOnTheMachinesLoad) {
    const auto va = machine.allocate(0, 2 * kMiB).value();
    void* pinned = machine.host_allocate(kMiB, 0).value();
    const auto watched = context->create_event(0);
    std::atomic<bool> stop{false};
    std::thread worker([&] {
        while (!stop) {
            watched->query();
            usleep(50);
        }
    });
    const double quiet = median_iteration_ms(machine, *context, *stream, va, pinned);
    double loaded = 0;
    {
        Load load(4);
        loaded = median_iteration_ms(machine, *context, *stream, va, pinned);
    }
    stop = true;
    worker.join();
    RecordProperty("quiet_ms", std::to_string(quiet));
    RecordProperty("loaded_ms", std::to_string(loaded));
    EXPECT_NEAR(loaded / quiet, 1.0, 0.02) << quiet << " ms against " << loaded << " ms";
}

}  // namespace
}  // namespace simgpu
