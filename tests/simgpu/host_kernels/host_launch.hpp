// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "simgpu/host_kernels/named_kernel.hpp"

/// Launches of named kernels on host memory, with parameters laid out as PyTorch's launches have
/// them.
namespace simgpu {

using Bytes = std::vector<std::byte>;

template <typename T>
void put(Bytes& bytes, std::size_t at, const T& value) {
    if (bytes.size() < at + sizeof(T)) bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
}

template <typename T>
Bytes value(const T& x) {
    Bytes bytes;
    put(bytes, 0, x);
    return bytes;
}

/// Runs the kernel on host memory. False where its name is not known or its form not built.
inline bool run(const char* name, std::vector<Bytes> parameters, std::uint32_t grid = 1,
                std::uint32_t grid_y = 1, std::uint32_t block = 1) {
    const NamedKernel kernel = find_named_kernel(parse_kernel_name(name));
    if (!kernel) return false;
    double flops = 0;
    double bytes = 0;
    SimgpuHostLaunch launch{};
    launch.kernel_name = name;
    launch.grid[0] = grid;
    launch.grid[1] = grid_y;
    launch.grid[2] = 1;
    launch.block[0] = block;
    launch.span = [](const SimgpuHostLaunch*, std::uint64_t va, std::size_t, int) {
        return reinterpret_cast<void*>(va);
    };
    launch.flops = &flops;
    launch.bytes = &bytes;
    std::vector<std::span<const std::byte>> spans(parameters.begin(), parameters.end());
    return kernel(NamedLaunch(launch, spans));
}

inline Bytes pointers(std::initializer_list<const void*> list) {
    Bytes bytes;
    for (const void* pointer : list) put(bytes, bytes.size(), pointer);
    return bytes;
}

/// at::OffsetCalculator: sizes, and per dimension a stride in bytes for each tensor.
inline void put_offsets(Bytes& bytes, std::size_t at, const std::vector<std::uint32_t>& sizes,
                        const std::vector<std::vector<std::uint32_t>>& strides,
                        std::size_t tensors) {
    constexpr std::size_t kDims = 25;
    bytes.resize(at + 4 + kDims * 12 + kDims * 4 * tensors);
    put(bytes, at, static_cast<std::int32_t>(sizes.size()));
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        put(bytes, at + 4 + 12 * d, sizes[d]);
        for (std::size_t t = 0; t < tensors; ++t)
            put(bytes, at + 4 + kDims * 12 + (d * tensors + t) * 4, strides[d][t]);
    }
}

}  // namespace simgpu
