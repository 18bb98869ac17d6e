// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include <tsl/robin_map.h>

#include "runtime/device.hpp"
#include "runtime/engine.hpp"

namespace libswap {

struct Engine::Impl {
    static constexpr std::size_t kMaxDevices = 64;

    Impl(const Driver& driver, const Config& config) : driver(driver), config(config) {}

    const Driver& driver;
    const Config& config;
    std::unique_ptr<EventLog> log;
    PassedThroughSource passed_through = nullptr;

    /// A device is looked at once, by the first allocation or question about its memory.
    std::array<std::atomic<Device*>, kMaxDevices> devices{};
    std::array<std::atomic<bool>, kMaxDevices> passes_through{};
    std::mutex open_mutex;
    std::atomic<std::uint32_t> context_epoch{1};
    std::atomic<bool> ended{false};

    struct External {
        std::uint64_t bytes = 0;
        Device* device = nullptr;
    };
    std::mutex external_mutex;
    tsl::robin_map<CUdeviceptr, External> external;

    /// The device of the current context, if it is swapped; looks at it the first time where
    /// `look`. Gives the context too.
    Device* current(CUcontext* context, bool look) noexcept;
    /// The device that an address of ours belongs to, or null.
    Device* owner(std::uint64_t address) noexcept;

    /// Around a call that may end a device's primary context (`always`: that does).
    CUresult end_primary(CUdevice ordinal, bool always, RealCall real);

    template <typename Visit>
    void for_each_device(Visit&& visit) {
        for (auto& slot : devices)
            if (Device* device = slot.load(std::memory_order_acquire)) visit(*device);
    }

  private:
    Device* open(CUdevice ordinal, CUcontext context) noexcept;
};

/// This thread's operation, empty.
Operation& fresh_operation() noexcept;

std::uint64_t mix_signature(std::uint64_t hash, std::uint64_t value) noexcept;

/// Runs a hook's body: no exception gets out of it.
template <typename Body>
CUresult guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

}  // namespace libswap
