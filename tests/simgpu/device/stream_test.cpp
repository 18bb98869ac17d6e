// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "simgpu/device/machine.hpp"
#include "tests/simgpu/device/small_machine.hpp"

namespace simgpu {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

struct StreamTest : testing::Test {
    Machine machine{small_machine()};
    std::unique_ptr<Context> context = machine.create_context(0);
    std::unique_ptr<Stream> stream = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    std::unique_ptr<Stream> other = context->create_stream(CU_STREAM_NON_BLOCKING, 0);

    std::unique_ptr<Event> mark(Stream& where) {
        auto event = context->create_event(0);
        EXPECT_EQ(where.record(*event), CUDA_SUCCESS);
        return event;
    }
    double ms(const Event& from, const Event& to) { return Event::elapsed_ms(from, to).value(); }
    std::byte* host(std::uint64_t va) { return machine.memory().resolve(0, va, 1, false).host; }
    std::uint64_t buffer(std::uint64_t bytes) { return machine.allocate(0, bytes).value(); }
    void* pinned(std::uint64_t bytes) { return machine.host_allocate(bytes, 0).value(); }
    /// A kernel that appends `number`.
    KernelLaunch noting(std::vector<int>& order, int number, std::uint64_t ns = 100'000) {
        return {"note", [this, &order, number, ns](KernelMemory& memory) {
                    order.push_back(number);
                    return busy_kernel(ns).work(memory);
                }};
    }
};

TEST_F(StreamTest, MovesBytesThereAndBack) {
    const auto va = buffer(5 * kMiB);
    std::vector<int> in(kMiB), out(kMiB);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i);
    EXPECT_EQ(stream->copy(copy_of(va, in.data(), 4 * kMiB)), CUDA_SUCCESS);
    EXPECT_EQ(stream->copy(copy_of(out.data(), va, 4 * kMiB)), CUDA_SUCCESS);
    EXPECT_EQ(in, out);
}

TEST_F(StreamTest, CopiesRectangles) {
    const auto va = buffer(kMiB);
    std::vector<std::uint8_t> in(4 * 10 * 3), out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i);
    CopyRequest there = copy_of(va, in.data(), 7);
    there.height = 4;
    there.depth = 3;
    there.src_pitch = 10;
    there.src_slice_pitch = 40;
    there.dst_pitch = 512;
    there.dst_slice_pitch = 8192;
    ASSERT_EQ(stream->copy(there), CUDA_SUCCESS);
    CopyRequest back = there;
    std::swap(back.src_pitch, back.dst_pitch);
    std::swap(back.src_slice_pitch, back.dst_slice_pitch);
    back.src = va;
    back.dst = reinterpret_cast<std::uint64_t>(out.data());
    ASSERT_EQ(stream->copy(back), CUDA_SUCCESS);
    for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(out[i], i % 10 < 7 ? in[i] : 0);
}

TEST_F(StreamTest, SetsElementsOfEachWidth) {
    const auto va = buffer(kMiB);
    MemsetRequest request;
    request.dst = va;
    request.value = 0x11223344;
    request.element_bytes = 4;
    request.width = 100;
    request.height = 2;
    request.pitch = 512;
    ASSERT_EQ(stream->memset_async(request), CUDA_SUCCESS);
    request.dst = va + 1024;
    request.element_bytes = 2;
    request.height = 1;
    ASSERT_EQ(stream->memset_async(request), CUDA_SUCCESS);
    ASSERT_EQ(stream->synchronize(), CUDA_SUCCESS);
    std::uint32_t word = 0;
    std::memcpy(&word, host(va + 512 + 396), 4);
    EXPECT_EQ(word, 0x11223344u);
    std::memcpy(&word, host(va + 400), 4);
    EXPECT_EQ(word, 0xA5A5A5A5u);
    std::memcpy(&word, host(va + 1024), 4);
    EXPECT_EQ(word, 0x33443344u);
}

