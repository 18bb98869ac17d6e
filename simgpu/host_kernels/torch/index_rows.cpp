// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Rows of a tensor by index (torch 2.15's Indexing.cu, IndexKernel.cu, Repeat.cu): index_add,
// index_select, index_copy, index_fill, what adds to tensors indexed by tensors, repeat_interleave.
// Indices are of 64 bits.

#include <cmath>
#include <cstring>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/number_ops.hpp"
#include "simgpu/host_kernels/torch/offsets.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"
#include "simgpu/host_kernels/torch/tensor_info.hpp"

namespace simgpu::torch {
namespace {

/// (out, in, indices, number, bytes of a row, rows, stride of out, stride of in, ...), strides in
/// bytes: adds rows.
bool add_rows(const NamedLaunch& launch, ScalarType type) {
    const std::uint64_t number = launch.get<std::uint32_t>(3);
    const auto row = launch.get<std::uint64_t>(4);
    const auto rows = launch.get<std::int64_t>(5);
    const auto out_stride = launch.get<std::uint64_t>(6);
    const auto in_stride = launch.get<std::uint64_t>(7);
    if (number == 0 || rows <= 0) return true;
    const std::uint32_t width = size_of(type);
    auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(0),
                                        static_cast<std::uint64_t>(rows - 1) * out_stride + row);
    const auto* in =
        launch.read<std::byte>(launch.get<std::uint64_t>(1), (number - 1) * in_stride + row);
    const auto* indices = launch.read<std::int64_t>(launch.get<std::uint64_t>(2), number);
    if (out == nullptr || in == nullptr || indices == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        if (indices[i] < 0 || indices[i] >= rows) continue;  // traps on a device
        std::byte* to = out + static_cast<std::uint64_t>(indices[i]) * out_stride;
        for (std::uint64_t e = 0; e < row; e += width)
            store(type, to + e, load(type, to + e) + load(type, in + i * in_stride + e));
    }
    launch.cost(static_cast<double>(number * row / width), 3.0 * static_cast<double>(number * row));
    return true;
}

/// (sorted indices, their places before, gradient, gradient of the weight, number, row elements,
/// stride between outer slices, outer slices, whether it adds). Rows of equal indices are summed in
/// double; where it does not add the last counts.
bool add_sorted(const NamedLaunch& launch, ScalarType type) {
    const auto number = launch.get<std::uint64_t>(4);
    const auto row = launch.get<std::uint64_t>(5);
    const auto outer_stride = launch.get<std::uint64_t>(6);
    const auto outer = launch.get<std::uint64_t>(7);
    const bool adds = launch.get<std::uint8_t>(8) != 0;
    const std::uint32_t width = size_of(type);
    const auto* sorted = launch.read<std::int64_t>(launch.get<std::uint64_t>(0), number);
    const auto* places = launch.read<std::int64_t>(launch.get<std::uint64_t>(1), number);
    const auto* grad =
        launch.read<std::byte>(launch.get<std::uint64_t>(2), number * row * outer * width);
    if (sorted == nullptr || places == nullptr || grad == nullptr) return true;
    std::vector<double> sums(row);
    for (std::uint64_t z = 0; z < outer; ++z) {
        for (std::uint64_t i = 0; i < number;) {
            const std::int64_t index = sorted[i];
            std::fill(sums.begin(), sums.end(), 0);
            for (; i < number && sorted[i] == index; ++i) {
                const std::byte* from =
                    grad + (static_cast<std::uint64_t>(places[i]) + z * number) * row * width;
                for (std::uint64_t e = 0; e < row; ++e)
                    sums[e] = (adds ? sums[e] : 0) + load(type, from + e * width);
            }
            const std::uint64_t at = static_cast<std::uint64_t>(index) * row + z * outer_stride;
            auto* to =
                launch.write<std::byte>(launch.get<std::uint64_t>(3) + at * width, row * width);
            if (to == nullptr) return true;
            for (std::uint64_t e = 0; e < row; ++e)
                store(type, to + e * width, sums[e] + (adds ? load(type, to + e * width) : 0));
        }
    }
    const auto all = static_cast<double>(number * row * outer);
    launch.cost(all, 2 * all * width);
    return true;
}

struct SliceForm {
    ScalarType type = ScalarType::Unknown;
    std::uint32_t index_bytes = 4;
    /// Selects: out = in[index]. Else out[index] is combined with in.
    bool selects = false;
    Combine how = Combine::Set;
    /// The parameter of the elements of a slice; all elements where `divides`.
    bool divides = false;
};

/// (out, in, indices, dimension of out, dimension of in, elements of a slice, or those of all
/// slices and how they are shared, size of the dimension, ..., factor). Tensors are without the
/// dimension, whose stride is still there.
bool slices(const NamedLaunch& launch, const SliceForm& form) {
    TensorInfo out;
    TensorInfo in;
    TensorInfo indices;
    const std::uint32_t w = form.index_bytes;
    if (!out.read(launch, 0, w) || !in.read(launch, 1, w) || !indices.read(launch, 2, w))
        return false;
    const std::uint64_t number = indices.dims() == 0 ? 1 : indices.size(0);
    std::uint64_t elements = w == 8 ? launch.get<std::uint64_t>(5) : launch.get<std::uint32_t>(5);
    if (form.divides) elements /= number;
    const auto bound = launch.get<std::int64_t>(form.divides ? 7 : 6);
    const auto out_dim = launch.get<std::uint32_t>(3);
    const auto in_dim = launch.get<std::uint32_t>(4);
    if (out_dim >= TensorInfo::kMostDims || in_dim >= TensorInfo::kMostDims || elements == 0 ||
        bound <= 0)
        return elements == 0;
    const auto rows = static_cast<std::uint64_t>(bound);
    const auto out_at = out.offsets(elements);
    const auto in_at = in.offsets(elements);
    const auto index_at = indices.offsets(number);
    const std::uint64_t out_reach = ((form.selects ? number : rows) - 1) * out.stride(out_dim);
    const std::uint64_t in_reach = ((form.selects ? rows : number) - 1) * in.stride(in_dim);
    const std::uint32_t width = size_of(form.type);
    auto* to = launch.write<std::byte>(out.va(), extent_of(out_at, out_reach) * width);
    const auto* from = launch.read<std::byte>(in.va(), extent_of(in_at, in_reach) * width);
    const auto* index = launch.read<std::int64_t>(indices.va(), extent_of(index_at, 0));
    if (to == nullptr || from == nullptr || index == nullptr) return true;
    const std::size_t last = launch.count() - 1;
    const double factor = form.selects ? 1 : load(form.type, launch.parameter(last).data());
    for (std::uint64_t n = 0; n < number; ++n) {
        const std::int64_t i = index[index_at[n]];
        if (i < 0 || i >= bound) continue;  // traps on a device
        const auto place = static_cast<std::uint64_t>(i);
        const std::uint64_t out_row = (form.selects ? n : place) * out.stride(out_dim);
        const std::uint64_t in_row = (form.selects ? place : n) * in.stride(in_dim);
        for (std::uint64_t e = 0; e < elements; ++e) {
            std::byte* element = to + (out_at[e] + out_row) * width;
            const std::byte* source = from + (in_at[e] + in_row) * width;
            if (form.selects)
                std::memcpy(element, source, width);
            else
                store(
                    form.type, element,
                    combine(form.how, load(form.type, element), load(form.type, source) * factor));
        }
    }
    const auto all = static_cast<double>(number * elements);
    launch.cost(all, all * 3 * width);
    return true;
}

NamedKernel find_slices(const KernelName& name) {
    const auto& types = name.parameters;
    SliceForm form;
    form.selects = name.base.starts_with("indexSelect");
    form.divides = name.base.ends_with("LargeIndex");
    if (types.size() < 7 || element_type(types[2]) != ScalarType::Long) return {};
    form.type = element_type(types[0]);
    form.index_bytes = index_bytes_of(types[0]);
    if (form.type == ScalarType::Unknown) return {};
    if (!form.selects) {
        const std::string& how = name.template_arguments.back();
        form.how = how.ends_with("ReduceAdd")        ? Combine::Add
                   : how.ends_with("ReduceMultiply") ? Combine::Multiply
                   : how.ends_with("ReduceMaximum")  ? Combine::Maximum
                   : how.ends_with("ReduceMinimum")  ? Combine::Minimum
                                                     : Combine::Set;
        if (form.how == Combine::Set) return {};
    }
    return [form](const NamedLaunch& launch) { return slices(launch, form); };
}

/// What the lambdas of index_copy and index_fill captured behind their offsets: the tensor, the
/// indices, then (the source,) the size and the stride of the dimension, (the value).
bool set_rows(const NamedLaunch& launch, std::uint32_t width, bool fills) {
    Offsets offsets;
    const std::size_t tensors = fills ? 2 : 3;
    const auto lambda = launch.parameter(1);
    if (!offsets.read(lambda, tensors)) return false;
    std::size_t at = (Offsets::bytes_of(tensors) + 7) / 8 * 8;
    const auto next = [&] { return launch.get<std::uint64_t>(1, (at += 8) - 8); };
    const std::uint64_t out_va = next();
    const std::uint64_t index_va = next();
    const std::uint64_t in_va = fills ? 0 : next();
    const auto size = static_cast<std::int64_t>(next());
    const auto stride = static_cast<std::int64_t>(next());
    const auto number = launch.get<std::uint64_t>(0);
    if (size <= 0 || stride < 0 || at + (fills ? width : 0) > lambda.size()) return false;
    auto* out = launch.write<std::byte>(
        out_va,
        offsets.extent(0, number, width) + static_cast<std::uint64_t>((size - 1) * stride) * width);
    const auto* index = launch.read<std::byte>(index_va, offsets.extent(1, number, 8));
    const auto* in = fills ? lambda.data() + at
                           : launch.read<std::byte>(in_va, offsets.extent(2, number, width));
    if (out == nullptr || index == nullptr || in == nullptr) return true;
    offsets.for_each(number, [&](std::uint64_t, const auto& place) {
        std::int64_t i = 0;
        std::memcpy(&i, index + place[1], sizeof(i));
        if (i < 0) i += size;
        if (i < 0 || i >= size) return;  // traps on a device
        std::memcpy(out + place[0] + static_cast<std::uint64_t>(i * stride) * width,
                    in + (fills ? 0 : place[2]), width);
    });
    launch.cost(0, static_cast<double>(number) * (8 + 2.0 * width));
    return true;
}

NamedKernel find_set_rows(const KernelName& name) {
    for (const bool fills : {false, true}) {
        const std::string_view kernel = fills ? "index_fill_kernel_impl<at::native::OpaqueType<"
                                              : "index_copy_kernel_impl<at::native::OpaqueType<";
        const std::size_t at = name.full.find(kernel);
        if (at == std::string::npos) continue;
        const auto width = static_cast<std::uint32_t>(
            std::strtoul(name.full.c_str() + at + kernel.size(), nullptr, 10));
        if (width == 0) continue;
        return [=](const NamedLaunch& launch) { return set_rows(launch, width, fills); };
    }
    return {};
}

/// (repeats, their running sums, places out, number, places): each place as often as it repeats.
bool repeat(const NamedLaunch& launch) {
    const auto number = launch.get<std::uint64_t>(3);
    const auto places = launch.get<std::int64_t>(4);
    const auto* repeats = launch.read<std::int64_t>(launch.get<std::uint64_t>(0), number);
    const auto* sums = launch.read<std::int64_t>(launch.get<std::uint64_t>(1), number);
    auto* out = launch.write<std::int64_t>(launch.get<std::uint64_t>(2),
                                           static_cast<std::uint64_t>(places));
    if (repeats == nullptr || sums == nullptr || out == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        for (std::int64_t at = std::max<std::int64_t>(sums[i] - repeats[i], 0);
             at < std::min(sums[i], places); ++at)
            out[at] = static_cast<std::int64_t>(i);
    }
    launch.cost(0, 8.0 * static_cast<double>(places));
    return true;
}

}  // namespace

NamedKernel find_index_rows(const KernelName& name) {
    const auto& types = name.parameters;
    if (name.base == "index_elementwise_kernel") return find_set_rows(name);
    if (name.base.starts_with("indexSelect") || name.base.starts_with("indexFunc"))
        return find_slices(name);
    if (name.base == "compute_cuda_kernel" && types.size() == 5 && types[0] == "long const*")
        return repeat;
    const auto bind = [&](auto work) -> NamedKernel {
        const ScalarType type = element_type(types[0] == "long const*" ? types[2] : types[0]);
        if (type == ScalarType::Unknown) return {};
        return [=](const NamedLaunch& launch) { return work(launch, type); };
    };
    if (name.base == "vectorized_scatter_kernel" && name.mentions("<at::native::ScatterAddOp,") &&
        types.size() == 10 && types[2] == "long const*")
        return bind(add_rows);
    if (name.base.starts_with("indexing_backward_kernel") && types.size() == 9 &&
        types[0] == "long const*" && !name.mentions("quantized"))
        return bind(add_sorted);
    return {};
}

}  // namespace simgpu::torch
