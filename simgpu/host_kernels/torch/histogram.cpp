// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Counts by value and places among sorted numbers: torch.bincount, histc (torch 2.15's
// SummaryOps.cu), searchsorted and bucketize (Bucketization.cu).

#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"
#include "simgpu/host_kernels/torch/tensor_info.hpp"

namespace simgpu::torch {
namespace {

struct Form {
    ScalarType out = ScalarType::Unknown;
    ScalarType in = ScalarType::Unknown;
    std::uint32_t index_bytes = 8;
    bool weighted = false;
};

/// The bin of a value, or none.
std::int64_t bin_of(double value, double low, double high, std::int64_t bins, bool integers) {
    if (!(value >= low && value <= high)) return -1;
    const auto exact = (value - low) * static_cast<double>(bins) / (high - low);
    const auto narrow = static_cast<float>(static_cast<float>(value) - static_cast<float>(low)) *
                        static_cast<float>(bins) /
                        (static_cast<float>(high) - static_cast<float>(low));
    const auto bin = static_cast<std::int64_t>(integers ? exact : static_cast<double>(narrow));
    return bin == bins ? bin - 1 : bin;
}

/// (counts, scratch, in, bins, least, most, number, what an element weighs): adds.
bool histogram(const NamedLaunch& launch, const Form& form) {
    TensorInfo counts;
    TensorInfo in;
    TensorInfo weights;
    if (!counts.read(launch, 0, form.index_bytes) || !in.read(launch, 2, form.index_bytes))
        return false;
    const std::uint64_t number =
        form.index_bytes == 8 ? launch.get<std::uint64_t>(6) : launch.get<std::uint32_t>(6);
    if (form.weighted && !weights.read(launch, 7, form.index_bytes)) return false;
    const auto bins = form.index_bytes == 8 ? launch.get<std::int64_t>(3)
                                            : std::int64_t{launch.get<std::int32_t>(3)};
    const double low = load(form.in, launch.parameter(4).data());
    const double high = load(form.in, launch.parameter(5).data());
    if (bins <= 0 || number == 0) return number == 0;
    const auto at = in.offsets(number);
    const auto count_at = counts.offsets(static_cast<std::uint64_t>(bins));
    const std::uint32_t in_bytes = size_of(form.in);
    const std::uint32_t out_bytes = size_of(form.out);
    const auto* data = launch.read<std::byte>(in.va(), extent_of(at, 0) * in_bytes);
    auto* out = launch.write<std::byte>(counts.va(), extent_of(count_at, 0) * out_bytes);
    std::vector<std::uint64_t> weight_at;
    const std::byte* weight = nullptr;
    if (form.weighted) {
        weight_at = weights.offsets(number);
        weight = launch.read<std::byte>(weights.va(), extent_of(weight_at, 0) * out_bytes);
    }
    if (data == nullptr || out == nullptr || (form.weighted && weight == nullptr)) return true;
    const bool integers = !is_float(form.in) || form.in == ScalarType::Double;
    std::vector<double> sums(static_cast<std::size_t>(bins));
    for (std::uint64_t i = 0; i < number; ++i) {
        const auto bin = bin_of(load(form.in, data + at[i] * in_bytes), low, high, bins, integers);
        if (bin < 0) continue;
        sums[static_cast<std::size_t>(bin)] +=
            form.weighted ? load(form.out, weight + weight_at[i] * out_bytes) : 1;
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
        std::byte* count = out + count_at[i] * out_bytes;
        store(form.out, count, load(form.out, count) + sums[i]);
    }
    launch.cost(static_cast<double>(number), static_cast<double>(number * in_bytes));
    return true;
}

NamedKernel find_histogram(const KernelName& name) {
    const auto& types = name.parameters;
    if (types.size() != 8) return {};
    const Form form{element_type(types[0]), element_type(types[2]), index_bytes_of(types[0]),
                    types[7].find(", true>(") != std::string::npos};
    if (form.out == ScalarType::Unknown || form.in == ScalarType::Unknown) return {};
    return [form](const NamedLaunch& launch) { return histogram(launch, form); };
}

/// The first place in [begin, end) whose element is not before the value, or is behind it.
template <typename Bits>
std::int64_t bound(std::int64_t begin, std::int64_t end, std::uint64_t value, bool right,
                   Bits bits) {
    while (begin < end) {
        const std::int64_t middle = begin + (end - begin) / 2;
        const std::uint64_t there = bits(middle);
        if (right ? there <= value : there < value)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/// (places, values, sorted, order of what is to be taken for sorted or null, values of a row,
/// boundaries of a row, number of values, right, boundaries for all rows)
bool search(const NamedLaunch& launch, ScalarType type, bool wide) {
    const auto row = launch.get<std::int64_t>(4);
    const auto boundaries = launch.get<std::int64_t>(5);
    const auto number = launch.get<std::uint64_t>(6);
    const bool right = launch.get<std::uint8_t>(7) != 0;
    const bool shared = launch.get<std::uint8_t>(8) != 0;
    if (row <= 0 || number == 0) return number == 0;
    const std::uint64_t rows = shared ? 1 : number / static_cast<std::uint64_t>(row);
    const std::uint64_t all = rows * static_cast<std::uint64_t>(boundaries);
    const std::uint32_t width = size_of(type);
    const auto order_va = launch.get<std::uint64_t>(3);
    const auto* order = order_va == 0 ? nullptr : launch.read<std::int64_t>(order_va, all);
    auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(0), number * (wide ? 8 : 4));
    const auto* values = launch.read<std::byte>(launch.get<std::uint64_t>(1), number * width);
    const auto* sorted = launch.read<std::byte>(launch.get<std::uint64_t>(2), all * width);
    if (out == nullptr || values == nullptr || sorted == nullptr ||
        (order_va != 0 && order == nullptr))
        return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        const std::int64_t first = shared ? 0 : static_cast<std::int64_t>(i) / row * boundaries;
        const auto place =
            bound(first, first + boundaries, ordered_bits(type, values + i * width), right,
                  [&](std::int64_t at) {
                      const std::int64_t there = order == nullptr ? at : first + order[at];
                      return ordered_bits(type, sorted + static_cast<std::uint64_t>(there) * width);
                  });
        store(wide ? ScalarType::Long : ScalarType::Int, out + i * (wide ? 8 : 4),
              static_cast<double>(place - first));
    }
    launch.cost(static_cast<double>(number) * 8, static_cast<double>(number * (width + 8)));
    return true;
}

}  // namespace

NamedKernel find_histograms(const KernelName& name) {
    const auto& types = name.parameters;
    if (name.base == "kernelHistogram1D") return find_histogram(name);
    if (name.base != "searchsorted_cuda_kernel" || types.size() != 9) return {};
    const ScalarType type = element_type(types[1]);
    if (type == ScalarType::Unknown) return {};
    return [type, wide = types[0] == "long*"](const NamedLaunch& launch) {
        return search(launch, type, wide);
    };
}

}  // namespace simgpu::torch
