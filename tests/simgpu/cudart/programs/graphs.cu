// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream capture and graphs as programs use them through the runtime.

#include <vector>

#include "check.cuh"

namespace {

constexpr int kCount = 4096;

__device__ int constant_of_device = 3;

__global__ void add(int* values, int count, int amount) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += amount;
    }
}

__global__ void scale(const int* from, int* to, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        to[i] = from[i] * constant_of_device;
    }
}

int first_of(const int* values) {
    int value = 0;
    CUDA(cudaMemcpy(&value, values, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

struct Buffers {
    int *from = nullptr, *to = nullptr;
    cudaStream_t stream = nullptr, other = nullptr;

    Buffers() {
        CUDA(cudaMalloc(&from, kCount * sizeof(int)));
        CUDA(cudaMalloc(&to, kCount * sizeof(int)));
        CUDA(cudaMemset(from, 0, kCount * sizeof(int)));
        CUDA(cudaMemset(to, 0, kCount * sizeof(int)));
        CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
        CUDA(cudaDeviceSynchronize());
    }
    ~Buffers() {
        CUDA(cudaStreamDestroy(stream));
        CUDA(cudaStreamDestroy(other));
        CUDA(cudaFree(from));
        CUDA(cudaFree(to));
    }
};

void launch_and_drop(cudaGraph_t graph, cudaStream_t stream, int times) {
    cudaGraphExec_t executable = nullptr;
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < times; ++i) {
        CUDA(cudaGraphLaunch(executable, stream));
    }
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
}

void check_capture() {
    Buffers b;
    cudaEvent_t fork, join;
    CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CUDA(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeGlobal));
    add<<<kCount / 256, 256, 0, b.stream>>>(b.from, kCount, 2);
    CUDA(cudaEventRecord(fork, b.stream));
    CUDA(cudaStreamWaitEvent(b.other, fork, 0));
    scale<<<kCount / 256, 256, 0, b.other>>>(b.from, b.to, kCount);
    CUDA(cudaEventRecord(join, b.other));
    CUDA(cudaStreamWaitEvent(b.stream, join, 0));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    CUDA(cudaStreamIsCapturing(b.stream, &status));
    EXPECT(status == cudaStreamCaptureStatusActive);
    cudaGraph_t graph = nullptr;
    CUDA(cudaStreamEndCapture(b.stream, &graph));
    EXPECT(first_of(b.from) == 0);
    size_t nodes = 0;
    CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 2);
    launch_and_drop(graph, b.stream, 5);
    EXPECT(first_of(b.from) == 10);
    EXPECT(first_of(b.to) == 30);
    CUDA(cudaEventDestroy(fork));
    CUDA(cudaEventDestroy(join));
}

void check_capture_errors() {
    Buffers b;
    void* pointer = nullptr;
    cudaGraph_t graph = nullptr;
    CUDA(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaMalloc(&pointer, 1024));
    EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(b.stream, &graph));
    cudaGetLastError();
    CUDA(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal));
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
    CUDA(cudaMalloc(&pointer, 1024));
    CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
    CUDA(cudaStreamEndCapture(b.stream, &graph));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(pointer));
}

