// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// libcupti.so.13 as a profiler uses it.
#include <cuda.h>
#include <gtest/gtest.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "simgpu/cupti/abi.hpp"

extern "C" {
int cuptiActivityEnable(std::uint32_t kind);
int cuptiActivityDisable(std::uint32_t kind);
int cuptiActivityEnableDriverApi(std::uint32_t number, std::uint8_t enable);
int cuptiActivityRegisterTimestampCallback(simgpu::cupti::Timestamp timestamp);
int cuptiActivityRegisterCallbacks(simgpu::cupti::BufferRequested, simgpu::cupti::BufferCompleted);
int cuptiActivityFlushAll(std::uint32_t flag);
int cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, void** record);
int cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped);
int cuptiActivityPushExternalCorrelationId(std::uint32_t kind, std::uint64_t id);
int cuptiActivityPopExternalCorrelationId(std::uint32_t kind, std::uint64_t* last);
int cuptiSubscribe(void** subscriber, simgpu::cupti::Callback callback, void* userdata);
int cuptiUnsubscribe(void* subscriber);
int cuptiEnableDomain(std::uint32_t enable, void* subscriber, std::uint32_t domain);
int cuptiEnableCallback(std::uint32_t enable, void* subscriber, std::uint32_t domain,
                        std::uint32_t number);
int cuptiGetTimestamp(std::uint64_t* timestamp);
int cuptiGetResultString(int result, const char** text);
int cuptiFinalize();
}

namespace simgpu::cupti {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint32_t kCustom0 = 3;

constexpr const char* kPtx = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry nothing() { ret; }
)";

std::vector<std::vector<std::byte>> g_records;
std::size_t g_buffer_bytes = 1 << 16;
bool g_refuse = false;
int g_buffers_out = 0;

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    if (!g_refuse) ++g_buffers_out;
    *buffer = g_refuse ? nullptr : static_cast<std::uint8_t*>(std::malloc(g_buffer_bytes));
    *size = g_buffer_bytes;
    *most = 0;
}

void completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    void* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == kSuccess) {
        std::uint32_t kind = 0;
        std::memcpy(&kind, record, sizeof kind);
        const auto* bytes = static_cast<const std::byte*>(record);
        const auto* end = reinterpret_cast<const std::byte*>(buffer + valid);
        // As long as the longest, or less at the end.
        g_records.emplace_back(bytes, std::min(bytes + sizeof(KernelRecord), end));
    }
    std::free(buffer);
    --g_buffers_out;
}

template <typename Record>
std::vector<Record> records_of(std::uint32_t kind) {
    std::vector<Record> all;
    for (const auto& bytes : g_records) {
        std::uint32_t its_kind = 0;
        std::memcpy(&its_kind, bytes.data(), sizeof its_kind);
        if (its_kind != kind) continue;
        Record record{};
        if (bytes.size() < sizeof record) {
            ADD_FAILURE() << "a record of " << bytes.size() << " bytes";
            continue;
        }
        std::memcpy(&record, bytes.data(), sizeof record);
        all.push_back(record);
    }
    return all;
}

class Cupti : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
        ASSERT_EQ(cuModuleLoadData(&module_, kPtx), CUDA_SUCCESS);
        ASSERT_EQ(cuModuleGetFunction(&nothing_, module_, "nothing"), CUDA_SUCCESS);
        ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ASSERT_EQ(cuMemAlloc(&device_, kBytes), CUDA_SUCCESS);
        ASSERT_EQ(cuMemHostAlloc(&host_, kBytes, 0), CUDA_SUCCESS);
        g_records.clear();
        g_buffer_bytes = 1 << 16;
        g_refuse = false;
    }
    void TearDown() override {
        EXPECT_EQ(cuptiFinalize(), kSuccess);
        EXPECT_EQ(g_buffers_out, 0);
        cuMemFreeHost(host_);
        cuMemFree(device_);
        cuStreamDestroy(stream_);
        cuModuleUnload(module_);
        cuDevicePrimaryCtxRelease(0);
    }
    void enable(std::initializer_list<std::uint32_t> kinds) {
        ASSERT_EQ(cuptiActivityRegisterCallbacks(requested, completed), kSuccess);
        for (const std::uint32_t kind : kinds) ASSERT_EQ(cuptiActivityEnable(kind), kSuccess);
    }
    void launch(unsigned grid = 1) {
        ASSERT_EQ(cuLaunchKernel(nothing_, grid, 2, 1, 64, 1, 1, 128, stream_, nullptr, nullptr),
                  CUDA_SUCCESS);
    }
    void flush() {
        ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        ASSERT_EQ(cuptiActivityFlushAll(0), kSuccess);
    }

    CUcontext context_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction nothing_ = nullptr;
    CUstream stream_ = nullptr;
    CUdeviceptr device_ = 0;
    void* host_ = nullptr;
};

