// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <cstdint>

#include "simgpu/host_kernels/named_kernel.hpp"
#include "simgpu/host_kernels/torch/offsets.hpp"

namespace simgpu::torch {

/// What a reduction's one parameter holds behind the operation and the neutral element (torch
/// 2.15's ATen/native/cuda/Reduce.cuh): the launch's shape, offsets of the reduced and of the kept
/// dimensions, and addresses.
struct Reduction {
    Offsets reduced;
    /// Of the output and of the input.
    Offsets kept;
    std::uint32_t inputs = 0;
    std::uint32_t outputs = 0;
    std::uint64_t in = 0;
    std::array<std::uint64_t, 2> out{};
    /// Tensors that are written, 1 or 2. Offsets are those of the first.
    std::int32_t results = 1;

    /// `config`: where the shape begins. False for what lies there is none, or for one of several
    /// launches that share a reduction.
    bool read(const NamedLaunch& launch, std::size_t config) {
        // ReduceConfig: 14 ints, a flag, an int.
        const std::size_t input_calc = config + 64;
        const std::size_t output_calc = input_calc + Offsets::bytes_of(1);
        const std::size_t addresses = (output_calc + Offsets::bytes_of(2) + 7) / 8 * 8;
        const auto bytes = launch.parameter(0);
        if (bytes.size() < addresses + 64 || !reduced.read(bytes.subspan(input_calc), 1) ||
            !kept.read(bytes.subspan(output_calc), 2))
            return false;
        inputs = launch.get<std::uint32_t>(0, config + 4);
        outputs = launch.get<std::uint32_t>(0, config + 8);
        if (reduced.count() != inputs || kept.count() != outputs) return false;
        in = launch.get<std::uint64_t>(0, addresses);
        out = {launch.get<std::uint64_t>(0, addresses + 8),
               launch.get<std::uint64_t>(0, addresses + 16)};
        const bool accumulates = launch.get<std::uint8_t>(0, addresses + 56) != 0;
        const bool is_final = launch.get<std::uint8_t>(0, addresses + 57) != 0;
        results = launch.get<std::int32_t>(0, addresses + 60);
        return !accumulates && is_final;
    }

    const std::byte* read_input(const NamedLaunch& launch, std::uint32_t width) const {
        return launch.read<std::byte>(
            in, kept.extent(1, outputs, 0) + reduced.extent(0, inputs, width));
    }
    /// A result's tensor, whose elements are `width` bytes where those of the first are `first`.
    std::byte* write_output(const NamedLaunch& launch, std::size_t result, std::uint32_t width,
                            std::uint32_t first) const {
        return launch.write<std::byte>(out[result], kept.extent(0, outputs, first) / first * width);
    }
    void cost(const NamedLaunch& launch, std::uint32_t in_width, std::uint32_t out_width) const {
        const double all = static_cast<double>(inputs) * outputs;
        launch.cost(all, all * in_width + static_cast<double>(outputs) * out_width);
    }
};

}  // namespace simgpu::torch
