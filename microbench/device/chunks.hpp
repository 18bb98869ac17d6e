// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <vector>

#include "microbench/device/session.hpp"

namespace libswap::bench {

/// Physical memory in chunks of one size, and a range of addresses for them. Each step is one call;
/// all throw CudaError. What is left at the end goes back.
class Chunks {
  public:
    /// Of the device's memory, or of the host's where `location` says so.
    Chunks(Session& session, std::uint64_t chunk_bytes, std::size_t count);
    Chunks(Session& session, std::uint64_t chunk_bytes, std::size_t count, CUmemLocation location);
    ~Chunks();
    Chunks(const Chunks&) = delete;
    Chunks& operator=(const Chunks&) = delete;

    void create(std::size_t k);
    void map(std::size_t k);
    void grant(std::size_t k);  ///< to the session's device
    void unmap(std::size_t k);
    void release(std::size_t k);
    /// create, map and grant.
    void make(std::size_t k);

    CUdeviceptr at(std::size_t k) const { return range_ + k * bytes_; }
    CUmemGenericAllocationHandle handle(std::size_t k) const { return handles_[k]; }
    std::uint64_t chunk_bytes() const { return bytes_; }

  private:
    const Driver& driver_;
    std::uint64_t bytes_;
    CUmemAllocationProp properties_{};
    CUmemAccessDesc access_{};
    CUdeviceptr range_ = 0;
    std::vector<CUmemGenericAllocationHandle> handles_;
    std::vector<bool> mapped_;
};

}  // namespace libswap::bench
