// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What programs index and count by, with true results: arange, the number and places of what is not
// zero, and indexing (torch 2.15's RangeFactories.cu, Nonzero.cu and IndexKernel.cu, and the
// kernels of CUB that they use).

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/offsets.hpp"
#include "simgpu/host_kernels/torch/scalar_type.hpp"

namespace simgpu::torch {
namespace {

// In the order in which arange's lambdas are numbered.
constexpr std::array kRangeTypes{ScalarType::Byte,  ScalarType::Char,  ScalarType::Int,
                                 ScalarType::Long,  ScalarType::Short, ScalarType::Double,
                                 ScalarType::Float, ScalarType::Half,  ScalarType::BFloat16};

/// (count, {start, step}, out); the two are of 8 bytes, but for floats and halves floats.
bool arange(const NamedLaunch& launch, ScalarType type) {
    const auto count = launch.get<std::uint32_t>(0);
    auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(2), count * size_of(type));
    if (out == nullptr) return true;
    const bool floats =
        type == ScalarType::Float || type == ScalarType::Half || type == ScalarType::BFloat16;
    for (std::uint32_t i = 0; i < count; ++i) {
        double value = 0;
        if (floats)
            value = static_cast<double>(launch.get<float>(1)) +
                    static_cast<double>(launch.get<float>(1, 4)) * i;
        else if (type == ScalarType::Double)
            value = launch.get<double>(1) + launch.get<double>(1, 8) * i;
        else
            value = static_cast<double>(launch.get<std::int64_t>(1) +
                                        launch.get<std::int64_t>(1, 8) * std::int64_t{i});
        store(type, out + std::size_t{i} * size_of(type), value);
    }
    launch.cost(2.0 * count, static_cast<double>(count) * size_of(type));
    return true;
}

NamedKernel find_arange(const KernelName& name) {
    constexpr std::string_view kBehind = "}::operator()() const::{lambda(long)";
    const std::size_t end = name.full.find(kBehind);
    const std::size_t start = end == std::string::npos ? end : name.full.rfind('#', end);
    if (start == std::string::npos) return {};
    const auto number = std::strtoul(name.full.c_str() + start + 1, nullptr, 10);
    if (number < 1 || number > kRangeTypes.size()) return {};
    const ScalarType type = kRangeTypes[number - 1];
    return
        [type](const NamedLaunch& launch) { return launch.count() == 3 && arange(launch, type); };
}

/// The element type of the flags in a kernel's name; Unknown where it has none.
ScalarType type_of_flags(const KernelName& name) {
    constexpr std::string_view kFlags = "NonZeroOp<";
    const std::size_t at = name.full.find(kFlags);
    if (at == std::string::npos) return ScalarType::Unknown;
    return scalar_type(inside_bracket(name.full, at + kFlags.size() - 1));
}

const std::byte* read_flags(const NamedLaunch& launch, std::size_t parameter, ScalarType type,
                            std::uint64_t count) {
    return launch.read<std::byte>(launch.get<std::uint64_t>(parameter), count * size_of(type));
}

/// (flags, partial counts, number, how blocks share it, ...), or as below. All is done by the first
/// block.
bool count_flags(const NamedLaunch& launch, ScalarType type, bool partial) {
    const auto number = launch.get<std::uint64_t>(2);
    const auto* flags = read_flags(launch, 0, type, number);
    const std::uint32_t blocks = partial ? launch.grid()[0] : 1;
    auto* out = launch.write<std::int32_t>(launch.get<std::uint64_t>(1), blocks);
    if (flags == nullptr || out == nullptr) return true;
    std::fill_n(out, blocks, 0);
    out[0] = partial ? 0 : launch.get<std::int32_t>(4);
    for (std::uint64_t i = 0; i < number; ++i) out[0] += load(type, flags + i * size_of(type)) != 0;
    launch.cost(static_cast<double>(number), static_cast<double>(number * size_of(type)));
    return true;
}

/// (counts, sum, number of them, plus, what is there already, ...)
bool add_counts(const NamedLaunch& launch) {
    const auto number = launch.get<std::uint32_t>(2);
    const auto* counts = launch.read<std::int32_t>(launch.get<std::uint64_t>(0), number);
    auto* sum = launch.write<std::int32_t>(launch.get<std::uint64_t>(1), 1);
    if (counts == nullptr || sum == nullptr) return true;
    std::int32_t all = launch.get<std::int32_t>(4);
    for (std::uint32_t i = 0; i < number; ++i) all += counts[i];
    *sum = all;
    return true;
}

/// (first index, flags, places, their number, state, two operations, number of flags, ...)
bool select_flagged(const NamedLaunch& launch, ScalarType type) {
    const auto number = launch.get<std::uint32_t>(7);
    const auto* flags = read_flags(launch, 1, type, number);
    auto* found = launch.write<std::int32_t>(launch.get<std::uint64_t>(3), 1);
    if (flags == nullptr || found == nullptr) return true;
    std::vector<std::int64_t> places;
    for (std::uint32_t i = 0; i < number; ++i)
        if (load(type, flags + std::size_t{i} * size_of(type)) != 0)
            places.push_back(launch.get<std::int64_t>(0) + i);
    *found = static_cast<std::int32_t>(places.size());
    auto* out = launch.write<std::int64_t>(launch.get<std::uint64_t>(2), places.size());
    if (out == nullptr) return true;
    std::copy(places.begin(), places.end(), out);
    launch.cost(static_cast<double>(number), static_cast<double>(number * size_of(type)) +
                                                 8.0 * static_cast<double>(places.size()));
    return true;
}

/// (state, number of tiles, number of places): what is before a selection.
bool select_nothing(const NamedLaunch& launch) {
    if (auto* found = launch.write<std::int32_t>(launch.get<std::uint64_t>(2), 1)) *found = 0;
    return true;
}

/// (indices, sizes, dimensions, number, number of those that are valid or null, what the others
/// become): flat indices become one per dimension, dimension by dimension.
bool write_indices(const NamedLaunch& launch) {
    const auto dims = launch.get<std::uint32_t>(2);
    const auto number = launch.get<std::uint64_t>(3);
    std::uint64_t valid = number;
    if (const auto total = launch.get<std::uint64_t>(4); total != 0) {
        const auto* there = launch.read<std::uint64_t>(total, 1);
        if (there == nullptr) return true;
        valid = std::min(valid, *there);
    }
    auto* indices = launch.write<std::int64_t>(launch.get<std::uint64_t>(0), number * dims);
    if (indices == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        std::int64_t flat = indices[i];
        for (std::uint32_t d = dims; d-- > 0;) {
            const auto size = std::max<std::int64_t>(launch.get<std::int64_t>(1, 8 * d), 1);
            indices[i + d * number] = i < valid ? flat % size : launch.get<std::int64_t>(5);
            flat /= size;
        }
    }
    return true;
}

/// What gpu_index_kernel captured: offsets of three tensors, two addresses, and for each index its
/// address, the size and the stride of its dimension.
struct Indexing {
    static constexpr std::size_t kData = (Offsets::bytes_of(3) + 7) / 8 * 8;
    static constexpr std::size_t kCount = kData + 16;
    static constexpr std::size_t kAddresses = kCount + 8;
    static constexpr std::size_t kSizes = kAddresses + 8 * Offsets::kMostDims;
    static constexpr std::size_t kStrides = kSizes + 8 * Offsets::kMostDims;
    static constexpr std::size_t kEnd = kStrides + 8 * Offsets::kMostDims;
};

/// (number of elements, lambda): out = in[indices], or with `puts` out[indices] = in.
bool index(const NamedLaunch& launch, std::uint32_t width, bool puts) {
    Offsets offsets;
    const auto lambda = launch.parameter(1);
    const auto number = launch.get<std::uint64_t>(0);
    const auto indices = launch.get<std::uint32_t>(1, Indexing::kCount);
    if (lambda.size() < Indexing::kEnd || !offsets.read(lambda, 3) ||
        indices > Offsets::kMostDims || number == 0)
        return false;
    std::vector<const std::byte*> index_data;
    for (std::uint32_t i = 0; i < indices; ++i) {
        index_data.push_back(
            launch.read<std::byte>(launch.get<std::uint64_t>(1, Indexing::kAddresses + 8 * i),
                                   offsets.extent(2, number, sizeof(std::int64_t))));
        if (index_data.back() == nullptr) return true;
    }
    // Where each element lies on the side that is indexed.
    std::vector<std::int64_t> places;
    offsets.for_each(number, [&](std::uint64_t, const auto& at) {
        auto place = static_cast<std::int64_t>(at[puts ? 0 : 1]);
        for (std::uint32_t i = 0; i < indices; ++i) {
            std::int64_t value = 0;
            std::memcpy(&value, index_data[i] + at[2], sizeof(value));
            const auto size =
                std::max<std::int64_t>(launch.get<std::int64_t>(1, Indexing::kSizes + 8 * i), 1);
            // What an opaque kernel made may lie outside: the device would stop here.
            value %= size;
            if (value < 0) value += size;
            place += value * launch.get<std::int64_t>(1, Indexing::kStrides + 8 * i);
        }
        places.push_back(place);
    });
    const auto [first, last] = std::minmax_element(places.begin(), places.end());
    const std::int64_t low = *first;
    const auto indexed_bytes = static_cast<std::uint64_t>(*last - low) + width;
    const auto indexed_va = launch.get<std::uint64_t>(1, Indexing::kData + (puts ? 0 : 8)) +
                            static_cast<std::uint64_t>(low);
    const auto other_va = launch.get<std::uint64_t>(1, Indexing::kData + (puts ? 8 : 0));
    const std::uint64_t other_bytes = offsets.extent(puts ? 1 : 0, number, width);
    const std::byte* in = puts ? launch.read<std::byte>(other_va, other_bytes)
                               : launch.read<std::byte>(indexed_va, indexed_bytes);
    std::byte* out = puts ? launch.write<std::byte>(indexed_va, indexed_bytes)
                          : launch.write<std::byte>(other_va, other_bytes);
    if (in == nullptr || out == nullptr) return true;
    offsets.for_each(number, [&](std::uint64_t n, const auto& at) {
        const auto place = static_cast<std::size_t>(places[n] - low);
        std::memcpy(out + (puts ? place : at[0]), in + (puts ? at[1] : place), width);
    });
    launch.cost(0, static_cast<double>(number) * (2.0 * width + 8.0 * indices));
    return true;
}

NamedKernel find_index(const KernelName& name) {
    constexpr std::string_view kGet =
        "gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<";
    constexpr std::string_view kPut =
        "gpu_index_kernel<at::native::index_put_kernel_impl<at::native::OpaqueType<";
    for (const bool puts : {false, true}) {
        const std::size_t at = name.full.find(puts ? kPut : kGet);
        if (at == std::string::npos) continue;
        const char* text = name.full.c_str() + at + (puts ? kPut : kGet).size();
        const auto width = static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
        if (width == 0) continue;
        return [=](const NamedLaunch& launch) { return index(launch, width, puts); };
    }
    return {};
}

}  // namespace

