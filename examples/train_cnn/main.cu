// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Trains a convolutional network on a GPU, or on what stands in for one.

#include <cuda_runtime.h>

#include "device.hpp"
#include "digits.hpp"
#include "options.hpp"
#include "results.hpp"
#include "trainer.hpp"

namespace train_cnn {
namespace {

/// Time on the device between two points of the default stream.
class Stopwatch {
  public:
    Stopwatch() {
        TRAIN_CNN_CHECK(cudaEventCreate(&start_));
        TRAIN_CNN_CHECK(cudaEventCreate(&stop_));
    }
    ~Stopwatch() {
        cudaEventDestroy(start_);
        cudaEventDestroy(stop_);
    }
    void start() { TRAIN_CNN_CHECK(cudaEventRecord(start_)); }
    void stop() { TRAIN_CNN_CHECK(cudaEventRecord(stop_)); }
    float milliseconds() const {
        float time_ms = 0;
        TRAIN_CNN_CHECK(cudaEventSynchronize(stop_));
        TRAIN_CNN_CHECK(cudaEventElapsedTime(&time_ms, start_, stop_));
        return time_ms;
    }

  private:
    cudaEvent_t start_ = nullptr;
    cudaEvent_t stop_ = nullptr;
};

/// Memory of the device. If `leave_bytes` is not 0, takes what is free beyond it, for good.
std::uint64_t prepare_device(std::uint64_t leave_bytes) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    TRAIN_CNN_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (leave_bytes != 0 && leave_bytes < free_bytes) {
        void* taken = nullptr;
        TRAIN_CNN_CHECK(cudaMalloc(&taken, free_bytes - leave_bytes));
    }
    return total_bytes;
}

int run(const Options& options) {
    const Digits digits = read_digits(options.data);
    if (digits.count() == 0) {
        return 1;
    }
    const Split split = split_digits(digits, options.batch);
    Batches batches(split.train_count, options.batch, options.seed);
    Results results;
    results.device_bytes = prepare_device(options.leave_bytes);
    Trainer trainer(options);
    Stopwatch stopwatch;
    results.clock = "CUDA events";
    for (int i = 0; i < options.iterations; ++i) {
        stopwatch.start();
        trainer.step(digits, batches.next());
        stopwatch.stop();
        results.losses.push_back(trainer.verdict().loss);
        results.iterations_ms.push_back(stopwatch.milliseconds());
        print_loss(i, results.losses.back());
    }
    trainer.look(digits, split.held_out);
    results.accuracy = trainer.verdict().right / static_cast<double>(split.held_out.size());
    results.digest = digest(trainer.weights());
    results.peak_bytes = memory_use().peak_bytes;
    results.iteration_ms = median(results.iterations_ms);
    print_summary(results);
    return options.json.empty() || write_json(results, options.json) ? 0 : 1;
}

}  // namespace
}  // namespace train_cnn

int main(int argc, char** argv) {
    train_cnn::Options options;
    options.data = TRAIN_CNN_DATA;
    const int status = train_cnn::parse_options(argc, argv, options);
    return status >= 0 ? status : train_cnn::run(options);
}
