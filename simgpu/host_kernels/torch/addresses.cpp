// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// PyTorch passes structs with more room than a launch uses. What the rest holds lay on the stack
// before: often addresses of tensors that the launch has nothing to do with, others in each run.
// The layouts are those of torch 2.15: TensorInfo.cuh, OffsetCalculator.cuh, IntegerDivider.cuh,
// Shape.cu, Reduce.cuh, ForeachReduceOp.cu.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/offsets.hpp"

namespace simgpu::torch {
namespace {

using Bytes = std::span<const std::byte>;

template <typename T>
T value_at(Bytes bytes, std::size_t offset) {
    T value{};
    if (offset + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

bool names(std::string_view type, std::string_view part) {
    return type.find(part) != std::string_view::npos;
}

/// A size and what divides by it: at::cuda::detail::IntDivider<unsigned int>.
bool is_divider(Bytes bytes, std::size_t offset) {
    const auto divisor = value_at<std::uint32_t>(bytes, offset);
    const auto shift = value_at<std::uint32_t>(bytes, offset + 8);
    if (divisor == 0 || divisor > 0x7fffffff || shift != std::bit_width(divisor - 1)) return false;
    const std::uint64_t factor =
        (std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - divisor) / divisor + 1;
    return value_at<std::uint32_t>(bytes, offset + 4) == static_cast<std::uint32_t>(factor);
}

/// Whether an OffsetCalculator lies there. One without dimensions is not told from other zeros.
bool is_calculator(Bytes bytes, std::size_t offset) {
    const auto dims = value_at<std::uint32_t>(bytes, offset);
    if (dims == 0 || dims > Offsets::kMostDims) return false;
    if (offset + Offsets::bytes_of(1) > bytes.size()) return false;
    for (std::size_t d = 0; d < dims; ++d) {
        if (!is_divider(bytes, offset + 4 + 12 * d)) return false;
    }
    return true;
}

/// Takes out what lies in calculators of offsets. They hold 32-bit numbers alone, for one tensor or
/// more: what the kernel captured besides begins with an address.
void take_out_calculators(Bytes bytes, std::vector<std::uint32_t>& offsets) {
    for (std::size_t at = 0; at + Offsets::bytes_of(1) <= bytes.size(); at += 4) {
        if (!is_calculator(bytes, at)) continue;
        std::size_t end = at + Offsets::bytes_of(1);
        for (std::size_t tensors = 1; tensors <= Offsets::kMostTensors; ++tensors) {
            const std::size_t behind = (at + Offsets::bytes_of(tensors) + 7) / 8 * 8;
            if (std::find(offsets.begin(), offsets.end(), behind) != offsets.end()) end = behind;
        }
        std::erase_if(offsets,
                      [&](std::uint32_t offset) { return offset + 8 > at && offset < end; });
        at = end - 4;
    }
}

/// A reduction's struct ends with six addresses (input, two outputs, three of temporary memory), 8
/// bytes, two flags and the number of outputs.
bool in_reduction(Bytes bytes, std::size_t offset) {
    for (const std::size_t tail : {64U, 72U}) {
        if (bytes.size() < tail) return false;
        const std::size_t first = bytes.size() - tail;
        const auto outputs = value_at<std::int32_t>(bytes, first + 60);
        if (outputs != 1 && outputs != 2) continue;
        const bool unused = outputs == 1 && offset == first + 16;
        return offset >= first && offset < first + 48 && !unused;
    }
    return true;
}

}  // namespace

std::vector<std::uint32_t> addresses_in(const KernelName& name, std::size_t parameter,
                                        std::span<const std::byte> bytes, const std::uint32_t* grid,
                                        std::vector<std::uint32_t> offsets) {
    const std::string_view type = parameter < name.parameters.size()
                                      ? std::string_view(name.parameters[parameter])
                                      : std::string_view();
    const auto keep = [&](auto&& holds) {
        std::erase_if(offsets, [&](std::uint32_t offset) { return !holds(offset); });
    };
    // Larger ones are structs.
    if (bytes.size() <= sizeof(std::uint64_t)) return offsets;
    if (parameter == 0 && name.base == "multi_tensor_apply_kernel") {
        keep([&](std::size_t offset) { return lists_address(name, bytes, grid[0], offset); });
    } else if (parameter == 0 && name.base == "reduce_kernel") {
        keep([&](std::size_t offset) { return in_reduction(bytes, offset); });
    } else if (names(type, "CatArrInputTensorMetadata")) {
        keep([&](std::size_t offset) { return offset / 8 < grid[1]; });
    } else if (names(type, "TensorListAddresses")) {
        keep([&](std::size_t offset) { return offset / 8 < grid[0]; });
    } else if (names(type, "TensorSizeStride") || names(type, "TensorDims<")) {
        offsets.clear();
    } else if (type.starts_with("at::cuda::detail::TensorInfo<") || names(type, "NonZeroOp<")) {
        keep([](std::size_t offset) { return offset == 0; });
    } else {
        take_out_calculators(bytes, offsets);
    }
    return offsets;
}

}  // namespace simgpu::torch
