// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// torch.topk, kthvalue and median (torch 2.15's TensorTopK.cu, Sorting.cu). Rows that several
// blocks share are prepared by kernels whose results only the last one reads: it does all here.

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
    ScalarType type = ScalarType::Unknown;
    std::uint32_t index_bytes = 4;
};

std::uint64_t word(const NamedLaunch& launch, std::size_t parameter, std::uint32_t bytes) {
    return bytes == 8 ? launch.get<std::uint64_t>(parameter) : launch.get<std::uint32_t>(parameter);
}

/// The slices that a kernel reads.
struct Slices {
    const std::byte* data = nullptr;
    std::vector<std::uint64_t> at;
    std::uint64_t length = 0;
    std::uint64_t stride = 0;

    const std::byte* element(std::uint64_t slice, std::uint64_t i, std::uint32_t width) const {
        return data + (at[slice] + i * stride) * width;
    }
};

/// The k greatest or least of a slice: all that are beyond the k-th in their order, then of its
/// equals as many as there is room for.
std::vector<std::uint64_t> choose(const std::vector<std::uint64_t>& bits, std::uint64_t k) {
    std::vector<std::uint64_t> sorted(bits);
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k - 1),
                     sorted.end());
    const std::uint64_t last = sorted[k - 1];
    std::vector<std::uint64_t> places;
    for (std::uint64_t i = 0; i < bits.size(); ++i)
        if (bits[i] < last) places.push_back(i);
    for (std::uint64_t i = 0; i < bits.size() && places.size() < k; ++i)
        if (bits[i] == last) places.push_back(i);
    return places;
}

bool read_slices(const NamedLaunch& launch, const Form& form, const TensorInfo& info,
                 std::uint64_t slices, Slices& in) {
    in.at = info.offsets(slices);
    in.data = launch.read<std::byte>(
        info.va(), extent_of(in.at, (in.length - 1) * in.stride) * size_of(form.type));
    return in.data != nullptr;
}

/// (in, elements of a slice, k, largest, slices, their stride, values, their stride, indices, their
/// stride, ...)
bool gather_top(const NamedLaunch& launch, const Form& form) {
    const std::uint32_t w = form.index_bytes;
    TensorInfo from;
    TensorInfo values;
    TensorInfo indices;
    if (!from.read(launch, 0, w) || !values.read(launch, 6, w) || !indices.read(launch, 8, w))
        return false;
    Slices in;
    in.length = word(launch, 1, w);
    in.stride = word(launch, 5, w);
    const std::uint64_t k = word(launch, 2, w);
    const bool largest = launch.get<std::uint8_t>(3) != 0;
    const std::uint64_t slices = word(launch, 4, w);
    const std::uint64_t value_stride = word(launch, 7, w);
    const std::uint64_t index_stride = word(launch, 9, w);
    if (k == 0 || slices == 0 || k > in.length) return k == 0 || slices == 0;
    const std::uint32_t width = size_of(form.type);
    const auto value_at = values.offsets(slices);
    const auto index_at = indices.offsets(slices);
    if (!read_slices(launch, form, from, slices, in)) return true;
    auto* out =
        launch.write<std::byte>(values.va(), extent_of(value_at, (k - 1) * value_stride) * width);
    auto* places =
        launch.write<std::int64_t>(indices.va(), extent_of(index_at, (k - 1) * index_stride));
    if (out == nullptr || places == nullptr) return true;
    std::vector<std::uint64_t> bits(in.length);
    for (std::uint64_t slice = 0; slice < slices; ++slice) {
        for (std::uint64_t i = 0; i < in.length; ++i) {
            const std::byte* element = in.element(slice, i, width);
            bits[i] =
                largest ? descending_bits(form.type, element) : ordered_bits(form.type, element);
        }
        const auto chosen = choose(bits, k);
        for (std::uint64_t i = 0; i < k; ++i) {
            std::memcpy(out + (value_at[slice] + i * value_stride) * width,
                        in.element(slice, chosen[i], width), width);
            places[index_at[slice] + i * index_stride] = static_cast<std::int64_t>(chosen[i]);
        }
    }
    const auto all = static_cast<double>(slices * in.length);
    launch.cost(all * 4, all * 4 * width);
    return true;
}

