// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Kernels of PyTorch that come as machine code only and whose work is done natively, recognised by
// their names. Which ones: docs/pytorch.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

#include "simgpu/driver/host_kernel.h"
#include "simgpu/host_kernels/kernel_name.hpp"

namespace simgpu {

/// One launch as a named kernel's work sees it.
class NamedLaunch {
  public:
    NamedLaunch(const SimgpuHostLaunch& launch,
                std::span<const std::span<const std::byte>> parameters)
        : launch_(launch), parameters_(parameters) {}
    NamedLaunch(const NamedLaunch&) = delete;

    std::size_t count() const { return parameters_.size(); }
    std::span<const std::byte> parameter(std::size_t index) const {
        return index < parameters_.size() ? parameters_[index] : std::span<const std::byte>();
    }
    /// A value inside a parameter, zero where the parameter is too short for it.
    template <typename T>
    T get(std::size_t index, std::size_t offset = 0) const {
        T value{};
        const auto bytes = parameter(index);
        if (offset + sizeof(T) <= bytes.size())
            std::memcpy(&value, bytes.data() + offset, sizeof(T));
        return value;
    }

    /// Host pointer to `elements` elements at device address `va`; null where a byte of them is not
    /// mapped or not granted: the launch has failed then.
    template <typename T>
    const T* read(std::uint64_t va, std::uint64_t elements) const {
        return static_cast<const T*>(span(va, elements * sizeof(T), false));
    }
    template <typename T>
    T* write(std::uint64_t va, std::uint64_t elements) const {
        return static_cast<T*>(span(va, elements * sizeof(T), true));
    }

    /// For the time model.
    void cost(double flops, double bytes) const {
        *launch_.flops += flops;
        *launch_.bytes += bytes;
    }
    const std::uint32_t* grid() const { return launch_.grid; }
    const std::uint32_t* block() const { return launch_.block; }

  private:
    void* span(std::uint64_t va, std::size_t bytes, bool write) const {
        return launch_.span(&launch_, va, bytes, write ? 1 : 0);
    }

    const SimgpuHostLaunch& launch_;
    std::span<const std::span<const std::byte>> parameters_;
};

/// The work of one launch. False: not in this form; nothing was written then.
using NamedKernel = std::function<bool(const NamedLaunch&)>;

/// For kernels that only prepare what another one here does without, or that only check.
inline bool do_nothing(const NamedLaunch& /*launch*/) { return true; }

/// What does the work of the kernel, empty where nothing does. @thread any
NamedKernel find_named_kernel(const KernelName& name);

}  // namespace simgpu
