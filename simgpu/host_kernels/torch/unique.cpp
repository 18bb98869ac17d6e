// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// torch.unique and what else works on runs of equal elements (torch 2.15's UniqueCub.cu, CCCL
// 3.2): flags where a run begins, elements once each, lengths of runs.

#include <cstring>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"

namespace simgpu::torch {
namespace {

/// Zeros are equal, a NaN equals nothing.
bool differ(ScalarType type, const std::byte* a, const std::byte* b) {
    if (type == ScalarType::Long) return std::memcmp(a, b, sizeof(std::int64_t)) != 0;
    return load(type, a) != load(type, b);
}

/// Where runs of equal elements begin.
std::vector<std::uint64_t> run_starts(ScalarType type, const std::byte* in, std::uint64_t number) {
    const std::uint32_t width = size_of(type);
    std::vector<std::uint64_t> starts;
    for (std::uint64_t i = 0; i < number; ++i)
        if (i == 0 || differ(type, in + i * width, in + (i - 1) * width)) starts.push_back(i);
    return starts;
}

/// (number, in, flags): whether an element differs from the one before.
bool flag_starts(const NamedLaunch& launch, ScalarType type) {
    const auto number = launch.get<std::uint64_t>(0);
    const std::uint32_t width = size_of(type);
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(1), number * width);
    auto* out = launch.write<std::int32_t>(launch.get<std::uint64_t>(2), number);
    if (in == nullptr || out == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i)
        out[i] = i > 0 && differ(type, in + i * width, in + (i - 1) * width) ? 1 : 0;
    launch.cost(static_cast<double>(number), static_cast<double>(number * (width + 4)));
    return true;
}

/// (number, in, indices, out): out[indices] = in.
bool scatter(const NamedLaunch& launch) {
    const auto number = launch.get<std::uint64_t>(0);
    const auto* in = launch.read<std::int64_t>(launch.get<std::uint64_t>(1), number);
    const auto* indices = launch.read<std::int64_t>(launch.get<std::uint64_t>(2), number);
    auto* out = launch.write<std::int64_t>(launch.get<std::uint64_t>(3), number);
    if (in == nullptr || indices == nullptr || out == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        if (indices[i] >= 0 && static_cast<std::uint64_t>(indices[i]) < number)
            out[indices[i]] = in[i];
    }
    launch.cost(0, 24.0 * static_cast<double>(number));
    return true;
}

/// Puts the first element of each run into parameter `out`, the number of runs into `found`.
bool keep_starts(const NamedLaunch& launch, ScalarType type, const std::byte* in,
                 const std::vector<std::uint64_t>& starts, std::size_t out, std::size_t found) {
    const std::uint32_t width = size_of(type);
    auto* number = launch.write<std::int64_t>(launch.get<std::uint64_t>(found), 1);
    if (number == nullptr) return false;
    *number = static_cast<std::int64_t>(starts.size());
    const auto va = launch.get<std::uint64_t>(out);
    if (va == 0) return true;  // only their places are wanted
    auto* kept = launch.write<std::byte>(va, starts.size() * width);
    if (kept == nullptr) return false;
    for (std::size_t i = 0; i < starts.size(); ++i)
        std::memcpy(kept + i * width, in + starts[i] * width, width);
    return true;
}

/// (in, flags, out, number of those selected, state, two operations, number, ...): elements once.
bool unique(const NamedLaunch& launch, ScalarType type) {
    const std::uint64_t number = launch.get<std::uint32_t>(7);
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(0), number * size_of(type));
    if (in == nullptr) return true;
    keep_starts(launch, type, in, run_starts(type, in, number), 2, 3);
    launch.cost(static_cast<double>(number), 2.0 * static_cast<double>(number * size_of(type)));
    return true;
}

/// (keys, first element, keys out, places out, number of them, state, equality, number, ...)
bool unique_places(const NamedLaunch& launch, ScalarType type) {
    const auto number = launch.get<std::uint64_t>(7);
    const auto first = launch.get<std::int64_t>(1);
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(0), number * size_of(type));
    if (in == nullptr) return true;
    const auto starts = run_starts(type, in, number);
    auto* places = launch.write<std::int64_t>(launch.get<std::uint64_t>(3), starts.size());
    if (places == nullptr || !keep_starts(launch, type, in, starts, 2, 4)) return true;
    for (std::size_t i = 0; i < starts.size(); ++i)
        places[i] = first + static_cast<std::int64_t>(starts[i]);
    launch.cost(static_cast<double>(number), static_cast<double>(number * (size_of(type) + 8)));
    return true;
}

/// (in, elements out, ones, lengths out, number of runs, state, first tile, equality,
/// operation, number, ...)
bool run_lengths(const NamedLaunch& launch, ScalarType type) {
    const std::uint64_t number = launch.get<std::uint32_t>(9);
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(0), number * size_of(type));
    if (in == nullptr) return true;
    const auto starts = run_starts(type, in, number);
    auto* lengths = launch.write<std::int64_t>(launch.get<std::uint64_t>(3), starts.size());
    if (lengths == nullptr || !keep_starts(launch, type, in, starts, 1, 4)) return true;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::uint64_t end = i + 1 < starts.size() ? starts[i + 1] : number;
        lengths[i] = static_cast<std::int64_t>(end - starts[i]);
    }
    launch.cost(static_cast<double>(number), static_cast<double>(number * (size_of(type) + 8)));
    return true;
}

/// (state, tiles, number of what is found): what is before.
bool begin(const NamedLaunch& launch) {
    if (auto* found = launch.write<std::int64_t>(launch.get<std::uint64_t>(2), 1)) *found = 0;
    return true;
}

}  // namespace

NamedKernel find_unique(const KernelName& name) {
    const auto& types = name.parameters;
    const auto bind = [&](std::size_t in, auto work) -> NamedKernel {
        const ScalarType type = element_type(types[in]);
        if (type == ScalarType::Unknown) return {};
        return [=](const NamedLaunch& launch) { return work(launch, type); };
    };
    if (name.base == "DeviceCompactInitKernel" && types.size() == 3 && types[2] == "long*")
        return begin;
    if (name.base == "scatter_kernel" && name.mentions("at::native::internal::")) return scatter;
    if (name.base == "adjacent_difference_kernel" && types.size() == 3) return bind(1, flag_starts);
    if (name.base == "DeviceSelectSweepKernel" && types.size() == 11 &&
        types[1].find("NullType") != std::string::npos &&
        types[6].find("equal_to<void>") != std::string::npos && types[3] == "long*")
        return bind(0, unique);
    if (name.base == "DeviceUniqueByKeySweepKernel" && types.size() >= 9 && types[3] == "long*" &&
        types[1].find("counting_iterator<long") != std::string::npos)
        return bind(0, unique_places);
    if (name.base == "DeviceReduceByKeyKernel" && types.size() >= 10 && types[3] == "long*" &&
        types[4] == "long*" && types[2].find("constant_iterator<long") != std::string::npos)
        return bind(0, run_lengths);
    return {};
}

}  // namespace simgpu::torch