TEST_F(Cupti, TellsOfKernelsCopiesAndMemsets) {
    enable({kConcurrentKernel, kMemcpy, kMemset});
    launch(5);
    ASSERT_EQ(cuMemcpyHtoDAsync(device_, host_, kBytes, stream_), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoHAsync(host_, device_, kBytes / 2, stream_), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8Async(device_, 7, kBytes, stream_), CUDA_SUCCESS);
    flush();
    const auto kernels = records_of<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_STREQ(kernels[0].name, "nothing");
    EXPECT_EQ(kernels[0].grid_x, 5);
    EXPECT_EQ(kernels[0].grid_y, 2);
    EXPECT_EQ(kernels[0].block_x, 64);
    EXPECT_EQ(kernels[0].dynamic_shared_memory, 128);
    EXPECT_GE(kernels[0].end, kernels[0].start);
    const auto copies = records_of<MemcpyRecord>(kMemcpy);
    ASSERT_EQ(copies.size(), 2u);
    EXPECT_EQ(copies[0].copy_kind, 1);
    EXPECT_EQ(copies[0].src_kind, 2);
    EXPECT_EQ(copies[0].dst_kind, 3);
    EXPECT_EQ(copies[0].bytes, kBytes);
    EXPECT_EQ(copies[1].copy_kind, 2);
    EXPECT_GT(copies[1].start, kernels[0].end);
    // 1 MiB at 25 GB/s and the latency.
    EXPECT_NEAR(static_cast<double>(copies[0].end - copies[0].start), 54e3, 6e3);
    const auto memsets = records_of<MemsetRecord>(kMemset);
    ASSERT_EQ(memsets.size(), 1u);
    EXPECT_EQ(memsets[0].value, 7u);
    EXPECT_EQ(memsets[0].bytes, kBytes);
    const std::set<std::uint32_t> ids{kernels[0].correlation_id, copies[0].correlation_id,
                                      copies[1].correlation_id, memsets[0].correlation_id};
    EXPECT_EQ(ids.size(), 4u);
}

/// PyTorch flushes only where it was asked for a buffer.
TEST_F(Cupti, AsksForABufferWithTheFirstCall) {
    enable({kConcurrentKernel});
    EXPECT_EQ(g_buffers_out, 0);
    launch();
    EXPECT_EQ(g_buffers_out, 1);
    launch();
    EXPECT_EQ(g_buffers_out, 1);
    flush();
    EXPECT_EQ(g_buffers_out, 0);
    EXPECT_EQ(records_of<KernelRecord>(kConcurrentKernel).size(), 2u);
    launch();
    EXPECT_EQ(g_buffers_out, 1);
    // Another client: the buffer goes back to whom it came from.
    ASSERT_EQ(cuptiActivityRegisterCallbacks(requested, completed), kSuccess);
    EXPECT_EQ(g_buffers_out, 0);
}

