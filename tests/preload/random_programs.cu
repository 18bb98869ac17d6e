// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Random CUDA programs, many in one process. Each is determined by its seed alone: whatever touches
// the same buffer from two streams is ordered by events, so the bytes it ends with are the same on
// every run and every machine. Prints one line a program: seed, digest of all that was read back,
// error codes.
//
// usage: random_programs FIRST_SEED COUNT [--ops N] [--live MiB] [--threads N] [--devices N]
//        [--verbose]

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kStrideWords = 256;  // kernels touch one word a KiB: every page, few instructions
constexpr int kStreams = 3;
constexpr int kTableEntries = 6;

__device__ __forceinline__ unsigned mixed(unsigned h, unsigned v) {
    h ^= v + 0x9e3779b9u + (h << 6) + (h >> 2);
    return h * 0x85ebca6bu;
}

__global__ void mix(unsigned* dst, const unsigned* a, const unsigned* b, unsigned count,
                    unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const size_t at = i * kStrideWords;
    dst[at] = mixed(mixed(dst[at], a[at]), mixed(b[at], salt + i));
}

__global__ void fill(unsigned* dst, unsigned count, unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) dst[i * kStrideWords] = mixed(salt, i);
}

// Pointers at odd places inside one parameter.
struct Operands {
    unsigned count;
    struct {
        unsigned char tag;
        unsigned* dst;
    } out;
    const unsigned* in[2];
    unsigned salt;
};

__global__ void mix_struct(Operands o) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= o.count) return;
    const size_t at = i * kStrideWords;
    o.out.dst[at] = mixed(o.out.dst[at] ^ o.in[0][at], o.in[1][at] + o.salt + o.out.tag);
}

// Pointers in device memory.
__global__ void mix_table(unsigned* const* table, unsigned entries, unsigned count, unsigned salt) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const size_t at = i * kStrideWords;
    unsigned h = salt;
    for (unsigned e = 1; e < entries; ++e) h = mixed(h, table[e][at]);
    table[0][at] = h;
}

class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
    uint32_t next() {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t x = state_ ^ (state_ >> 33);
        x *= 0xff51afd7ed558ccdull;
        return static_cast<uint32_t>(x >> 32);
    }
    uint32_t below(uint32_t n) { return n ? next() % n : 0; }

  private:
    uint64_t state_;
};

class Digest {
  public:
    void add(const void* data, size_t bytes) {
        const auto* p = static_cast<const unsigned char*>(data);
        size_t i = 0;
        for (; i + 8 <= bytes; i += 8) {
            uint64_t w;
            std::memcpy(&w, p + i, 8);
            word(w);
        }
        for (; i < bytes; ++i) word(p[i]);
    }
    void word(uint64_t w) { value_ = (value_ ^ w) * 0x100000001b3ull ^ (value_ >> 29); }
    uint64_t value() const { return value_; }

  private:
    uint64_t value_ = 0xcbf29ce484222325ull;
};

struct Buffer {
    unsigned* device = nullptr;
    size_t words = 0;
    int last_stream = 0;
    bool pooled = false;  // in stream order: from a pool
    bool far = false;     // on another device than the streams
};

struct Options {
    uint64_t first = 0;
    uint64_t count = 1;
    unsigned ops = 60;
    size_t live_bytes = 40u << 20;
    int threads = 1;
    int devices = 1;
    bool verbose = false;
};

class Program {
  public:
    Program(uint64_t seed, const Options& options)
        : options_(options), seed_(seed), random_(seed) {}