/// Of each slice its element number k(slice), and the first place of its equals.
template <typename Rank>
bool pick_one(const NamedLaunch& launch, const Form& form, const TensorInfo& from,
              const TensorInfo& values, const TensorInfo& indices, std::uint64_t slices, Slices& in,
              Rank rank) {
    const std::uint32_t width = size_of(form.type);
    if (slices == 0 || in.length == 0) return true;
    const auto value_at = values.offsets(slices);
    const auto index_at = indices.offsets(slices);
    if (!read_slices(launch, form, from, slices, in)) return true;
    auto* out = launch.write<std::byte>(values.va(), extent_of(value_at, 0) * width);
    auto* places = launch.write<std::int64_t>(indices.va(), extent_of(index_at, 0));
    if (out == nullptr || places == nullptr) return true;
    std::vector<std::uint64_t> bits(in.length);
    for (std::uint64_t slice = 0; slice < slices; ++slice) {
        for (std::uint64_t i = 0; i < in.length; ++i)
            bits[i] = ordered_bits(form.type, in.element(slice, i, width));
        std::vector<std::uint64_t> sorted(bits);
        std::sort(sorted.begin(), sorted.end());
        const std::uint64_t wanted = sorted[std::min<std::uint64_t>(rank(sorted), in.length - 1)];
        const auto place =
            static_cast<std::uint64_t>(std::find(bits.begin(), bits.end(), wanted) - bits.begin());
        std::memcpy(out + value_at[slice] * width, in.element(slice, place, width), width);
        places[index_at[slice]] = static_cast<std::int64_t>(place);
    }
    const auto all = static_cast<double>(slices * in.length);
    launch.cost(all * 4, all * 4 * width);
    return true;
}

/// (in, elements of a slice, k from 1 on, slices, their stride, values, indices)
bool kth_value(const NamedLaunch& launch, const Form& form) {
    const std::uint32_t w = form.index_bytes;
    TensorInfo from;
    TensorInfo values;
    TensorInfo indices;
    if (!from.read(launch, 0, w) || !values.read(launch, 5, w) || !indices.read(launch, 6, w))
        return false;
    Slices in;
    in.length = word(launch, 1, w);
    in.stride = word(launch, 4, w);
    const std::uint64_t k = word(launch, 2, w);
    return pick_one(launch, form, from, values, indices, word(launch, 3, w), in,
                    [k](const auto&) { return k - 1; });
}

/// (values, indices, in, elements of a slice, slices, their stride, whether NaNs do not count). A
/// NaN is the median where they do.
bool median(const NamedLaunch& launch, const Form& form) {
    const std::uint32_t w = form.index_bytes;
    TensorInfo from;
    TensorInfo values;
    TensorInfo indices;
    if (!from.read(launch, 2, w) || !values.read(launch, 0, w) || !indices.read(launch, 1, w))
        return false;
    Slices in;
    in.length = word(launch, 3, w);
    in.stride = word(launch, 5, w);
    const bool ignores = launch.get<std::uint8_t>(6) != 0;
    const std::uint32_t bits = 8 * size_of(form.type);
    const bool floats = is_float(form.type);
    const std::uint64_t nan = ~std::uint64_t{0} >> (64 - bits);
    return pick_one(launch, form, from, values, indices, word(launch, 4, w), in,
                    [=](const std::vector<std::uint64_t>& sorted) -> std::uint64_t {
                        const auto numbers = static_cast<std::uint64_t>(
                            std::lower_bound(sorted.begin(), sorted.end(), nan) - sorted.begin());
                        if (!floats) return (sorted.size() - 1) / 2;
                        if (!ignores && numbers < sorted.size()) return numbers;
                        return numbers == 0 ? 0 : (numbers - 1) / 2;
                    });
}

bool prepares(const KernelName& name) {
    if (name.mentions("scan_by_key") && name.mentions("mbtopk::BlockIdxToKey")) return true;
    if (!name.mentions("::mbtopk::")) return false;
    for (const std::string_view base :
         {"fill", "computeBlockDigitCounts", "computeDigitCumSum", "computeBlockwiseWithinKCounts",
          "computeBlockwiseKthCounts"}) {
        if (name.base == base) return true;
    }
    return false;
}

}  // namespace

NamedKernel find_top_k(const KernelName& name) {
    if (prepares(name)) return do_nothing;
    const auto& types = name.parameters;
    const auto bind = [&](std::size_t in, auto work) -> NamedKernel {
        const Form form{element_type(types[in]), index_bytes_of(types[in])};
        if (form.type == ScalarType::Unknown) return {};
        return [=](const NamedLaunch& launch) { return work(launch, form); };
    };
    if (name.base == "gatherTopK" && types.size() >= 10) return bind(0, gather_top);
    if (name.base == "gatherKthValue" && types.size() == 7) return bind(0, kth_value);
    if (name.base == "gatherMedian" && types.size() == 7) return bind(2, median);
    return {};
}

}  // namespace simgpu::torch