NamedKernel find_indices(const KernelName& name) {
    if (name.base == "elementwise_kernel_with_index" && name.mentions("arange_cuda_out"))
        return find_arange(name);
    if (name.base == "index_elementwise_kernel") return find_index(name);
    if (name.base == "write_indices" && name.mentions("write_indices<long>")) return write_indices;
    if (name.base == "DeviceCompactInitKernel" && !name.parameters.empty() &&
        name.parameters.back() == "int*")
        return select_nothing;
    const ScalarType flags = type_of_flags(name);
    const bool counts =
        name.mentions("policy_hub<int, unsigned long long, cuda::std::__4::plus<void> >");
    if (name.base == "DeviceReduceSingleTileKernel" && counts &&
        name.template_arguments.size() > 1 && name.template_arguments[1] == "int*")
        return add_counts;
    if (flags == ScalarType::Unknown) return {};
    if (name.base == "DeviceSelectSweepKernel")
        return [flags](const NamedLaunch& launch) { return select_flagged(launch, flags); };
    const bool partial = name.base == "DeviceReduceKernel";
    if (counts && (partial || name.base == "DeviceReduceSingleTileKernel"))
        return [=](const NamedLaunch& launch) { return count_flags(launch, flags, partial); };
    return {};
}

}  // namespace simgpu::torch