TEST_F(Cupti, TellsOnlyWhatIsEnabled) {
    enable({kMemcpy});
    launch();
    flush();
    EXPECT_TRUE(g_records.empty());
    ASSERT_EQ(cuptiActivityEnable(kConcurrentKernel), kSuccess);
    launch();
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuptiActivityDisable(kConcurrentKernel), kSuccess);
    launch();
    flush();
    EXPECT_EQ(records_of<KernelRecord>(kConcurrentKernel).size(), 1u);
    EXPECT_EQ(cuptiActivityEnable(0), kInvalidKind);
    EXPECT_EQ(cuptiActivityEnable(kKindCount), kInvalidKind);
}

TEST_F(Cupti, TiesExternalIdsToCallsAndCallsToKernels) {
    enable({kConcurrentKernel, kDriver, kExternalCorrelation});
    ASSERT_EQ(cuptiActivityPushExternalCorrelationId(kCustom0, 1000), kSuccess);
    ASSERT_EQ(cuptiActivityPushExternalCorrelationId(kCustom0, 1001), kSuccess);
    launch();
    std::uint64_t last = 0;
    ASSERT_EQ(cuptiActivityPopExternalCorrelationId(kCustom0, &last), kSuccess);
    EXPECT_EQ(last, 1001u);
    launch();
    ASSERT_EQ(cuptiActivityPopExternalCorrelationId(kCustom0, nullptr), kSuccess);
    EXPECT_EQ(cuptiActivityPopExternalCorrelationId(kCustom0, nullptr), kQueueEmpty);
    EXPECT_EQ(cuptiActivityPushExternalCorrelationId(9, 1), kInvalidParameter);
    launch();
    flush();
    std::map<std::uint32_t, std::uint64_t> external;
    for (const auto& record : records_of<ExternalCorrelationRecord>(kExternalCorrelation))
        external[record.correlation_id] = record.external_id;
    std::set<std::uint32_t> launches;
    for (const auto& record : records_of<ApiRecord>(kDriver))
        if (record.cbid == 307) launches.insert(record.correlation_id);
    const auto kernels = records_of<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), 3u);
    for (const auto& kernel : kernels) EXPECT_TRUE(launches.count(kernel.correlation_id));
    EXPECT_EQ(external[kernels[0].correlation_id], 1001u);
    EXPECT_EQ(external[kernels[1].correlation_id], 1000u);
    EXPECT_EQ(external.count(kernels[2].correlation_id), 0u);
}

TEST_F(Cupti, TellsOfSingleCallsOnly) {
    enable({kExternalCorrelation});
    ASSERT_EQ(cuptiActivityEnableDriverApi(307, 1), kSuccess);
    launch();
    ASSERT_EQ(cuMemsetD8Async(device_, 7, kBytes, stream_), CUDA_SUCCESS);
    flush();
    const auto calls = records_of<ApiRecord>(kDriver);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].cbid, 307u);
    EXPECT_EQ(calls[0].return_value, 0u);
}

TEST_F(Cupti, NodesOfAGraphBearTheLaunchsId) {
    enable({kConcurrentKernel, kDriver});
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    launch();
    launch();
    ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    flush();
    std::uint32_t graph_launch = 0;
    for (const auto& record : records_of<ApiRecord>(kDriver))
        if (record.cbid == 514) graph_launch = record.correlation_id;
    const auto kernels = records_of<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_EQ(kernels[0].correlation_id, graph_launch);
    EXPECT_EQ(kernels[1].correlation_id, graph_launch);
    EXPECT_NE(kernels[0].graph_id, 0u);
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
}

TEST_F(Cupti, FillsBuffersOfAnySizeAndCountsWhatFitsNone) {
    enable({kConcurrentKernel});
    g_buffer_bytes = 3 * sizeof(KernelRecord) + 8;
    for (int i = 0; i < 10; ++i) launch();
    flush();
    EXPECT_EQ(records_of<KernelRecord>(kConcurrentKernel).size(), 10u);
    std::size_t dropped = 99;
    ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), kSuccess);
    EXPECT_EQ(dropped, 0u);
    g_refuse = true;
    launch();
    flush();
    ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), kSuccess);
    EXPECT_EQ(dropped, 1u);
}

