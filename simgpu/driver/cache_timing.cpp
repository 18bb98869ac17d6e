// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/cache_timing.hpp"

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/device/cache_model.hpp"
#include "simgpu/driver/environment.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/log.hpp"

namespace simgpu::driver {

namespace {

constexpr double kDefaultClockKhz = 1.41e6;

struct DeviceCaches {
    DeviceCaches(const CacheProfile& profile, std::uint32_t sm_count) : model(profile, sm_count) {}
    std::mutex mutex;  // held for one load
    CacheModel model;
};

struct Setup {
    double cycles_per_ns = 1;
    std::vector<std::unique_ptr<DeviceCaches>> devices;
};

/// Leaked, as all that cuInit makes.
Setup* g_setup = nullptr;

class Timed final : public TimedKernelMemory {
  public:
    Timed(KernelMemory& memory, DeviceCaches& caches, double cycles_per_ns)
        : memory_(memory),
          caches_(caches),
          cycles_per_ns_(cycles_per_ns),
          started_ns_(machine().now_ns()) {
        std::lock_guard lock(caches_.mutex);
        caches_.model.start_kernel();
    }

    std::byte* page(std::uint64_t va, bool write) override { return memory_.page(va, write); }

    std::uint32_t load_cycles(std::span<const std::uint64_t> addresses, exec::LoadRoute route,
                              std::uint32_t sm) override {
        const LoadPath path = route == exec::LoadRoute::Global     ? LoadPath::Global
                              : route == exec::LoadRoute::ReadOnly ? LoadPath::ReadOnly
                                                                   : LoadPath::Data;
        std::lock_guard lock(caches_.mutex);
        const std::uint32_t cycles = caches_.model.load(addresses, path, sm);
        waited_cycles_ += cycles;
        return cycles;
    }

    std::uint64_t time_ns(std::uint64_t cycles) override {
        return started_ns_ +
               static_cast<std::uint64_t>(static_cast<double>(cycles) / cycles_per_ns_);
    }

    double waited_ns() const override {
        return static_cast<double>(waited_cycles_) / cycles_per_ns_;
    }

  private:
    KernelMemory& memory_;
    DeviceCaches& caches_;
    double cycles_per_ns_;
    std::uint64_t started_ns_;
    std::uint64_t waited_cycles_ = 0;
};

}  // namespace

void set_up_cache_timing(const MachineProfile& machine_profile, int devices) {
    const char* wanted = std::getenv("SIMGPU_CACHES");
    if (wanted == nullptr || *wanted == '\0' || std::string_view(wanted) == "0") return;
    std::vector<std::string> directories;
    for (const std::string& directory : profile_directories())
        directories.push_back(directory + "/caches");
    const auto profile = load_cache_profile(wanted, directories);
    if (!profile) {
        say("SIMGPU_CACHES: {}, loads take no time", profile.error());
        return;
    }
    auto setup = std::make_unique<Setup>();
    const double khz = machine_profile.clock_khz > 0 ? machine_profile.clock_khz : kDefaultClockKhz;
    setup->cycles_per_ns = khz * 1e-6;
    for (int device = 0; device < devices; ++device) {
        setup->devices.push_back(std::make_unique<DeviceCaches>(
            *profile, static_cast<std::uint32_t>(machine_profile.sm_count)));
    }
    g_setup = setup.release();
    exec::set_timed_loads(true);
}

std::unique_ptr<TimedKernelMemory> timed_memory(KernelMemory& memory, int device) {
    if (g_setup == nullptr) return nullptr;
    return std::make_unique<Timed>(memory, *g_setup->devices[static_cast<std::size_t>(device)],
                                   g_setup->cycles_per_ns);
}

}  // namespace simgpu::driver
