// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// torch.gather and torch.scatter, also with a reduction (torch 2.15's ScatterGatherKernel.cu): one
// lambda whose captures its name lists.

#include <cmath>
#include <cstring>
#include <string_view>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/number_ops.hpp"
#include "simgpu/host_kernels/torch/offsets.hpp"
#include "simgpu/host_kernels/torch/scalar_type.hpp"

namespace simgpu::torch {
namespace {

constexpr std::size_t aligned(std::size_t offset) { return (offset + 7) / 8 * 8; }

/// What the lambda has captured behind its offsets: (index, its bound, the operation, out, elements
/// from index to index, elements in all, then the source or, when filling, the value).
struct Captures {
    std::uint64_t index;
    std::int64_t bound;
    std::uint64_t out;
    std::int64_t stride;
    std::size_t last;
};

Captures captures(const NamedLaunch& launch, std::size_t tensors) {
    const std::size_t at = aligned(Offsets::bytes_of(tensors));
    return {launch.get<std::uint64_t>(1, at), launch.get<std::int64_t>(1, at + 8),
            launch.get<std::uint64_t>(1, at + 24), launch.get<std::int64_t>(1, at + 32), at + 48};
}

/// Moves `element` bytes per index: from the source's place by index to the output's (gather), or
/// from the source's to the output's place by index.
bool move(const NamedLaunch& launch, std::uint32_t element, bool scatters) {
    Offsets offsets;
    if (!offsets.read(launch.parameter(1), 3)) return false;
    const std::uint64_t count = launch.get<std::uint32_t>(0);
    const Captures c = captures(launch, 3);
    if (c.bound <= 0 || c.stride < 0 || count == 0) return count == 0;
    const auto reach = static_cast<std::uint64_t>((c.bound - 1) * c.stride) * element;
    const auto src_va = launch.get<std::uint64_t>(1, c.last);
    const std::uint64_t out_bytes = offsets.extent(0, count, element) + (scatters ? reach : 0);
    const std::uint64_t src_bytes = offsets.extent(1, count, element) + (scatters ? 0 : reach);
    auto* out = launch.write<std::byte>(c.out, out_bytes);
    const auto* src = launch.read<std::byte>(src_va, src_bytes);
    const auto* index = launch.read<std::byte>(c.index, offsets.extent(2, count, 8));
    if (out == nullptr || src == nullptr || index == nullptr) return true;
    offsets.for_each(count, [&](std::uint64_t, const auto& at) {
        std::int64_t i = 0;
        std::memcpy(&i, index + at[2], sizeof(i));
        if (i < 0 || i >= c.bound) return;  // traps on a device
        const auto by_index = static_cast<std::uint64_t>(i * c.stride) * element;
        std::memcpy(out + at[0] + (scatters ? by_index : 0),
                    src + at[1] + (scatters ? 0 : by_index), element);
    });
    launch.cost(0, static_cast<double>(count) * (8 + 2.0 * element));
    return true;
}

/// Combines the source's elements with the output's places by index, one after the other.
bool reduce(const NamedLaunch& launch, ScalarType type, Combine how) {
    Offsets offsets;
    if (!offsets.read(launch.parameter(1), 3)) return false;
    const std::uint64_t count = launch.get<std::uint32_t>(0);
    const Captures c = captures(launch, 3);
    if (c.bound <= 0 || c.stride < 0 || count == 0) return count == 0;
    const std::uint32_t width = size_of(type);
    const auto reach = static_cast<std::uint64_t>((c.bound - 1) * c.stride) * width;
    auto* out = launch.write<std::byte>(c.out, offsets.extent(0, count, width) + reach);
    const auto* src = launch.read<std::byte>(launch.get<std::uint64_t>(1, c.last),
                                             offsets.extent(1, count, width));
    const auto* index = launch.read<std::byte>(c.index, offsets.extent(2, count, 8));
    if (out == nullptr || src == nullptr || index == nullptr) return true;
    offsets.for_each(count, [&](std::uint64_t, const auto& at) {
        std::int64_t i = 0;
        std::memcpy(&i, index + at[2], sizeof(i));
        if (i < 0 || i >= c.bound) return;  // traps on a device
        std::byte* to = out + at[0] + static_cast<std::uint64_t>(i * c.stride) * width;
        store(type, to, combine(how, load(type, to), load(type, src + at[1])));
    });
    launch.cost(static_cast<double>(count), static_cast<double>(count) * (8 + 3.0 * width));
    return true;
}

Combine combination(const KernelName& name) {
    for (const auto& [text, how] :
         {std::pair<std::string_view, Combine>{"::ReduceAdd>", Combine::Add},
          {"::ReduceMean>", Combine::Add},
          {"::ReduceMultiply>", Combine::Multiply},
          {"::ReduceMaximum>", Combine::Maximum},
          {"::ReduceMinimum>", Combine::Minimum}}) {
        if (name.mentions(text)) return how;
    }
    return Combine::Set;
}

NamedKernel find_scatter_reduce(const KernelName& name) {
    constexpr std::string_view kKernel = "_cuda_scatter_gather_internal_kernel<";
    const std::size_t at = name.full.find(kKernel);
    const Combine how = combination(name);
    if (at == std::string::npos || how == Combine::Set) return {};
    // <scatters, element, index>
    const auto types = split_list(inside_bracket(name.full, at + kKernel.size() - 1));
    if (types.size() != 3 || types[0] != "true" || types[2] != "long") return {};
    const ScalarType type = scalar_type(types[1]);
    if (type == ScalarType::Unknown) return {};
    return [=](const NamedLaunch& launch) { return reduce(launch, type, how); };
}

/// Sets the output's places by index to one value.
bool fill(const NamedLaunch& launch, std::uint32_t element) {
    Offsets offsets;
    if (!offsets.read(launch.parameter(1), 2)) return false;
    const std::uint64_t count = launch.get<std::uint32_t>(0);
    const Captures c = captures(launch, 2);
    const auto lambda = launch.parameter(1);
    if (c.bound <= 0 || c.stride < 0 || c.last + element > lambda.size()) return count == 0;
    const auto reach = static_cast<std::uint64_t>((c.bound - 1) * c.stride) * element;
    auto* out = launch.write<std::byte>(c.out, offsets.extent(0, count, element) + reach);
    const auto* index = launch.read<std::byte>(c.index, offsets.extent(1, count, 8));
    if (out == nullptr || index == nullptr) return true;
    offsets.for_each(count, [&](std::uint64_t, const auto& at) {
        std::int64_t i = 0;
        std::memcpy(&i, index + at[1], sizeof(i));
        if (i < 0 || i >= c.bound) return;  // traps on a device
        std::memcpy(out + at[0] + static_cast<std::uint64_t>(i * c.stride) * element,
                    lambda.data() + c.last, element);
    });
    launch.cost(0, static_cast<double>(count) * (8 + element));
    return true;
}

std::uint32_t element_bytes(const KernelName& name) {
    for (const auto& [text, bytes] :
         {std::pair<std::string_view, std::uint32_t>{"OpaqueType<1>", 1},
          {"OpaqueType<2>", 2},
          {"OpaqueType<4>", 4},
          {"OpaqueType<8>", 8}}) {
        if (name.mentions(text)) return bytes;
    }
    return 0;
}

}  // namespace

NamedKernel find_scatter_gather(const KernelName& name) {
    const std::uint32_t bytes = element_bytes(name);
    if (name.base != "_scatter_gather_elementwise_kernel") return {};
    if (NamedKernel kernel = find_scatter_reduce(name)) return kernel;
    if (!name.mentions("TensorAssign") || !name.mentions(", long>::operator()") || bytes == 0)
        return {};
    if (name.mentions("_cuda_scatter_fill_internal_kernel<"))
        return [bytes](const NamedLaunch& launch) { return fill(launch, bytes); };
    const bool scatters = name.mentions("_cuda_scatter_gather_internal_kernel<true");
    return [=](const NamedLaunch& launch) { return move(launch, bytes, scatters); };
}

}  // namespace simgpu::torch