struct Seen {
    std::vector<std::string> calls;
    bool finalize = false;
};
void callback(void* userdata, std::uint32_t domain, std::uint32_t, const void* raw) {
    auto& seen = *static_cast<Seen*>(userdata);
    const auto& data = *static_cast<const CallbackData*>(raw);
    EXPECT_EQ(domain, kDriverDomain);
    seen.calls.push_back(std::string(data.site == 0 ? "+" : "-") + data.function_name);
    if (seen.finalize && data.site == 1) {
        EXPECT_EQ(cuptiFinalize(), kSuccess);
    }
}

TEST_F(Cupti, HasOneSubscriber) {
    Seen seen;
    void* first = nullptr;
    void* second = nullptr;
    ASSERT_EQ(cuptiSubscribe(&first, callback, &seen), kSuccess);
    EXPECT_EQ(cuptiSubscribe(&second, callback, &seen), kMultipleSubscribers);
    const char* text = nullptr;
    ASSERT_EQ(cuptiGetResultString(kMultipleSubscribers, &text), kSuccess);
    EXPECT_STREQ(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
    ASSERT_EQ(cuptiEnableCallback(1, first, kDriverDomain, 307), kSuccess);
    launch();
    ASSERT_EQ(cuMemsetD8Async(device_, 7, kBytes, stream_), CUDA_SUCCESS);
    EXPECT_EQ(seen.calls, (std::vector<std::string>{"+cuLaunchKernel", "-cuLaunchKernel"}));
    EXPECT_EQ(cuptiUnsubscribe(second), kInvalidParameter);
    ASSERT_EQ(cuptiUnsubscribe(first), kSuccess);
    launch();
    EXPECT_EQ(seen.calls.size(), 2u);
    ASSERT_EQ(cuptiSubscribe(&second, callback, &seen), kSuccess);
}

TEST_F(Cupti, IsGoneAfterFinalizeFromACallsExit) {
    Seen seen;
    seen.finalize = true;
    void* subscriber = nullptr;
    enable({kConcurrentKernel});
    ASSERT_EQ(cuptiSubscribe(&subscriber, callback, &seen), kSuccess);
    ASSERT_EQ(cuptiEnableDomain(1, subscriber, kDriverDomain), kSuccess);
    launch();
    launch();
    EXPECT_EQ(seen.calls.size(), 2u);
    EXPECT_EQ(cuptiActivityFlushAll(0), kInvalidOperation);
    ASSERT_EQ(cuptiSubscribe(&subscriber, callback, &seen), kSuccess);
}

std::uint64_t ticks() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 2 * (static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                static_cast<std::uint64_t>(now.tv_nsec));
}

/// However long the program takes between its calls, and whatever its clock counts.
TEST_F(Cupti, RecordsLieInTheClientsTime) {
    ASSERT_EQ(cuptiActivityRegisterTimestampCallback(ticks), kSuccess);
    enable({kMemcpy});
    for (int i = 0; i < 4; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        g_records.clear();
        const std::uint64_t before = ticks();
        ASSERT_EQ(cuMemcpyHtoDAsync(device_, host_, kBytes, stream_), CUDA_SUCCESS);
        flush();
        const std::uint64_t after = ticks();
        const auto copies = records_of<MemcpyRecord>(kMemcpy);
        ASSERT_EQ(copies.size(), 1u);
        EXPECT_GE(copies[0].end, before);
        EXPECT_LE(copies[0].end, after);
        // 1 MiB at 25 GB/s and the latency, in ticks.
        EXPECT_NEAR(static_cast<double>(copies[0].end - copies[0].start), 108e3, 12e3);
    }
}

TEST_F(Cupti, TimestampsAreThoseOfRecords) {
    enable({kConcurrentKernel});
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    ASSERT_EQ(cuptiGetTimestamp(&before), kSuccess);
    launch();
    flush();
    ASSERT_EQ(cuptiGetTimestamp(&after), kSuccess);
    const auto kernels = records_of<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_GE(kernels[0].start, before);
    EXPECT_LE(kernels[0].end, after);
}

}  // namespace
}  // namespace simgpu::cupti