void check_nodes() {
    Buffers b;
    cudaGraph_t graph = nullptr;
    CUDA(cudaGraphCreate(&graph, 0));
    cudaMemsetParams memset{};
    memset.dst = b.from;
    memset.value = 1;
    memset.elementSize = 4;
    memset.width = kCount;
    memset.height = 1;
    cudaGraphNode_t set = nullptr, kernel = nullptr, copy = nullptr;
    CUDA(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &memset));
    int count = kCount, amount = 5;
    void* arguments[] = {&b.from, &count, &amount};
    cudaKernelNodeParams parameters{};
    parameters.func = reinterpret_cast<void*>(add);
    parameters.gridDim = dim3(kCount / 256);
    parameters.blockDim = dim3(256);
    parameters.kernelParams = arguments;
    CUDA(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &parameters));
    CUDA(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, b.to, b.from, kCount * sizeof(int),
                                  cudaMemcpyDeviceToDevice));
    cudaKernelNodeParams shown{};
    CUDA(cudaGraphKernelNodeGetParams(kernel, &shown));
    EXPECT(shown.func == reinterpret_cast<void*>(add));
    EXPECT(*static_cast<int*>(shown.kernelParams[2]) == 5);
    cudaMemcpy3DParms copy_shown{};
    CUDA(cudaGraphMemcpyNodeGetParams(copy, &copy_shown));
    EXPECT(copy_shown.dstPtr.ptr == b.to);
    EXPECT(copy_shown.extent.width == kCount * sizeof(int));
    cudaGraphExec_t executable = nullptr;
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    CUDA(cudaGraphLaunch(executable, b.stream));
    CUDA(cudaStreamSynchronize(b.stream));
    EXPECT(first_of(b.to) == 6);
    amount = 9;
    CUDA(cudaGraphExecKernelNodeSetParams(executable, kernel, &parameters));
    CUDA(cudaGraphLaunch(executable, b.stream));
    CUDA(cudaStreamSynchronize(b.stream));
    EXPECT(first_of(b.to) == 10);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
}

void check_symbols() {
    Buffers b;
    cudaGraph_t graph = nullptr;
    CUDA(cudaGraphCreate(&graph, 0));
    int value = 7, back = 0;
    cudaGraphNode_t in = nullptr, out = nullptr;
    CUDA(cudaGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, constant_of_device, &value,
                                        sizeof value, 0, cudaMemcpyHostToDevice));
    CUDA(cudaGraphAddMemcpyNodeFromSymbol(&out, graph, &in, 1, &back, constant_of_device,
                                          sizeof back, 0, cudaMemcpyDeviceToHost));
    launch_and_drop(graph, b.stream, 1);
    EXPECT(back == 7);
}

void check_memory() {
    Buffers b;
    int* inside = nullptr;
    cudaGraph_t graph = nullptr;
    CUDA(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaMallocAsync(&inside, kCount * sizeof(int), b.stream));
    CUDA(cudaMemsetAsync(inside, 0, kCount * sizeof(int), b.stream));
    add<<<kCount / 256, 256, 0, b.stream>>>(inside, kCount, 11);
    CUDA(cudaMemcpyAsync(b.to, inside, kCount * sizeof(int), cudaMemcpyDeviceToDevice, b.stream));
    CUDA(cudaFreeAsync(inside, b.stream));
    CUDA(cudaStreamEndCapture(b.stream, &graph));
    launch_and_drop(graph, b.stream, 3);
    EXPECT(first_of(b.to) == 11);
}

void check_update() {
    Buffers b;
    cudaGraphExec_t executable = nullptr;
    for (int round = 1; round <= 4; ++round) {
        cudaGraph_t graph = nullptr;
        CUDA(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal));
        add<<<kCount / 256, 256, 0, b.stream>>>(b.from, kCount, round);
        CUDA(cudaStreamEndCapture(b.stream, &graph));
        if (executable == nullptr) {
            CUDA(cudaGraphInstantiate(&executable, graph, 0));
        } else {
            cudaGraphExecUpdateResultInfo info;
            CUDA(cudaGraphExecUpdate(executable, graph, &info));
            EXPECT(info.result == cudaGraphExecUpdateSuccess);
        }
        CUDA(cudaGraphDestroy(graph));
        CUDA(cudaGraphLaunch(executable, b.stream));
    }
    CUDA(cudaStreamSynchronize(b.stream));
    EXPECT(first_of(b.from) == 10);
    CUDA(cudaGraphExecDestroy(executable));
}

}  // namespace

int main() {
    check_capture();
    check_capture_errors();
    check_nodes();
    check_symbols();
    check_memory();
    check_update();
    std::puts("ok");
    return 0;
}