TEST_F(StreamTest, RunsAStreamInOrderAndWaitsForEvents) {
    std::vector<int> order;
    stream->launch(noting(order, 1, 10 * kMs));
    const auto event = mark(*stream);
    other->wait(*event);
    other->launch(noting(order, 3));
    stream->launch(noting(order, 2));
    ASSERT_EQ(context->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(order[0], 1);
    EXPECT_EQ(order.size(), 3u);
}

TEST_F(StreamTest, MoreUrgentStreamsGoFirst) {
    std::vector<int> order;
    const auto low = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    const auto high = context->create_stream(CU_STREAM_NON_BLOCKING, -2);
    stream->launch(noting(order, 0, 10 * kMs));
    low->launch(noting(order, 1, kMs));
    other->launch(noting(order, 2, kMs));
    high->launch(noting(order, 3, kMs));
    ASSERT_EQ(context->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(order, (std::vector<int>{0, 3, 1, 2}));
}

TEST_F(StreamTest, AKernelOfHigherPriorityHasThePlaceOfOneThatRuns) {
    const auto high = context->create_stream(CU_STREAM_NON_BLOCKING, -2);
    const auto begin = mark(*stream);
    stream->launch(busy_kernel(10 * kMs));
    const auto end = mark(*stream);
    high->launch(busy_kernel(kMs));
    high->launch(busy_kernel(kMs));
    const auto high_end = mark(*high);
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_LT(ms(*begin, *high_end), 2.1);
    EXPECT_NEAR(ms(*begin, *end), 12, 0.1);
}

TEST_F(StreamTest, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
    const auto a = context->create_stream(CU_STREAM_DEFAULT, 0);
    const auto b = context->create_stream(CU_STREAM_DEFAULT, 0);
    std::vector<int> order;
    a->launch(noting(order, 1, 5 * kMs));
    context->legacy_stream().launch(noting(order, 2));
    b->launch(noting(order, 3));
    context->per_thread_stream().launch(noting(order, 4));
    ASSERT_EQ(context->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(order[0], 1);
    EXPECT_EQ(order[1], 2);
}

TEST_F(StreamTest, NonBlockingStreamsIgnoreTheLegacyStream) {
    const auto before = mark(*stream);
    context->legacy_stream().launch(busy_kernel(50 * kMs));
    const auto early = mark(*stream);
    EXPECT_EQ(early->synchronize(), CUDA_SUCCESS);
    EXPECT_LT(ms(*before, *early), 50);
    EXPECT_EQ(context->legacy_stream().query(), CUDA_ERROR_NOT_READY);
}

TEST_F(StreamTest, EachThreadHasItsOwnDefaultStream) {
    Stream* mine = &context->per_thread_stream();
    Stream* theirs = nullptr;
    std::thread([&] { theirs = &context->per_thread_stream(); }).join();
    EXPECT_EQ(mine, &context->per_thread_stream());
    EXPECT_NE(mine, theirs);
}

TEST_F(StreamTest, KernelsTakeTheirModelledTime) {
    const auto begin = mark(*stream);
    for (int i = 0; i < 10; ++i) stream->launch(busy_kernel(kMs));
    const auto end = mark(*stream);
    ASSERT_EQ(end->synchronize(), CUDA_SUCCESS);
    EXPECT_NEAR(ms(*begin, *end), 10 * (1 + default_profile().launch_latency_us / 1e3), 0.05);
}

TEST_F(StreamTest, KernelsOfTwoStreamsShareTheDevice) {
    const auto begin = mark(*stream);
    other->wait(*begin);
    stream->launch(busy_kernel(3 * kMs));
    other->launch(busy_kernel(3 * kMs));
    const auto end = mark(*stream);
    const auto other_end = mark(*other);
    ASSERT_EQ(context->synchronize(), CUDA_SUCCESS);
    EXPECT_NEAR(std::max(ms(*begin, *end), ms(*begin, *other_end)), 6, 0.05);
}

TEST_F(StreamTest, CopiesRunBesideKernels) {
    const auto va = buffer(16 * kMiB);
    void* memory = pinned(16 * kMiB);
    const auto begin = mark(*stream);
    other->wait(*begin);
    stream->launch(busy_kernel(3 * kMs));
    other->copy_async(copy_of(va, memory, 16 * kMiB));
    const auto end = mark(*other);
    ASSERT_EQ(context->synchronize(), CUDA_SUCCESS);
    EXPECT_NEAR(ms(*begin, *end), 16.777216 / 25.0 + 0.012, 0.05);
}

TEST_F(StreamTest, BothDirectionsAtOnceAreSlower) {
    const auto va = buffer(32 * kMiB);
    void* memory = pinned(32 * kMiB);
    const auto begin = mark(*stream);
    other->wait(*begin);
    stream->copy_async(copy_of(va, memory, 16 * kMiB));
    other->copy_async(copy_of(static_cast<char*>(memory) + 16 * kMiB, va + 16 * kMiB, 16 * kMiB));
    const auto end = mark(*stream);
    ASSERT_EQ(context->synchronize(), CUDA_SUCCESS);
    const double both = 16.777216 / 19.6;
    const double rest = (16.777216 - both * 18.4) / 25.0;
    EXPECT_NEAR(ms(*begin, *end), both + rest + 0.012, 0.03);
    EXPECT_EQ(machine.statistics(OpClass::H2d).bytes, 16 * kMiB);
    EXPECT_EQ(machine.statistics(OpClass::D2h).count, 1u);
}

TEST_F(StreamTest, SmallPageableCopiesAreStagedAndBigOnesWaited) {
    const auto va = buffer(4 * kMiB);
    std::vector<char> bytes(kMiB, 1);
    stream->launch(busy_kernel(20 * kMs));
    ASSERT_EQ(stream->copy_async(copy_of(va, bytes.data(), 64 << 10)), CUDA_SUCCESS);
    EXPECT_EQ(stream->query(), CUDA_ERROR_NOT_READY);
    bytes.assign(kMiB, 2);
    ASSERT_EQ(stream->copy_async(copy_of(va + kMiB, bytes.data(), kMiB)), CUDA_SUCCESS);
    EXPECT_EQ(stream->query(), CUDA_SUCCESS) << "the call waited";
    EXPECT_EQ(*host(va), std::byte{1});
    EXPECT_EQ(*host(va + kMiB), std::byte{2});
    stream->launch(busy_kernel(20 * kMs));
    ASSERT_EQ(stream->copy_async(copy_of(bytes.data(), va, 1000)), CUDA_SUCCESS);
    EXPECT_EQ(bytes[999], 1);
}

TEST_F(StreamTest, PinnedCopiesReturnAtOnce) {
    const auto va = buffer(4 * kMiB);
    void* memory = pinned(4 * kMiB);
    stream->launch(busy_kernel(20 * kMs));
    ASSERT_EQ(stream->copy_async(copy_of(va, memory, 4 * kMiB)), CUDA_SUCCESS);
    EXPECT_EQ(stream->query(), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
}

TEST_F(StreamTest, HostFunctionsRunInOrderOnAThreadOfOurs) {
    std::vector<int> order;
    const auto main_thread = gettid();
    pid_t runner = 0;
    stream->launch(noting(order, 1));
    stream->host_function([&] {
        runner = gettid();
        order.push_back(2);
    });
    stream->launch(noting(order, 3));
    stream->callback([&](Status status) { order.push_back(status == CUDA_SUCCESS ? 4 : -1); });
    ASSERT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
    EXPECT_NE(runner, main_thread);
}

TEST_F(StreamTest, EventsThatWereNeverRecordedAreCompleteAndHaveNoTime) {
    const auto event = context->create_event(0);
    const auto recorded = mark(*stream);
    EXPECT_EQ(event->query(), CUDA_SUCCESS);
    EXPECT_EQ(event->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(other->wait(*event), CUDA_SUCCESS);
    EXPECT_EQ(Event::elapsed_ms(*event, *recorded).error(), CUDA_ERROR_INVALID_HANDLE);
    const auto untimed = context->create_event(CU_EVENT_DISABLE_TIMING);
    stream->record(*untimed);
    EXPECT_EQ(Event::elapsed_ms(*recorded, *untimed).error(), CUDA_ERROR_INVALID_HANDLE);
    stream->launch(busy_kernel(kMs));
    const auto later = mark(*stream);
    EXPECT_EQ(Event::elapsed_ms(*recorded, *later).error(), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(later->query(), CUDA_ERROR_NOT_READY);
}

TEST_F(StreamTest, WaitingUsesTheRecordOfItsTime) {
    const auto event = mark(*stream);
    other->wait(*event);
    stream->launch(busy_kernel(100 * kMs));
    stream->record(*event);
    EXPECT_EQ(other->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(stream->query(), CUDA_ERROR_NOT_READY) << "the wait was for the first record";
}

TEST_F(StreamTest, ValuesAreWrittenAndWaitedFor) {
    auto* flag = static_cast<std::atomic<std::uint32_t>*>(pinned(8));
    const auto va = reinterpret_cast<std::uint64_t>(flag);
    std::vector<int> order;
    other->wait_value(va, 5, 4, WaitCompare::Equal);
    other->launch(noting(order, 1));
    stream->launch(busy_kernel(kMs));
    ASSERT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(other->query(), CUDA_ERROR_NOT_READY);
    EXPECT_TRUE(order.empty());
    stream->write_value(va, 5, 4);
    ASSERT_EQ(other->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(flag->load(), 5u);
    other->wait_value(va, 6, 4, WaitCompare::GreaterEqual);
    flag->store(7);
    EXPECT_EQ(other->synchronize(), CUDA_SUCCESS) << "written by the host";
}

TEST_F(StreamTest, DestroyedStreamsCompleteTheirWork) {
    std::vector<int> order;
    auto gone = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    gone->launch(noting(order, 1));
    gone->launch(noting(order, 2));
    gone.reset();
    ASSERT_EQ(context->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(order.size(), 2u);
}

TEST_F(StreamTest, IllegalAddressesStickToTheContext) {
    const auto va = buffer(4 * kMiB);
    std::vector<int> order;
    stream->launch({"stray", [va](KernelMemory& memory) {
                        KernelOutcome outcome;
                        if (memory.span(va, 5 * kMiB, true) == nullptr) {
                            outcome.status = CUDA_ERROR_ILLEGAL_ADDRESS;
                            outcome.fault_va = memory.fault_va();
                        }
                        return outcome;
                    }});
    stream->launch(noting(order, 1));
    Status seen = CUDA_SUCCESS;
    EXPECT_EQ(stream->callback([&](Status status) { seen = status; }), CUDA_SUCCESS);
    EXPECT_EQ(stream->synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(context->sticky_error(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(other->launch(busy_kernel(1)), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(other->query(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(context->synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(stream->copy(copy_of(va, va + kMiB, 16)), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(seen, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_TRUE(order.empty()) << "what was submitted behind the fault never ran";
    EXPECT_NE(context->fault_detail().find("kernel stray"), std::string::npos)
        << context->fault_detail();
    EXPECT_EQ(machine.create_context(0)->synchronize(), CUDA_SUCCESS) << "another context is well";
}

TEST_F(StreamTest, CopiesAndMemsetsFaultToo) {
    const auto va = machine.memory().reserve(kPage, 0, 0).value();
    MemsetRequest request;
    request.dst = va;
    request.width = 16;
    ASSERT_EQ(stream->memset_async(request), CUDA_SUCCESS);
    EXPECT_EQ(stream->synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    const auto second = machine.create_context(0);
    const auto its = second->create_stream(0, 0);
    char bytes[16];
    EXPECT_EQ(its->copy(copy_of(bytes, va, 16)), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(StreamTest, UnmappingWhatARunningKernelUsesFaultsTheKernelNotTheProcess) {
    auto& memory = machine.memory();
    const auto va = memory.reserve(kPage, 0, 0).value();
    map_new(memory, va, kPage);
    std::atomic<bool> running{false};
    std::atomic<bool> unmapped{false};
    stream->launch({"user", [&](KernelMemory& kernel) {
                        auto* bytes = reinterpret_cast<volatile char*>(kernel.page(va, true));
                        running = true;
                        while (!unmapped) bytes[0] = 1;
                        for (int i = 0; i < 1000; ++i) bytes[i] = 2;
                        return KernelOutcome{};
                    }});
    std::thread waiter([&] { EXPECT_EQ(stream->synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS); });
    while (!running) usleep(100);
    EXPECT_EQ(memory.unmap(va, kPage), CUDA_SUCCESS);
    unmapped = true;
    waiter.join();
    EXPECT_EQ(context->sticky_error(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(StreamTest, UnmappingBeforeAKernelsModelledEndFaultsIt) {
    auto& memory = machine.memory();
    const auto va = memory.reserve(2 * kPage, 0, 0).value();
    map_new(memory, va, kPage);
    map_new(memory, va + kPage, kPage);
    std::atomic<bool> done{false};
    stream->launch({"user", [&](KernelMemory& kernel) {
                        EXPECT_NE(kernel.page(va, true), nullptr);
                        done = true;
                        return busy_kernel(1000 * kMs).work(kernel);
                    }});
    while (!done) sched_yield();
    EXPECT_EQ(memory.unmap(va + kPage, kPage), CUDA_SUCCESS) << "another range is no matter";
    EXPECT_EQ(memory.unmap(va, kPage), CUDA_SUCCESS);
    EXPECT_EQ(stream->synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(StreamTest, FreeingWaitsForTheDevice) {
    const auto va = buffer(4 * kMiB);
    stream->launch({"user", [va](KernelMemory& kernel) {
                        EXPECT_NE(kernel.span(va, 4 * kMiB, true), nullptr);
                        return busy_kernel(5 * kMs).work(kernel);
                    }});
    EXPECT_EQ(machine.free(va), CUDA_SUCCESS);
    EXPECT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_EQ(machine.free(va), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamTest, KernelsReadHostMemoryOverTheLink) {
    auto& memory = machine.memory();
    const auto va = memory.reserve(16 * kMiB, 0, 0).value();
    map_new(memory, va, 16 * kMiB, {Location::Kind::HostNuma, 0});
    const auto begin = mark(*stream);
    stream->launch({"reader", [va](KernelMemory& kernel) {
                        KernelOutcome outcome;
                        outcome.bytes = 16 * kMiB;
                        if (kernel.span(va, 16 * kMiB, false) == nullptr)
                            outcome.status = CUDA_ERROR_ILLEGAL_ADDRESS;
                        return outcome;
                    }});
    const auto end = mark(*stream);
    ASSERT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_NEAR(ms(*begin, *end), 16.777216 / 25.0, 0.03);
}

TEST_F(StreamTest, DelaysAreAddedWhereTheyWereAskedFor) {
    std::string error;
    EXPECT_FALSE(machine.set_delays("kernel:x=1ms", &error));
    EXPECT_NE(error.find("kernel:x=1ms"), std::string::npos);
    ASSERT_TRUE(machine.set_delays("kernel:2=7ms,kernel:every3=1ms", &error));
    const auto begin = mark(*stream);
    for (int i = 0; i < 3; ++i) stream->launch(busy_kernel(kMs));
    const auto end = mark(*stream);
    ASSERT_EQ(end->synchronize(), CUDA_SUCCESS);
    EXPECT_NEAR(ms(*begin, *end), 3 + 7 + 1, 0.05);
}

TEST_F(StreamTest, ACopyThatIsToldToLosesItsFirstPage) {
    const auto va = buffer(kMiB);
    const std::vector<std::byte> in(kMiB, std::byte{1});
    std::vector<std::byte> out(kMiB, std::byte{2});
    ASSERT_TRUE(machine.set_delays("d2h:1=lost", nullptr));
    ASSERT_EQ(stream->copy(copy_of(va, in.data(), kMiB)), CUDA_SUCCESS);
    ASSERT_EQ(stream->copy(copy_of(out.data(), va, kMiB)), CUDA_SUCCESS);
    EXPECT_EQ(out[4095], std::byte{2});
    EXPECT_EQ(out[4096], std::byte{1});
    ASSERT_EQ(stream->copy(copy_of(out.data(), va, kMiB)), CUDA_SUCCESS);
    EXPECT_EQ(out, in);
}

TEST_F(StreamTest, MemoryCallsCostSimulatedTime) {
    const auto va = machine.memory().reserve(64 * kMiB, 0, 0).value();
    const auto begin = mark(*stream);
    const auto handle = machine.create(64 * kMiB, {}).value();
    const auto created = mark(*stream);
    ASSERT_EQ(machine.map(va, 64 * kMiB, 0, handle), CUDA_SUCCESS);
    const auto grant = device_access();
    ASSERT_EQ(machine.set_access(va, 64 * kMiB, {&grant, 1}), CUDA_SUCCESS);
    const auto mapped = mark(*stream);
    ASSERT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_GE(ms(*begin, *created), 0.185);
    EXPECT_NEAR(ms(*created, *mapped), 0.328, 0.005);
}

TEST_F(StreamTest, CallsTakeTheirHostThreadTheTimeOfTheProfile) {
    const auto begin = mark(*stream);
    for (int i = 0; i < 1000; ++i) other->launch(busy_kernel(1));
    const auto end = mark(*stream);
    ASSERT_EQ(stream->synchronize(), CUDA_SUCCESS);
    EXPECT_NEAR(ms(*begin, *end), 1.0, 0.05);
}

TEST_F(StreamTest, LongChainsDoNotRecurse) {
    const auto event = context->create_event(0);
    stream->launch(busy_kernel(kMs));
    for (int i = 0; i < 100'000; ++i) stream->record(*event);
    EXPECT_EQ(event->synchronize(), CUDA_SUCCESS);
}

TEST_F(StreamTest, StatisticsAreJson) {
    stream->launch(busy_kernel(kMs));
    stream->synchronize();
    EXPECT_NE(machine.statistics_json().find("\"kernel\": {\"count\": 1"), std::string::npos)
        << machine.statistics_json();
}

}  // namespace
}  // namespace simgpu
