// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "microbench/device/session.hpp"
#include "microbench/hierarchy/prober.hpp"

namespace libswap::bench {

/// Loads by kernels on a device. What reading the clock costs is subtracted.
class GpuProber final : public Prober {
  public:
    /// Uses `bytes` of device memory. Throws CudaError.
    GpuProber(Session& session, std::uint64_t bytes);
    ~GpuProber() override;

    SweepResult sweep(const Sweep& sweep) override;
    std::vector<std::uint32_t> probe(LoadPath path, std::span<const std::uint64_t> offsets,
                                     std::uint32_t companion_bytes) override;
    std::uint64_t bytes() const override { return memory_.bytes - skipped_bytes_; }
    const std::string& error() const override { return error_; }

    double overhead_cycles() const { return overhead_cycles_; }

  private:
    static constexpr std::uint64_t kAlignment = std::uint64_t{2} << 20;

    void launch(CUfunction function, void** parameters);
    void measure_overhead();
    std::uint32_t without_overhead(std::uint32_t cycles) const;
    template <typename T>
    void read_back(T* into, std::size_t count);

    Session& session_;
    DeviceBuffer memory_;
    DeviceBuffer sequence_, out_;
    Module module_;
    CUfunction sweeps_[3];
    CUfunction probes_[3];
    std::uint64_t skipped_bytes_ = 0;  ///< up to the first aligned address
    double overhead_cycles_ = 0;
    std::string error_;
};

}  // namespace libswap::bench
