// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// A small program with a bit of everything, whose calls may be made to fail. A call that failed has
// had no effect, so it is made again, twice at most; then the program ends with the error's name.
// Whatever happens, a program that ends with exit code 0 prints the digest of what it computed.
//
// usage: faults_victim [ROUNDS]

#include <cuda_runtime.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kLayers = 8;
constexpr int kTableEntries = 4;
constexpr size_t kBytes = (size_t{2} << 20) - 4096;
constexpr unsigned kWords = static_cast<unsigned>(kBytes / 4);
constexpr unsigned kStride = 2048;  // four words a page of the device: enough to tell pages apart
constexpr unsigned kCount = kWords / kStride;

template <class Call>
void must(const char* what, Call&& call) {
    for (int tries = 0; tries < 3; ++tries) {
        const cudaError_t error = call();
        if (error == cudaSuccess) return;
        std::fprintf(stderr, "victim: %s: %s\n", what, cudaGetErrorName(error));
        (void)cudaGetLastError();
    }
    std::fflush(stdout);
    std::_Exit(3);
}
#define MUST(expression) must(#expression, [&] { return expression; })
#define LAUNCH(...)                \
    must("launch", [&] {           \
        __VA_ARGS__;               \
        return cudaGetLastError(); \
    })

__device__ unsigned stirred(unsigned h, unsigned v) {
    return (h ^ (v + (h << 5) + (h >> 3))) * 0x01000193u;
}

__device__ unsigned g_rounds;

__global__ void forward(const unsigned* in, const unsigned* weights, unsigned* out, unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kCount) out[i * kStride] = stirred(in[i * kStride], weights[i * kStride] + salt);
}

// In place: twice would not be the same as once.
__global__ void update(unsigned* weights, const unsigned* gradient, const unsigned* scale) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kCount) weights[i * kStride] += stirred(gradient[i * kStride], scale[i % 16]);
    if (i == 0) ++g_rounds;
}

__global__ void gather(unsigned* const* table, unsigned* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kCount) return;
    unsigned h = 0;
    for (int entry = 0; entry < kTableEntries; ++entry) h = stirred(h, table[entry][i * kStride]);
    out[i * kStride] = h;
}

struct Digest {
    uint64_t value = 0xcbf29ce484222325ull;
    void add(const unsigned* words, size_t count) {
        for (size_t i = 0; i < count; ++i) value = (value ^ words[i]) * 0x100000001b3ull;
    }
};

constexpr unsigned kBlock = 64;
constexpr unsigned kGrid = (kCount + kBlock - 1) / kBlock;

class Program {
  public:
    void run(int rounds) {
        begin();
        for (int round = 0; round < rounds; ++round) iterate(static_cast<unsigned>(round));
        end();
    }

  private:
    unsigned* make(size_t bytes) {
        unsigned* memory = nullptr;
        MUST(cudaMalloc(reinterpret_cast<void**>(&memory), bytes));
        return memory;
    }

    void begin() {
        MUST(cudaSetDevice(0));
        MUST(cudaStreamCreateWithFlags(&work_, cudaStreamNonBlocking));
        MUST(cudaStreamCreate(&copies_));
        MUST(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
        MUST(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
        for (int layer = 0; layer < kLayers; ++layer) {
            weights_[layer] = make(kBytes);
            for (unsigned i = 0; i < kWords; ++i)
                pinned_[i] = i * 2654435761u + static_cast<unsigned>(layer);
            if (layer % 2) {
                MUST(cudaMemcpy(weights_[layer], pinned_, kBytes, cudaMemcpyHostToDevice));
            } else {
                MUST(cudaMemcpyAsync(weights_[layer], pinned_, kBytes, cudaMemcpyHostToDevice,
                                     work_));
                MUST(cudaStreamSynchronize(work_));
            }
        }
        scale_ = make(64);
        MUST(cudaMemsetAsync(scale_, 3, 64, work_));
    }

    void order(cudaStream_t after, cudaStream_t before) {
        MUST(cudaEventRecord(event_, before));
        MUST(cudaStreamWaitEvent(after, event_, 0));
    }

    void iterate(unsigned round) {
        unsigned* values[kLayers + 1];
        for (auto& value : values) {
            value = make(kBytes);
            MUST(cudaMemsetAsync(value, static_cast<int>(round + 1), kBytes, work_));
        }
        for (int layer = 0; layer < kLayers; ++layer)
            LAUNCH((forward<<<kGrid, kBlock, 0, work_>>>(values[layer], weights_[layer],
                                                         values[layer + 1], round)));
        // Something else on another stream, at the same time.
        order(copies_, work_);
        MUST(
            cudaMemcpyAsync(pinned_, values[kLayers / 2], kBytes, cudaMemcpyDeviceToHost, copies_));
        for (int layer = kLayers; layer-- > 0;)
            LAUNCH(
                (update<<<kGrid, kBlock, 0, work_>>>(weights_[layer], values[layer + 1], scale_)));
        MUST(cudaMemcpyAsync(values[0], values[kLayers], kBytes, cudaMemcpyDeviceToDevice, work_));
        table(values[0]);
        MUST(cudaStreamSynchronize(copies_));
        digest_.add(pinned_, kWords);
        std::vector<unsigned> pageable(kWords);
        MUST(cudaStreamSynchronize(work_));
        MUST(cudaMemcpy(pageable.data(), values[0], kBytes, cudaMemcpyDeviceToHost));
        digest_.add(pageable.data(), kWords);
        for (auto* value : values) MUST(cudaFree(value));
    }

    void table(unsigned* out) {
        unsigned** table = reinterpret_cast<unsigned**>(make(kTableEntries * sizeof *table));
        MUST(cudaMemcpyAsync(table, weights_, kTableEntries * sizeof *table, cudaMemcpyHostToDevice,
                             work_));
        LAUNCH((gather<<<kGrid, kBlock, 0, work_>>>(table, out)));
        MUST(cudaFree(table));
    }

    void end() {
        MUST(cudaDeviceSynchronize());
        for (auto* weights : weights_) {
            MUST(cudaMemcpy(pinned_, weights, kBytes, cudaMemcpyDeviceToHost));
            digest_.add(pinned_, kWords);
            MUST(cudaFree(weights));
        }
        unsigned rounds = 0;
        MUST(cudaMemcpyFromSymbol(&rounds, g_rounds, sizeof rounds));
        digest_.add(&rounds, 1);
        MUST(cudaFree(scale_));
        MUST(cudaEventDestroy(event_));
        MUST(cudaStreamDestroy(copies_));
        MUST(cudaStreamDestroy(work_));
        MUST(cudaFreeHost(pinned_));
        std::printf("digest %016" PRIx64 "\n", digest_.value);
    }

    cudaStream_t work_ = nullptr;
    cudaStream_t copies_ = nullptr;
    cudaEvent_t event_ = nullptr;
    unsigned* pinned_ = nullptr;
    unsigned* weights_[kLayers] = {};
    unsigned* scale_ = nullptr;
    Digest digest_;
};

}  // namespace

int main(int argc, char** argv) {
    Program program;
    program.run(argc > 1 ? std::atoi(argv[1]) : 3);
    return 0;
}
