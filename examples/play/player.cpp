// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "examples/play/player.hpp"

#include <algorithm>
#include <string>

namespace play {
namespace {

using libswap::cost::TensorIndex;

/// Launches that the time between kernels is measured over.
constexpr int kMeasuredLaunches = 200;
/// More than this is not the device's, but what somebody between us and the driver does.
constexpr double kMostLaunchUs = 3;

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    throw CudaError(std::string(call) + ": " + cudaGetErrorString(status));
}

std::uint32_t words_of(std::uint64_t bytes) {
    const std::uint64_t words = (bytes + kStepBytes - 1) / kStepBytes;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(words, 1, UINT16_MAX));
}

}  // namespace

Player::Player(const libswap::cost::Workload& workload)
    : workload_(workload), memory_(workload.tensors().size()) {
    register_simulated_kernels();
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
    // Memory that was freed stays with the pool, as frameworks have it.
    int device = 0;
    cudaMemPool_t pool = nullptr;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
    std::uint64_t all = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all),
          "cudaMemPoolSetAttribute");
    measure_launch();
    begin_tensors();
}

Player::~Player() {
    // At the process's end the driver takes all of it; here only what is not in use is given back.
    if (stream_ == nullptr || cudaStreamSynchronize(stream_) != cudaSuccess) return;
    for (void* memory : memory_)
        if (memory != nullptr) static_cast<void>(cudaFree(memory));
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
    static_cast<void>(cudaStreamDestroy(stream_));
}

/// Recorded times count from one kernel to the next: what a launch takes by itself is part of them.
void Player::measure_launch() {
    const FewParameters nothing{};
    float ms = 0;
    for (int round = 0; round < 2; ++round) {  // the first loads the kernel
        check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
        for (int i = 0; i < kMeasuredLaunches; ++i) check(launch(nothing, stream_), "a launch");
        check(cudaEventRecord(end_, stream_), "cudaEventRecord");
        check(cudaEventSynchronize(end_), "cudaEventSynchronize");
        check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    }
    launch_us_ = std::min(static_cast<double>(ms) * 1000 / kMeasuredLaunches, kMostLaunchUs);
}

/// Persistent tensors, written once by kernels as initial weights are.
void Player::begin_tensors() {
    const auto& tensors = workload_.tensors();
    for (TensorIndex t = 0; t < tensors.size(); ++t) {
        if (!tensors[t].persistent) continue;
        check(cudaMalloc(&memory_[t], std::max<std::uint64_t>(tensors[t].bytes, 8)), "cudaMalloc");
        launch_all({operand(t, false)}, {}, 0);
    }
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void* Player::allocate(std::uint64_t bytes) {
    void* memory = nullptr;
    check(cudaMallocAsync(&memory, std::max<std::uint64_t>(bytes, 8), stream_), "cudaMallocAsync");
    return memory;
}

void Player::free(void* memory) { check(cudaFreeAsync(memory, stream_), "cudaFreeAsync"); }

Operand Player::operand(TensorIndex tensor, bool read) const {
    return {reinterpret_cast<std::uint64_t>(memory_[tensor]),
            words_of(workload_.tensors()[tensor].bytes), read};
}

template <typename P>
void Player::launch_op(const std::vector<Operand>& written, const std::vector<Operand>& read,
                       double duration_us) {
    P parameters{};
    const auto place = [&](std::size_t at, const Operand& operand) {
        parameters.addresses[at] = operand.address;
        parameters.words[at] = static_cast<std::uint16_t>(operand.words);
    };
    for (std::size_t i = 0; i < written.size(); ++i) {
        place(i, written[i]);
        parameters.read[i] = written[i].read ? 1 : 0;
    }
    for (std::size_t i = 0; i < read.size(); ++i) place(P::kMostWritten + i, read[i]);
    parameters.duration_ns =
        static_cast<std::uint64_t>(std::max(0.0, duration_us - launch_us_) * 1000);
    check(launch(parameters, stream_), "a launch");
}

/// In several launches where one cannot name all operands; the last one takes the time.
void Player::launch_all(std::vector<Operand> written, std::vector<Operand> read,
                        double duration_us) {
    const auto cut = [](std::vector<Operand>& from, std::size_t most) {
        const std::size_t count = std::min(from.size(), most);
        std::vector<Operand> part(from.end() - static_cast<std::ptrdiff_t>(count), from.end());
        from.resize(from.size() - count);
        return part;
    };
    while (written.size() > ManyParameters::kMostWritten || read.size() > ManyParameters::kMostRead)
        launch_op<ManyParameters>(cut(written, ManyParameters::kMostWritten),
                                  cut(read, ManyParameters::kMostRead), 0);
    if (written.size() > FewParameters::kMostWritten || read.size() > FewParameters::kMostRead)
        launch_op<ManyParameters>(written, read, duration_us);
    else
        launch_op<FewParameters>(written, read, duration_us);
}

void Player::begin_iteration_tensors(Uses uses) {
    for (const auto& use : uses)
        if (memory_[use.tensor] == nullptr)
            memory_[use.tensor] = allocate(workload_.tensors()[use.tensor].bytes);
}

void Player::run_op(std::size_t op) {
    const Uses uses = workload_.uses(op);
    begin_iteration_tensors(uses);
    std::vector<Operand> written;
    std::vector<Operand> read;
    for (const auto& use : uses)
        (use.write ? written : read).push_back(operand(use.tensor, use.read));
    void* workspace = nullptr;
    if (const std::uint64_t bytes = workload_.op(op).workspace_bytes; bytes != 0) {
        workspace = allocate(bytes);
        written.push_back({reinterpret_cast<std::uint64_t>(workspace), words_of(bytes), false});
    }
    launch_all(std::move(written), std::move(read), workload_.op(op).duration_us);
    if (workspace != nullptr) free(workspace);
    for (const TensorIndex t : workload_.frees(op)) {
        if (memory_[t] == nullptr) continue;
        free(memory_[t]);
        memory_[t] = nullptr;
    }
}

double Player::run_iteration() {
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    for (std::size_t op = 0; op < workload_.op_count(); ++op) run_op(op);
    // What is not persistent ends with the iteration, whether the workload says so or not.
    for (TensorIndex t = 0; t < memory_.size(); ++t) {
        if (memory_[t] == nullptr || workload_.tensors()[t].persistent) continue;
        free(memory_[t]);
        memory_[t] = nullptr;
    }
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    return ms;
}

std::uint64_t Player::digest() {
    void* result = nullptr;
    check(cudaMalloc(&result, sizeof(std::uint64_t)), "cudaMalloc");
    const Operand sum{reinterpret_cast<std::uint64_t>(result), 1, true};
    check(cudaMemsetAsync(result, 0, sizeof(std::uint64_t), stream_), "cudaMemsetAsync");
    for (TensorIndex t = 0; t < memory_.size(); ++t)
        if (workload_.tensors()[t].persistent) launch_all({sum}, {operand(t, true)}, 0);
    std::uint64_t value = 0;
    check(cudaMemcpyAsync(&value, result, sizeof(value), cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    check(cudaFree(result), "cudaFree");
    return value;
}

}  // namespace play
