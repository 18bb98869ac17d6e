// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>

#include "microbench/hierarchy/prober.hpp"
#include "simgpu/device/cache_model.hpp"

namespace libswap::bench {

/// Answers as the kernels of device/gpu_prober would on a device with this hierarchy, without them.
class ModelProber final : public Prober {
  public:
    ModelProber(const simgpu::CacheProfile& profile, std::uint64_t bytes)
        : model_(profile, 1), bytes_(bytes) {}

    SweepResult sweep(const Sweep& sweep) override {
        model_.start_kernel();
        SweepResult result;
        std::uint64_t offset = 0;
        for (std::uint64_t k = 0; k < std::uint64_t{sweep.skip} + sweep.count; ++k) {
            const std::uint32_t cycles =
                load(sweep.path, sweep.start_bytes + offset, sweep.companion_bytes);
            offset += sweep.step_bytes;
            if (offset >= sweep.length_bytes) offset -= sweep.length_bytes;
            if (k < sweep.skip || cycles < sweep.threshold_cycles) continue;
            ++result.flagged;
            if (result.samples.size() < kMostSamples)
                result.samples.push_back({static_cast<std::uint32_t>(k - sweep.skip), cycles});
        }
        return result;
    }

    std::vector<std::uint32_t> probe(LoadPath path, std::span<const std::uint64_t> offsets,
                                     std::uint32_t companion_bytes) override {
        model_.start_kernel();
        std::vector<std::uint32_t> cycles;
        for (const std::uint64_t offset : offsets)
            cycles.push_back(load(path, offset, companion_bytes));
        return cycles;
    }

    std::uint64_t bytes() const override { return bytes_; }
    const std::string& error() const override { return error_; }
    std::uint64_t loads() const { return loads_; }

  private:
    static constexpr std::uint64_t kBase = std::uint64_t{1} << 40;

    std::uint32_t load(LoadPath path, std::uint64_t offset, std::uint32_t companion_bytes) {
        const auto of_model = static_cast<simgpu::LoadPath>(path);
        ++loads_;
        if (companion_bytes != 0) {
            const std::uint64_t companion = kBase + (offset ^ companion_bytes);
            model_.load({&companion, 1}, of_model, 0);
        }
        const std::uint64_t address = kBase + offset;
        return model_.load({&address, 1}, of_model, 0);
    }

    simgpu::CacheModel model_;
    std::uint64_t bytes_;
    std::string error_;
    std::uint64_t loads_ = 0;
};

}  // namespace libswap::bench
