// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The same random program, once done at once and once captured and launched, leaves the same bytes.

#include <random>

#include "graph_fixture.hpp"

namespace {

class RandomCapture : public GraphGpu {
  protected:
    static constexpr int kStreams = 3, kSlots = 12, kOperations = 40;

    struct Operation {
        enum class Kind { Fill, Copy, Set, Join } kind;
        int stream, from, to;
        unsigned value;
    };

    void SetUp() override {
        GraphGpu::SetUp();
        ASSERT_CU(cuStreamCreate(&streams_[2], CU_STREAM_NON_BLOCKING));
        streams_[0] = stream;
        streams_[1] = other;
        for (CUevent& each : events_) ASSERT_CU(cuEventCreate(&each, CU_EVENT_DISABLE_TIMING));
    }

    static std::vector<Operation> program(unsigned seed) {
        std::mt19937 random(seed);
        const auto below = [&](int limit) {
            return static_cast<int>(random() % static_cast<unsigned>(limit));
        };
        std::vector<Operation> all;
        for (int i = 0; i < kOperations; ++i) {
            all.push_back({static_cast<Operation::Kind>(below(4)), below(kStreams), below(kSlots),
                           below(kSlots), static_cast<unsigned>(random())});
        }
        return all;
    }

    CUdeviceptr slot(int index) const { return memory + static_cast<CUdeviceptr>(index) * 64; }

    /// `from` waits for what `to` has done so far.
    void join(int from, int to) {
        EXPECT_CU(CUDA_SUCCESS, cuEventRecord(events_[to], streams_[to]));
        EXPECT_CU(CUDA_SUCCESS, cuStreamWaitEvent(streams_[from], events_[to], 0));
    }

    /// Every stream is behind the one that owns a slot before it uses it: the order of what touches
    /// a slot is the program's, whatever the streams do.
    void take(int stream_index, int slot_index) {
        const int owner = owners_[slot_index];
        if (owner != stream_index) join(stream_index, owner);
        owners_[slot_index] = stream_index;
    }

    void perform(const Operation& operation) {
        CUstream in = streams_[operation.stream];
        take(operation.stream, operation.to);
        switch (operation.kind) {
            case Operation::Kind::Fill:
                EXPECT_CU(CUDA_SUCCESS, fill(slot(operation.to), operation.value, 16, in));
                break;
            case Operation::Kind::Copy:
                take(operation.stream, operation.from);
                EXPECT_CU(CUDA_SUCCESS,
                          cuMemcpyDtoDAsync(slot(operation.to), slot(operation.from), 64, in));
                break;
            case Operation::Kind::Set:
                EXPECT_CU(CUDA_SUCCESS,
                          cuMemsetD8Async(slot(operation.to) + operation.value % 32,
                                          static_cast<unsigned char>(operation.value >> 8), 9, in));
                break;
            case Operation::Kind::Join:
                if (operation.from % kStreams != operation.stream)
                    join(operation.stream, operation.from % kStreams);
                break;
        }
    }

    /// All streams start behind the first, and the first ends behind all.
    void perform(const std::vector<Operation>& operations) {
        for (int& owner : owners_) owner = 0;
        for (int i = 1; i < kStreams; ++i) join(i, 0);
        for (const Operation& operation : operations) perform(operation);
        for (int i = 1; i < kStreams; ++i) join(0, i);
    }

    void start_over() {
        EXPECT_CU(CUDA_SUCCESS, cuMemsetD32(memory, 0x11111111, kSlots * 16));
        EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    }

    std::vector<unsigned> bytes() {
        std::vector<unsigned> words(kSlots * 16);
        EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
        EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoH(words.data(), memory, words.size() * 4));
        return words;
    }

    CUstream streams_[kStreams] = {};
    CUevent events_[kStreams] = {};
    int owners_[kSlots] = {};
};

}  // namespace

TEST_F(RandomCapture, LeavesWhatTheStreamsWouldHaveLeft) {
    constexpr unsigned kPrograms = 60;
    for (unsigned seed = 1; seed <= kPrograms; ++seed) {
        SCOPED_TRACE(seed);
        const auto operations = program(seed);
        start_over();
        perform(operations);
        const auto expected = bytes();
        start_over();
        ASSERT_CU(cuStreamBeginCapture(streams_[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        perform(operations);
        CUgraph graph = nullptr;
        ASSERT_CU(cuStreamEndCapture(streams_[0], &graph));
        CUgraph clone = nullptr;
        ASSERT_CU(cuGraphClone(&clone, graph));
        CUgraphExec exec = instantiate(seed % 2 == 0 ? graph : clone);
        EXPECT_CU(CUDA_SUCCESS, cuGraphLaunch(exec, streams_[seed % kStreams]));
        EXPECT_EQ(expected, bytes());
        EXPECT_CU(CUDA_SUCCESS, cuGraphExecDestroy(exec));
        drop(graph);
        drop(clone);
        if (HasFailure()) return;
    }
}