    void run() {
        for (auto& stream : streams_)
            expect(cudaStreamCreateWithFlags(
                &stream, random_.below(2) ? cudaStreamNonBlocking : cudaStreamDefault));
        expect(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
        expect(cudaEventCreateWithFlags(&fork_event_, cudaEventDisableTiming));
        // Not blocking: the legacy stream is used meanwhile.
        expect(cudaStreamCreateWithFlags(&capture_stream_, cudaStreamNonBlocking));
        expect(cudaStreamCreateWithFlags(&fork_stream_, cudaStreamNonBlocking));
        expect(cudaMallocHost(&pinned_, kPinnedBytes));
        pageable_.resize(kPinnedBytes);
        make_pool();
        for (int i = 0; i < 40 && live_ < options_.live_bytes * 3 / 4; ++i) allocate();
        for (unsigned i = 0; i < options_.ops; ++i) step();
        finish();
    }

    std::string line() const {
        char text[160];
        std::snprintf(text, sizeof text,
                      "program %" PRIu64 " digest %016" PRIx64 " errors %u last %d peak %zu", seed_,
                      digest_.value(), errors_, last_error_, peak_);
        return text;
    }

  private:
    static constexpr size_t kPinnedBytes = 1u << 20;

    void expect(cudaError_t error) {
        if (error == cudaSuccess) return;
        ++errors_;
        last_error_ = error;
        digest_.word(static_cast<uint64_t>(error));
        if (options_.verbose)
            std::fprintf(stderr, "program %" PRIu64 ": %s\n", seed_, cudaGetErrorName(error));
        cudaGetLastError();
    }

    // Half of the programs have a pool of their own, with reuse rules of their own.
    void make_pool() {
        if (random_.below(2)) return;
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        expect(cudaMemPoolCreate(&pool_, &properties));
        int follows = static_cast<int>(random_.below(2));
        int opportunistic = static_cast<int>(random_.below(2));
        uint64_t threshold = random_.below(3) == 0 ? UINT64_MAX : random_.below(64) << 20;
        expect(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseFollowEventDependencies, &follows));
        expect(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowOpportunistic, &opportunistic));
        expect(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold));
    }

    // What a pool says of itself is the same with and without libswap, as far as it is not about
    // how memory is rounded.
    void ask_pool() {
        if (!pool_) return;
        uint64_t used = 0, reserved = 0, threshold = 0;
        expect(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used));
        expect(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved));
        expect(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold));
        digest_.word(used);
        digest_.word(threshold);
        digest_.word(reserved >= used);
        size_t free_bytes = 0, total_bytes = 0;
        expect(cudaMemGetInfo(&free_bytes, &total_bytes));
        size_t live_here = 0;
        for (const Buffer& buffer : buffers_) live_here += buffer.far ? 0 : buffer.words * 4;
        digest_.word(free_bytes + live_here <= total_bytes);
        if (random_.below(3) == 0) expect(cudaMemPoolTrimTo(pool_, random_.below(32) << 20));
    }

    // Memory of any device: kernels of the first one use it all.
    cudaError_t allocate_somewhere(Buffer* buffer, size_t bytes) {
        const int device = static_cast<int>(random_.below(static_cast<uint32_t>(options_.devices)));
        if (device != 0) expect(cudaSetDevice(device));
        buffer->far = device != 0;
        const cudaError_t result = cudaMalloc(reinterpret_cast<void**>(&buffer->device), bytes);
        if (device != 0) expect(cudaSetDevice(0));
        return result;
    }

    cudaError_t take(Buffer* buffer, size_t bytes) {
        auto** out = reinterpret_cast<void**>(&buffer->device);
        const uint32_t how = random_.below(4);
        buffer->pooled = how >= 2;
        if (!buffer->pooled) return allocate_somewhere(buffer, bytes);
        const cudaStream_t stream = streams_[buffer->last_stream];
        return pool_ && how == 3 ? cudaMallocFromPoolAsync(out, bytes, pool_, stream)
                                 : cudaMallocAsync(out, bytes, stream);
    }

    void give_back(Buffer& buffer) {
        // In stream order, with work that uses it still in flight; the driver's other free waits.
        if (buffer.pooled && random_.below(8))
            expect(cudaFreeAsync(buffer.device, streams_[buffer.last_stream]));
        else
            synchronized_free(buffer);
    }

    void synchronized_free(Buffer& buffer) {
        // Such frees wait for nothing, or for their own device only.
        if (buffer.pooled || buffer.far)
            expect(cudaStreamSynchronize(streams_[buffer.last_stream]));
        expect(cudaFree(buffer.device));
    }

    void allocate() {
        // Many of a few chunks, some tiny, few large.
        const uint32_t kind = random_.below(10);
        size_t kib = kind < 2   ? 4 + random_.below(60)
                     : kind < 8 ? 1024 + random_.below(3 * 1024)
                                : 4096 + random_.below(6 * 1024);
        const size_t bytes = kib << 10;
        if (live_ + bytes > options_.live_bytes) return;
        Buffer buffer;
        buffer.words = bytes / 4;
        buffer.last_stream = static_cast<int>(random_.below(kStreams));
        expect(take(&buffer, bytes));
        if (!buffer.device) return;
        if (buffer.pooled || random_.below(2)) {
            expect(cudaMemsetAsync(buffer.device, static_cast<int>(random_.below(256)), bytes,
                                   streams_[buffer.last_stream]));
        } else {
            expect(cudaMemset(buffer.device, static_cast<int>(random_.below(256)), bytes));
            expect(cudaStreamSynchronize(nullptr));
            const unsigned count = grid_words(buffer.words);
            fill<<<(count + 127) / 128, 128, 0, streams_[buffer.last_stream]>>>(
                buffer.device, count, random_.next());
            expect(cudaGetLastError());
        }
        live_ += bytes;
        peak_ = std::max(peak_, live_);
        buffers_.push_back(buffer);
    }

    static unsigned grid_words(size_t words) {
        return static_cast<unsigned>((words + kStrideWords - 1) / kStrideWords);
    }

    size_t pick() { return random_.below(static_cast<uint32_t>(buffers_.size())); }

    // Orders stream `s` after whatever touched the buffer last; from here on it is s that did.
    cudaStream_t use(size_t index, int s) {
        Buffer& buffer = buffers_[index];
        if (buffer.last_stream != s) {
            expect(cudaEventRecord(event_, streams_[buffer.last_stream]));
            expect(cudaStreamWaitEvent(streams_[s], event_, 0));
            buffer.last_stream = s;
        }
        return streams_[s];
    }

    void free_one() {
        if (buffers_.size() < 4) return;
        const size_t i = pick();
        // Work may still be in flight: the driver's free waits for it.
        give_back(buffers_[i]);
        live_ -= buffers_[i].words * 4;
        buffers_.erase(buffers_.begin() + static_cast<long>(i));
    }

    void launch_mix() {
        const size_t d = pick(), a = pick(), b = pick();
        if (d == a || d == b) return;  // offsets differ: that would be a race
        const int s = static_cast<int>(random_.below(kStreams));
        for (size_t i : {d, a, b}) use(i, s);
        const size_t words = std::min({buffers_[d].words, buffers_[a].words, buffers_[b].words});
        const size_t offset =
            random_.below(3) == 0 ? random_.below(static_cast<uint32_t>(words / 2)) : 0;
        const unsigned count = grid_words(words - offset) > 1 ? grid_words(words - offset) - 1 : 1;
        const unsigned salt = random_.next();
        if (random_.below(2)) {
            mix<<<(count + 255) / 256, 256, 0, streams_[s]>>>(
                buffers_[d].device + offset, buffers_[a].device, buffers_[b].device + offset, count,
                salt);
        } else {
            Operands o{count,
                       {static_cast<unsigned char>(salt), buffers_[d].device},
                       {buffers_[a].device + offset, buffers_[b].device},
                       salt};
            mix_struct<<<(count + 63) / 64, 64, 0, streams_[s]>>>(o);
        }
        expect(cudaGetLastError());
    }

    void launch_table() {
        const int s = static_cast<int>(random_.below(kStreams));
        unsigned* host[kTableEntries];
        size_t words = SIZE_MAX;
        for (auto& entry : host) {
            const size_t i = pick();
            use(i, s);
            entry = buffers_[i].device;
            words = std::min(words, buffers_[i].words);
        }
        unsigned** table = nullptr;
        expect(cudaMalloc(reinterpret_cast<void**>(&table), sizeof host));
        expect(cudaMemcpyAsync(table, host, sizeof host, cudaMemcpyHostToDevice, streams_[s]));
        const unsigned count = grid_words(words) > 1 ? grid_words(words) - 1 : 1;
        mix_table<<<(count + 127) / 128, 128, 0, streams_[s]>>>(table, kTableEntries, count,
                                                                random_.next());
        expect(cudaGetLastError());
        expect(cudaFree(table));
    }

    struct Part {
        size_t offset;
        size_t bytes;
    };
    Part part_of(const Buffer& buffer, size_t most) {
        const size_t bytes =
            1 + random_.below(static_cast<uint32_t>(std::min(most, buffer.words * 4)));
        return {random_.below(static_cast<uint32_t>(buffer.words * 4 - bytes + 1)), bytes};
    }

    void copy_in() {
        const size_t i = pick();
        const int s = static_cast<int>(random_.below(kStreams));
        use(i, s);
        const Part part = part_of(buffers_[i], kPinnedBytes);
        auto* device = reinterpret_cast<char*>(buffers_[i].device) + part.offset;
        const bool pinned = random_.below(2);
        char* host = pinned ? static_cast<char*>(pinned_) : pageable_.data();
        std::memset(host, static_cast<int>(random_.below(256)), part.bytes);
        host[part.bytes / 2] = static_cast<char>(random_.next());
        expect(cudaMemcpyAsync(device, host, part.bytes, cudaMemcpyHostToDevice, streams_[s]));
        if (pinned) expect(cudaStreamSynchronize(streams_[s]));  // the staging area is used again
    }

    void copy_out() {
        const size_t i = pick();
        const int s = static_cast<int>(random_.below(kStreams));
        use(i, s);
        const Part part = part_of(buffers_[i], kPinnedBytes);
        const auto* device = reinterpret_cast<const char*>(buffers_[i].device) + part.offset;
        char* host = random_.below(2) ? static_cast<char*>(pinned_) : pageable_.data();
        expect(cudaMemcpyAsync(host, device, part.bytes, cudaMemcpyDeviceToHost, streams_[s]));
        expect(cudaStreamSynchronize(streams_[s]));
        digest_.add(host, part.bytes);
    }

    void copy_across() {
        const size_t d = pick(), a = pick();
        if (d == a) return;
        const int s = static_cast<int>(random_.below(kStreams));
        use(d, s);
        use(a, s);
        const size_t bytes =
            std::min(part_of(buffers_[d], 8u << 20).bytes, part_of(buffers_[a], 8u << 20).bytes);
        if (random_.below(3) == 0 && bytes >= 64 * 64) {
            expect(cudaMemcpy2DAsync(buffers_[d].device, 64, buffers_[a].device, 64, 48, bytes / 64,
                                     cudaMemcpyDeviceToDevice, streams_[s]));
        } else {
            expect(cudaMemcpyAsync(buffers_[d].device, buffers_[a].device, bytes,
                                   random_.below(2) ? cudaMemcpyDeviceToDevice : cudaMemcpyDefault,
                                   streams_[s]));
        }
    }

    void set_part() {
        const size_t i = pick();
        const int s = static_cast<int>(random_.below(kStreams));
        use(i, s);
        const Part part = part_of(buffers_[i], buffers_[i].words * 4);
        expect(cudaMemsetAsync(reinterpret_cast<char*>(buffers_[i].device) + part.offset,
                               static_cast<int>(random_.below(256)), part.bytes, streams_[s]));
    }

    void wait_somehow() {
        const int s = static_cast<int>(random_.below(kStreams));
        switch (random_.below(4)) {
            case 0:
                expect(cudaStreamSynchronize(streams_[s]));
                break;
            case 1:
                expect(cudaDeviceSynchronize());
                break;
            case 2:
                expect(cudaEventRecord(event_, streams_[s]));
                while (cudaEventQuery(event_) == cudaErrorNotReady) std::this_thread::yield();
                cudaGetLastError();
                break;
            default:
                expect(cudaLaunchHostFunc(
                    streams_[s], [](void* p) { ++*static_cast<std::atomic<unsigned>*>(p); },
                    &host_calls_));
        }
    }

    // One or two kernels and a copy or fill, to be captured: what the capturing stream is to do.
    struct GraphWork {
        size_t dst, a, b, other;
        unsigned count, salt;
        size_t copied_bytes;
        int value;
        bool forks;
    };

    GraphWork plan_graph(int s) {
        GraphWork work{};
        do {
            work.dst = pick();
            work.a = pick();
            work.b = pick();
            work.other = pick();
        } while (work.dst == work.a || work.dst == work.b || work.other == work.dst ||
                 work.other == work.a || work.other == work.b);
        for (size_t i : {work.dst, work.a, work.b, work.other}) use(i, s);
        const size_t words =
            std::min({buffers_[work.dst].words, buffers_[work.a].words, buffers_[work.b].words});
        work.count = grid_words(words) > 1 ? grid_words(words) - 1 : 1;
        work.salt = random_.next();
        work.copied_bytes = std::min(buffers_[work.other].words, buffers_[work.a].words) * 4 /
                            (1 + random_.below(3));
        work.value = static_cast<int>(random_.below(256));
        return work;
    }

    // Two streams if it forks: the fill of `other` runs beside the kernel.
    void submit_graph_work(const GraphWork& work) {
        const cudaStream_t side = work.forks ? fork_stream_ : capture_stream_;
        if (work.forks) {
            expect(cudaEventRecord(fork_event_, capture_stream_));
            expect(cudaStreamWaitEvent(fork_stream_, fork_event_, 0));
        }
        expect(cudaMemsetAsync(buffers_[work.other].device, work.value,
                               buffers_[work.other].words * 4, side));
        mix<<<(work.count + 127) / 128, 128, 0, capture_stream_>>>(
            buffers_[work.dst].device, buffers_[work.a].device, buffers_[work.b].device, work.count,
            work.salt);
        expect(cudaGetLastError());
        if (work.forks) {
            expect(cudaEventRecord(fork_event_, fork_stream_));
            expect(cudaStreamWaitEvent(capture_stream_, fork_event_, 0));
        }
        expect(cudaMemcpyAsync(buffers_[work.other].device, buffers_[work.a].device,
                               work.copied_bytes, cudaMemcpyDeviceToDevice, capture_stream_));
    }

    cudaGraph_t capture(const GraphWork& work, cudaStreamCaptureMode mode) {
        cudaGraph_t graph = nullptr;
        expect(cudaStreamBeginCapture(capture_stream_, mode));
        submit_graph_work(work);
        // Forbidden in some modes, where it ends the capture; allowed in the others.
        if (options_.threads == 1 && random_.below(6) == 0) {
            void* memory = nullptr;
            expect(cudaMalloc(&memory, 2u << 20));
            if (memory) forbidden_.push_back(memory);
        }
        expect(cudaStreamEndCapture(capture_stream_, &graph));
        return graph;
    }

    // A graph, launched a few times, with other work on its buffers in between.
    void run_graph() {
        if (buffers_.size() < 8) return;
        constexpr cudaStreamCaptureMode kModes[] = {cudaStreamCaptureModeRelaxed,
                                                    cudaStreamCaptureModeThreadLocal,
                                                    cudaStreamCaptureModeGlobal};
        const int s = static_cast<int>(random_.below(kStreams));
        const auto mode = kModes[random_.below(options_.threads == 1 ? 3 : 2)];
        GraphWork work = plan_graph(s);
        work.forks = random_.below(2);
        cudaGraph_t graph = capture(work, mode);
        if (!graph) return;
        size_t nodes = 0;
        expect(cudaGraphGetNodes(graph, nullptr, &nodes));
        digest_.word(nodes);
        cudaGraphExec_t exec = nullptr;
        expect(cudaGraphInstantiate(&exec, graph, 0));
        if (exec) launch_graph(exec, work, mode, s);
        expect(cudaGraphDestroy(graph));
        for (void* memory : forbidden_) expect(cudaFree(memory));
        forbidden_.clear();
    }

    void launch_graph(cudaGraphExec_t exec, GraphWork& work, cudaStreamCaptureMode mode, int s) {
        for (int i = static_cast<int>(random_.below(3)); i >= 0; --i) {
            expect(cudaGraphLaunch(exec, streams_[s]));
            if (random_.below(2)) launch_mix();
            if (random_.below(3) == 0) copy_out();
            for (size_t index : {work.dst, work.a, work.b, work.other}) use(index, s);
        }
        if (random_.below(2)) {
            // The same shape with other buffers.
            const bool forks = work.forks;
            work = plan_graph(s);
            work.forks = forks;
            if (cudaGraph_t changed = capture(work, mode)) {
                cudaGraphExecUpdateResultInfo info{};
                expect(cudaGraphExecUpdate(exec, changed, &info));
                expect(cudaGraphLaunch(exec, streams_[s]));
                expect(cudaGraphDestroy(changed));
            }
        }
        expect(cudaGraphExecDestroy(exec));
    }

    // Calls that must fail, and fail the same.
    void misuse() {
        void* p = nullptr;
        switch (random_.below(4)) {
            case 0:
                expect(cudaFree(reinterpret_cast<void*>(0x1234)));
                break;
            case 1:
                expect(cudaMemcpy(buffers_[pick()].device, nullptr, 16, cudaMemcpyHostToDevice));
                break;
            case 2:
                expect(cudaMallocHost(&p, 0));
                break;
            default:
                expect(cudaStreamSynchronize(streams_[0]));
                expect(cudaFree(nullptr));
        }
    }

    void step() {
        if (buffers_.empty()) return allocate();
        const uint32_t r = random_.below(100);
        if (r < 12) return allocate();
        if (r < 20) return free_one();
        if (r < 55) return launch_mix();
        if (r < 60) return launch_table();
        if (r < 68) return copy_in();
        if (r < 78) return copy_out();
        if (r < 86) return copy_across();
        if (r < 90) return set_part();
        if (r < 92) return ask_pool();
        if (r < 95) return run_graph();
        if (r < 98) return wait_somehow();
        misuse();
    }

    void finish() {
        for (auto& stream : streams_) expect(cudaStreamSynchronize(stream));
        digest_.word(host_calls_);
        std::vector<char> host;
        for (auto& buffer : buffers_) {
            host.resize(buffer.words * 4);
            expect(cudaMemcpy(host.data(), buffer.device, host.size(), cudaMemcpyDeviceToHost));
            digest_.add(host.data(), host.size());
        }
        // Half of the programs free their memory first, half their streams.
        if (random_.below(2)) std::reverse(streams_, streams_ + kStreams);
        for (auto& buffer : buffers_) synchronized_free(buffer);
        if (pool_) expect(cudaMemPoolDestroy(pool_));
        for (auto& stream : streams_) expect(cudaStreamDestroy(stream));
        expect(cudaStreamDestroy(capture_stream_));
        expect(cudaStreamDestroy(fork_stream_));
        expect(cudaEventDestroy(event_));
        expect(cudaEventDestroy(fork_event_));
        expect(cudaFreeHost(pinned_));
    }

    const Options& options_;
    uint64_t seed_;
    Random random_;
    Digest digest_;
    cudaStream_t streams_[kStreams] = {};
    cudaEvent_t event_ = nullptr;
    cudaStream_t capture_stream_ = nullptr;
    cudaStream_t fork_stream_ = nullptr;
    cudaEvent_t fork_event_ = nullptr;
    std::vector<void*> forbidden_;
    cudaMemPool_t pool_ = nullptr;
    void* pinned_ = nullptr;
    std::vector<char> pageable_;
    std::vector<Buffer> buffers_;
    size_t live_ = 0;
    size_t peak_ = 0;
    std::atomic<unsigned> host_calls_{0};
    unsigned errors_ = 0;
    int last_error_ = 0;
};

