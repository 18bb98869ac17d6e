// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// torch.sort of rows (torch 2.15's Sort.cu, SortStable.cu): up to 4,096 elements where they lie;
// longer ones by CUB, with what numbers the elements before and takes them apart behind.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"
#include "simgpu/host_kernels/torch/tensor_info.hpp"

namespace simgpu::torch {
namespace {

struct Form {
    ScalarType key = ScalarType::Unknown;
    std::uint32_t value_bytes = 8;
    std::uint32_t index_bytes = 4;
    /// From the comparison's type; a radix sort is told.
    bool descending = false;
    bool told = false;
};

std::uint64_t word(const NamedLaunch& launch, std::size_t parameter, std::uint32_t bytes) {
    return bytes == 8 ? launch.get<std::uint64_t>(parameter) : launch.get<std::uint32_t>(parameter);
}

/// Puts elements of `width` bytes, `stride` bytes apart, into this order.
void reorder(std::byte* data, std::uint64_t stride, std::uint32_t width,
             const std::vector<std::uint32_t>& order, std::vector<std::byte>& copy) {
    copy.resize(order.size() * width);
    for (std::size_t i = 0; i < order.size(); ++i)
        std::memcpy(copy.data() + i * width, data + i * stride, width);
    for (std::size_t i = 0; i < order.size(); ++i)
        std::memcpy(data + i * stride, copy.data() + std::size_t{order[i]} * width, width);
}

/// (keys, slices, elements of a slice, their stride, values, their stride, comparison or whether
/// descending, ...). Always stable.
bool sort_slices(const NamedLaunch& launch, const Form& form) {
    TensorInfo keys;
    TensorInfo values;
    if (!keys.read(launch, 0, form.index_bytes) || !values.read(launch, 4, form.index_bytes))
        return false;
    const std::uint64_t slices = word(launch, 1, form.index_bytes);
    const std::uint64_t length = word(launch, 2, form.index_bytes);
    const std::uint64_t key_stride = word(launch, 3, form.index_bytes);
    const std::uint64_t value_stride = word(launch, 5, form.index_bytes);
    const bool descending = form.told ? launch.get<std::uint8_t>(6) != 0 : form.descending;
    if (slices == 0 || length == 0) return true;
    const std::uint32_t width = size_of(form.key);
    const auto key_at = keys.offsets(slices);
    const auto value_at = values.offsets(slices);
    auto* key_data =
        launch.write<std::byte>(keys.va(), extent_of(key_at, (length - 1) * key_stride) * width);
    auto* value_data = launch.write<std::byte>(
        values.va(), extent_of(value_at, (length - 1) * value_stride) * form.value_bytes);
    if (key_data == nullptr || value_data == nullptr) return true;
    std::vector<std::uint64_t> bits(length);
    std::vector<std::uint32_t> order(length);
    std::vector<std::byte> copy;
    for (std::uint64_t slice = 0; slice < slices; ++slice) {
        std::byte* row = key_data + key_at[slice] * width;
        for (std::uint64_t i = 0; i < length; ++i) {
            const std::byte* key = row + i * key_stride * width;
            bits[i] = descending ? descending_bits(form.key, key) : ordered_bits(form.key, key);
        }
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return bits[a] < bits[b]; });
        reorder(row, key_stride * width, width, order, copy);
        reorder(value_data + value_at[slice] * form.value_bytes, value_stride * form.value_bytes,
                form.value_bytes, order, copy);
    }
    const auto all = static_cast<double>(slices * length);
    launch.cost(all * 10, 2 * all * (width + form.value_bytes));
    return true;
}

/// (places, their number, slice length and how to divide by it): each place in its slice; with
/// `pairs` the slice before it, both of 4 bytes.
bool number_places(const NamedLaunch& launch, bool pairs) {
    const auto number = launch.get<std::uint32_t>(1);
    const auto length = launch.get<std::uint32_t>(2);
    if (length == 0) return false;
    auto* out = launch.write<std::int64_t>(launch.get<std::uint64_t>(0), number);
    if (out == nullptr) return true;
    for (std::uint32_t i = 0; i < number; ++i)
        out[i] = pairs ? std::int64_t{i % length} << 32 | i / length : i % length;
    launch.cost(number, 8.0 * number);
    return true;
}

/// (in, out, indices, pairs of slice and place, slices, slice length): what a sort by pairs found.
bool take_apart(const NamedLaunch& launch, ScalarType type) {
    const auto slices = launch.get<std::uint32_t>(4);
    const auto length = launch.get<std::uint32_t>(5);
    const std::uint64_t number = std::uint64_t{slices} * length;
    const std::uint32_t width = size_of(type);
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(0), number * width);
    auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(1), number * width);
    auto* indices = launch.write<std::int64_t>(launch.get<std::uint64_t>(2), number);
    const auto* pairs = launch.read<std::uint64_t>(launch.get<std::uint64_t>(3), number);
    if (in == nullptr || out == nullptr || indices == nullptr || pairs == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        const std::uint64_t place = pairs[i] >> 32;
        if (place >= length) continue;  // beyond the row: traps on a device, or not
        indices[i] = static_cast<std::int64_t>(place);
        std::memcpy(out + i * width, in + (i / length * length + place) * width, width);
    }
    launch.cost(0, static_cast<double>(number) * (16 + 2.0 * width));
    return true;
}

}  // namespace

NamedKernel find_sort(const KernelName& name) {
    const auto& types = name.parameters;
    if (name.base == "fill_reverse_indices_kernel" || name.base == "fill_index_and_segment_kernel")
        return [pairs = name.base == "fill_index_and_segment_kernel"](const NamedLaunch& launch) {
            return number_places(launch, pairs);
        };
    if (name.base == "sort_postprocess_kernel" && !types.empty()) {
        const ScalarType type = element_type(types[0]);
        if (type == ScalarType::Unknown) return {};
        return [type](const NamedLaunch& launch) { return take_apart(launch, type); };
    }
    const bool radix = name.base == "radixSortKVInPlace";
    if ((!radix && name.base != "bitonicSortKVInPlace" && name.base != "warpMergeSortKVInPlace") ||
        types.size() < 7)
        return {};
    const ScalarType value = element_type(types[4]);
    const Form form{element_type(types[0]), size_of(value), index_bytes_of(types[0]),
                    types[6].find("GTOp<") != std::string::npos, radix};
    if (form.key == ScalarType::Unknown || form.value_bytes == 0) return {};
    return [form](const NamedLaunch& launch) { return sort_slices(launch, form); };
}

}  // namespace simgpu::torch
