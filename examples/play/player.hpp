// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cost/workload.hpp"
#include "examples/play/kernels.hpp"

namespace play {

/// A call of the runtime failed; what() is one line.
struct CudaError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A program that has a workload's persistent tensors, and runs its iterations: tensors begin where
/// they are first named and end where the workload frees them, in the order of one stream.
/// @thread one
class Player {
  public:
    explicit Player(const libswap::cost::Workload& workload);
    ~Player();
    Player(const Player&) = delete;
    Player& operator=(const Player&) = delete;

    /// One iteration, until it is done. Its time by the device's clock, in milliseconds.
    double run_iteration();

    /// Of the words of all persistent tensors.
    std::uint64_t digest();

  private:
    using Uses = std::span<const libswap::cost::Use>;

    void measure_launch();
    void begin_tensors();
    void begin_iteration_tensors(Uses uses);
    Operand operand(libswap::cost::TensorIndex tensor, bool read) const;
    void run_op(std::size_t op);
    template <typename P>
    void launch_op(const std::vector<Operand>& written, const std::vector<Operand>& read,
                   double duration_us);
    void launch_all(std::vector<Operand> written, std::vector<Operand> read, double duration_us);
    void* allocate(std::uint64_t bytes);
    void free(void* memory);

    const libswap::cost::Workload& workload_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
    double launch_us_ = 0;       ///< from one kernel's end to the next one's begin
    std::vector<void*> memory_;  ///< by tensor, null while it has none
};

}  // namespace play
