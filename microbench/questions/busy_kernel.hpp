// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <chrono>

#include "microbench/device/session.hpp"

namespace libswap::bench {

/// A kernel of one thread that keeps a stream busy for a time by the host's clock.
class BusyKernel {
  public:
    /// Measures how long the kernel takes. Throws CudaError.
    BusyKernel(Session& session, std::chrono::milliseconds runs_for);

    /// Submits it; the device is idle before.
    void start();
    /// Whether it has not ended yet.
    bool runs() const;
    /// Waits for its end.
    void finish() const;

  private:
    void launch(std::uint64_t rounds);

    Session& session_;
    Module module_;
    CUfunction function_;
    DeviceBuffer out_;
    Event done_;
    std::uint64_t rounds_ = 0;
};

/// us of the host's clock that `work` takes.
template <typename Work>
double host_us(Work work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
        .count();
}

}  // namespace libswap::bench