bool parse(int argc, char** argv, Options* options) {
    if (argc < 3) return false;
    options->first = std::strtoull(argv[1], nullptr, 10);
    options->count = std::strtoull(argv[2], nullptr, 10);
    for (int i = 3; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--verbose") {
            options->verbose = true;
        } else if (i + 1 < argc && word == "--ops") {
            options->ops = static_cast<unsigned>(std::atoi(argv[++i]));
        } else if (i + 1 < argc && word == "--live") {
            options->live_bytes = static_cast<size_t>(std::atoi(argv[++i])) << 20;
        } else if (i + 1 < argc && word == "--devices") {
            options->devices = std::atoi(argv[++i]);
        } else if (i + 1 < argc && word == "--threads") {
            options->threads = std::atoi(argv[++i]);
        } else {
            return false;
        }
    }
    return options->threads > 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, &options)) {
        std::fprintf(stderr,
                     "usage: random_programs FIRST_SEED COUNT [--ops N] [--live MiB] [--threads N] "
                     "[--devices N] [--verbose]\n");
        return 2;
    }
    for (int device = options.devices - 1; device > 0; --device) {
        cudaSetDevice(0);
        const cudaError_t enabled = cudaDeviceEnablePeerAccess(device, 0);
        if (enabled != cudaSuccess) {
            std::fprintf(stderr, "peer access: %s\n", cudaGetErrorName(enabled));
            return 1;
        }
    }
    std::vector<std::string> lines(options.count);
    auto work = [&](int thread) {
        cudaSetDevice(0);
        for (uint64_t i = static_cast<uint64_t>(thread); i < options.count;
             i += static_cast<uint64_t>(options.threads)) {
            Program program(options.first + i, options);
            program.run();
            lines[i] = program.line();
            if (options.threads == 1) std::printf("%s\n", lines[i].c_str()), std::fflush(stdout);
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < options.threads; ++t) others.emplace_back(work, t);
    work(0);
    for (auto& other : others) other.join();
    if (options.threads > 1)
        for (auto& line : lines) std::printf("%s\n", line.c_str());
    return 0;
}
