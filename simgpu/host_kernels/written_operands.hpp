// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What is known by name of kernels that come as machine code only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simgpu/host_kernels/kernel_name.hpp"

namespace simgpu {

/// What the words of a written operand are taken for.
enum class FillType : std::uint8_t { Float, Double, Half, BFloat, Integer, Long, Byte };

std::uint32_t bytes_of(FillType type);

/// A pointer among a launch's parameters.
struct PointerWord {
    std::uint32_t parameter;  ///< Index of the parameter that holds it.
    std::uint32_t offset;     ///< From the start of that parameter.
};

/// Which pointers a kernel writes through, and how far.
struct WrittenOperands {
    /// By pointer, in the order of the parameters.
    std::vector<bool> written;
    /// Reads what it writes, or may do so.
    bool reads_written = true;
    FillType type = FillType::Float;
    /// Elements that each operand has, 0 where the launch does not tell.
    std::uint64_t elements = 0;
    /// Of an element of any operand, at most.
    std::uint32_t widest_bytes = 4;
};

/// `parameters`: the launch's parameter blocks, one by one.
WrittenOperands written_operands(const KernelName& name, std::span<const PointerWord> pointers,
                                 std::span<const std::span<const std::byte>> parameters);

}  // namespace simgpu
