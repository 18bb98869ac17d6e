// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "simgpu/device/machine.hpp"
#include "tests/simgpu/device/small_machine.hpp"

namespace simgpu {
namespace {

constexpr int kSteps = 150;
constexpr std::uint64_t kWords = kPage / 4;

/// Adds `amount` to every 64th word.
KernelLaunch adder(std::uint64_t va, std::uint32_t amount) {
    return {"adder", [va, amount](KernelMemory& memory) {
                KernelOutcome outcome;
                auto* words = reinterpret_cast<std::uint32_t*>(memory.span(va, kPage, true));
                if (words == nullptr) {
                    outcome.status = CUDA_ERROR_ILLEGAL_ADDRESS;
                    return outcome;
                }
                for (std::uint64_t i = 0; i < kWords; i += 64) words[i] += amount;
                outcome.bytes = 2 * kPage / 64;
                return outcome;
            }};
}

/// One thread's program: its own buffer, moved between addresses and host memory as an evictor
/// would.
void swap_around(Machine& machine, Context& context, int seed) {
    auto& memory = machine.memory();
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto stream = context.create_stream(CU_STREAM_NON_BLOCKING, 0);
    const auto side = context.create_stream(CU_STREAM_NON_BLOCKING, -1);
    const auto event = context.create_event(CU_EVENT_DISABLE_TIMING);
    const auto va = memory.reserve(kPage, 0, 0).value();
    const auto alias = memory.reserve(kPage, 0, 0).value();
    auto* pinned = static_cast<std::uint32_t*>(machine.host_allocate(kPage, 0).value());
    std::memset(pinned, 0, kPage);
    HandleId handle = map_new(memory, va, kPage);
    ASSERT_EQ(stream->copy_async(copy_of(va, pinned, kPage)), CUDA_SUCCESS);
    std::uint32_t sum = 0;
    for (int step = 0; step < kSteps; ++step) {
        const std::uint32_t amount = random() % 100;
        sum += amount;
        ASSERT_EQ(stream->launch(adder(va, amount)), CUDA_SUCCESS);
        if (random() % 3 != 0) continue;
        // Move the bytes into another handle, by way of the host, and map that one instead.
        ASSERT_EQ(stream->record(*event), CUDA_SUCCESS);
        ASSERT_EQ(side->wait(*event), CUDA_SUCCESS);
        ASSERT_EQ(side->copy_async(copy_of(pinned, va, kPage)), CUDA_SUCCESS);
        const HandleId fresh = map_new(memory, alias, kPage);
        ASSERT_NE(fresh, 0u);
        ASSERT_EQ(side->copy_async(copy_of(alias, pinned, kPage)), CUDA_SUCCESS);
        ASSERT_EQ(side->record(*event), CUDA_SUCCESS);
        if (random() % 2 == 0) {
            while (event->query() == CUDA_ERROR_NOT_READY) usleep(20);
        } else {
            ASSERT_EQ(event->synchronize(), CUDA_SUCCESS);
        }
        ASSERT_EQ(machine.unmap(va, kPage), CUDA_SUCCESS);
        ASSERT_EQ(machine.map(va, kPage, 0, fresh), CUDA_SUCCESS);
        const auto grant = device_access();
        ASSERT_EQ(machine.set_access(va, kPage, {&grant, 1}), CUDA_SUCCESS);
        ASSERT_EQ(machine.unmap(alias, kPage), CUDA_SUCCESS);
        ASSERT_EQ(memory.release(handle), CUDA_SUCCESS);
        handle = fresh;
    }
    ASSERT_EQ(stream->copy(copy_of(pinned, va, kPage)), CUDA_SUCCESS);
    for (std::uint64_t i = 0; i < kWords; i += 64) ASSERT_EQ(pinned[i], sum);
    ASSERT_EQ(machine.unmap(va, kPage), CUDA_SUCCESS);
    ASSERT_EQ(memory.release(handle), CUDA_SUCCESS);
    ASSERT_EQ(memory.free_range(va, kPage), CUDA_SUCCESS);
    ASSERT_EQ(machine.host_free(pinned), CUDA_SUCCESS);
}

TEST(Stress, ManyThreadsRemapTheirOwnRangesWhileKernelsOfOthersRun) {
    Machine machine{small_machine()};
    const auto context = machine.create_context(0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { swap_around(machine, *context, i); });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(context->synchronize(), CUDA_SUCCESS) << context->fault_detail();
    EXPECT_EQ(machine.memory().usage(0).used, 0u);
}

TEST(Stress, AllocationsComeAndGo) {
    Machine machine{small_machine()};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            std::mt19937 random(static_cast<unsigned>(i));
            std::vector<std::uint64_t> live;
            for (int step = 0; step < 400; ++step) {
                if (live.size() < 10 && random() % 2 == 0) {
                    const auto va =
                        machine.allocate(0, 1 + random() % (random() % 4 == 0 ? 3 * kMiB : 5000));
                    if (va) live.push_back(*va);
                } else if (!live.empty()) {
                    ASSERT_EQ(machine.free(live.back()), CUDA_SUCCESS);
                    live.pop_back();
                }
            }
            for (const auto va : live) ASSERT_EQ(machine.free(va), CUDA_SUCCESS);
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(machine.memory().usage(0).used, 0u);
}

TEST(Stress, EveryOperationOfManyStreamsIsDoneOnce) {
    Machine machine{small_machine()};
    const auto context = machine.create_context(0);
    std::atomic<int> kernels{0};
    std::atomic<int> functions{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            const auto mine =
                context->create_stream(i % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING, -i);
            const auto event = context->create_event(0);
            for (int step = 0; step < 100; ++step) {
                Stream& stream = step % 7 == 0   ? context->legacy_stream()
                                 : step % 5 == 0 ? context->per_thread_stream()
                                                 : *mine;
                stream.launch({"count", [&](KernelMemory&) {
                                   ++kernels;
                                   return KernelOutcome{};
                               }});
                if (step % 10 == 0) stream.host_function([&] { ++functions; });
                if (step % 9 == 0) {
                    stream.record(*event);
                    mine->wait(*event);
                }
                if (step % 20 == 0) stream.synchronize();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(context->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(kernels, 400);
    EXPECT_EQ(functions, 40);
}

TEST(Stress, MachinesComeAndGoAndParkedOnesKeepQuiet) {
    for (int i = 0; i < 20; ++i) {
        Machine machine{small_machine()};
        const auto context = machine.create_context(0);
        context->legacy_stream().launch(busy_kernel(1000));
        if (i % 2 == 0) context->synchronize();
    }
    // On purpose never destroyed, as the driver does with its own.
    static auto* parked = new Machine{small_machine()};
    static auto* context = parked->create_context(0).release();
    context->legacy_stream().launch(busy_kernel(1000));
    parked->park();
    context->legacy_stream().launch({"never", [](KernelMemory&) {
                                         ADD_FAILURE();
                                         return KernelOutcome{};
                                     }});
    usleep(5000);
}

}  // namespace
}  // namespace simgpu
