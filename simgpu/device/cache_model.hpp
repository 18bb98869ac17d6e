// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Caches and translations as loads see them: which level answers, and after how many cycles. Holds
// no data.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "simgpu/device/cache_profile.hpp"

namespace simgpu {

/// Tags of one cache. Empty places of a set are filled before anything is replaced.
/// One thread at a time.
class CacheTags {
  public:
    CacheTags(const CacheShape& shape, std::uint32_t sectors, std::uint64_t seed);

    /// Looks up the sector of a line, and brings it in. Whether it was there.
    bool access(std::uint64_t line, std::uint32_t sector = 0);
    void clear();

    std::uint32_t set_of(std::uint64_t line) const;

  private:
    struct Way {
        std::uint64_t line = 0;
        std::uint64_t used = 0;     ///< when it was used last, or came (Fifo); 0: empty
        std::uint64_t sectors = 0;  ///< which of them are there
    };

    std::uint32_t victim(std::uint32_t set);
    void touch(std::uint32_t set, std::uint32_t way, bool is_new);

    CacheShape shape_;
    std::uint32_t index_bits_ = 0;
    std::uint64_t all_sectors_ = 1;
    std::uint64_t clock_ = 0;
    std::vector<Way> ways_;
    /// Per set, a bit per inner node of the tree over its ways, by the way it splits before.
    std::vector<std::uint8_t> right_;
    std::minstd_rand random_;
};

/// The hierarchy of one device. One thread at a time.
class CacheModel {
  public:
    CacheModel(const CacheProfile& profile, std::uint32_t sm_count);

    /// What is per SM is empty afterwards, as when a kernel starts.
    void start_kernel();

    /// One load by a warp: the cycles until the last of its lanes' bytes are there. Lanes that read
    /// from one sector read it once.
    std::uint32_t load(std::span<const std::uint64_t> addresses, LoadPath path, std::uint32_t sm);

    const CacheProfile& profile() const { return profile_; }

  private:
    double one_load(std::uint64_t address, LoadPath path, std::uint32_t sm);
    double translate(std::uint64_t address);
    double noisy(double cycles);

    CacheProfile profile_;
    std::uint32_t sm_count_;
    std::uint64_t least_sector_bytes_;
    /// Per level: one for the device, or one per SM, made when first used.
    std::vector<std::vector<std::unique_ptr<CacheTags>>> caches_;
    std::vector<CacheTags> tlbs_;
    std::minstd_rand random_;
    std::normal_distribution<double> normal_;
};

}  // namespace simgpu
