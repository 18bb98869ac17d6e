// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Elements that change their places, or are left out by them: torch.flip, roll, triu, tril and the
// indices of triangles (torch 2.15's TensorTransformations.cu, TriangularOps.cu,
// TensorFactories.cu).

#include <cstring>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/offsets.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"
#include "simgpu/host_kernels/torch/tensor_info.hpp"

namespace simgpu::torch {
namespace {

/// (number, lambda), which has captured offsets whose strides may be negative, out and in.
bool flip(const NamedLaunch& launch, std::uint32_t width) {
    Offsets offsets;
    const auto lambda = launch.parameter(1);
    const std::size_t at = (Offsets::bytes_of(2) + 7) / 8 * 8;
    if (!offsets.read(lambda, 2) || at + 16 > lambda.size()) return false;
    const auto number = launch.get<std::uint64_t>(0);
    std::int64_t low[2] = {};
    std::int64_t high[2] = {};
    for (std::size_t d = 0; d < offsets.dims(); ++d) {
        for (std::size_t t = 0; t < 2; ++t) {
            const std::int64_t reach =
                std::int64_t{static_cast<std::int32_t>(offsets.stride(d, t))} *
                (std::int64_t{offsets.size(d)} - 1);
            (reach < 0 ? low : high)[t] += reach;
        }
    }
    const auto bytes = [&](std::size_t t) {
        return static_cast<std::uint64_t>(high[t] - low[t]) + width;
    };
    auto* out = launch.write<std::byte>(
        launch.get<std::uint64_t>(1, at) + static_cast<std::uint64_t>(low[0]), bytes(0));
    const auto* in = launch.read<std::byte>(
        launch.get<std::uint64_t>(1, at + 8) + static_cast<std::uint64_t>(low[1]), bytes(1));
    if (out == nullptr || in == nullptr) return true;
    std::vector<std::uint32_t> place(offsets.dims());
    std::int64_t here[2] = {-low[0], -low[1]};
    for (std::uint64_t i = 0; i < number; ++i) {
        std::memcpy(out + here[0], in + here[1], width);
        for (std::size_t d = 0; d < place.size(); ++d) {
            const std::int64_t steps =
                ++place[d] < offsets.size(d) ? 1 : 1 - std::int64_t{place[d]};
            for (std::size_t t = 0; t < 2; ++t)
                here[t] += steps * static_cast<std::int32_t>(offsets.stride(d, t));
            if (steps == 1 && place[d] < offsets.size(d)) break;
            place[d] = 0;
        }
    }
    launch.cost(0, 2.0 * static_cast<double>(number * width));
    return true;
}

NamedKernel find_flip(const KernelName& name) {
    constexpr std::string_view kFlip = "flip_kernel_impl<at::native::OpaqueType<";
    const std::size_t at = name.full.find(kFlip);
    if (at == std::string::npos) return {};
    const auto width = static_cast<std::uint32_t>(
        std::strtoul(name.full.c_str() + at + kFlip.size(), nullptr, 10));
    if (width == 0) return {};
    return [width](const NamedLaunch& launch) { return flip(launch, width); };
}

/// (in, out, number, dimension, where to begin, size and stride of the dimension, dimensions)
bool roll(const NamedLaunch& launch, ScalarType type) {
    const auto number = launch.get<std::uint64_t>(2);
    const auto start = launch.get<std::uint64_t>(4);
    const auto size = launch.get<std::uint64_t>(5);
    const auto stride = launch.get<std::uint64_t>(6);
    const std::uint32_t width = size_of(type);
    if (size == 0 || stride == 0 || start > size) return false;
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(0), number * width);
    auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(1), number * width);
    if (in == nullptr || out == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        const std::uint64_t along = i % (size * stride) / stride;
        const std::uint64_t from =
            along >= size - start ? i - (size - start) * stride : i + start * stride;
        std::memcpy(out + i * width, in + from * width, width);
    }
    launch.cost(0, 2.0 * static_cast<double>(number * width));
    return true;
}

/// What is above or below the diagonal k of the last two dimensions stays, the rest becomes 0:
/// (out, in, k, ...).
bool triangle(const NamedLaunch& launch, ScalarType type, std::uint32_t index_bytes, bool upper) {
    TensorInfo out;
    TensorInfo in;
    if (!out.read(launch, 0, index_bytes) || !in.read(launch, 1, index_bytes) || out.dims() < 2 ||
        in.dims() != out.dims())
        return false;
    const auto k = launch.get<std::int64_t>(2);
    std::uint64_t number = 1;
    for (std::size_t d = 0; d < out.dims(); ++d) number *= out.size(d);
    const std::uint64_t columns = out.size(out.dims() - 1);
    const std::uint64_t rows = out.size(out.dims() - 2);
    const std::uint32_t width = size_of(type);
    const auto out_at = out.offsets(number);
    const auto in_at = in.offsets(number);
    const auto* from = launch.read<std::byte>(in.va(), extent_of(in_at, 0) * width);
    auto* to = launch.write<std::byte>(out.va(), extent_of(out_at, 0) * width);
    if (from == nullptr || to == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        const auto column = static_cast<std::int64_t>(i % columns);
        const auto row = static_cast<std::int64_t>(i / columns % rows);
        const bool stays = upper ? column - row >= k : column - row <= k;
        std::byte* element = to + out_at[i] * width;
        if (stays)
            std::memmove(element, from + in_at[i] * width, width);
        else
            std::memset(element, 0, width);
    }
    launch.cost(0, 2.0 * static_cast<double>(number * width));
    return true;
}

/// (rows and columns out, offset of columns, columns of the first row, columns, elements of the
/// rectangle above, elements)
bool upper_indices(const NamedLaunch& launch) {
    const auto offset = launch.get<std::int64_t>(1);
    const auto columns = launch.get<std::int64_t>(3);
    const auto rectangle = launch.get<std::int64_t>(4);
    const auto number = launch.get<std::int64_t>(5);
    if (columns <= 0 || number < 0) return false;
    auto* out = launch.write<std::int64_t>(launch.get<std::uint64_t>(0),
                                           2 * static_cast<std::uint64_t>(number));
    if (out == nullptr) return true;
    std::int64_t row = 0;
    std::int64_t at = 0;
    std::int64_t length = rectangle > 0 ? columns : launch.get<std::int64_t>(2);
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < number; ++i, ++at) {
        if (at == length) {
            const bool above = i < rectangle;
            const bool begins = i == rectangle;
            length = above ? columns : begins ? launch.get<std::int64_t>(2) : length - 1;
            first = above || begins ? 0 : first + 1;
            at = 0;
            ++row;
        }
        out[i] = row;
        out[number + i] = first + at + offset;
    }
    launch.cost(0, 16.0 * static_cast<double>(number));
    return true;
}

/// (rows and columns out, offset of rows, columns of the first row, columns, elements of the
/// trapezoid, elements)
bool lower_indices(const NamedLaunch& launch) {
    const auto columns = launch.get<std::int64_t>(3);
    const auto number = launch.get<std::int64_t>(5);
    if (columns <= 0 || number < 0) return false;
    auto* out = launch.write<std::int64_t>(launch.get<std::uint64_t>(0),
                                           2 * static_cast<std::uint64_t>(number));
    if (out == nullptr) return true;
    std::int64_t row = launch.get<std::int64_t>(1);
    std::int64_t at = 0;
    std::int64_t length = launch.get<std::int64_t>(2);
    for (std::int64_t i = 0; i < number; ++i, ++at) {
        if (at == length) {
            length = std::min(length + 1, columns);
            at = 0;
            ++row;
        }
        out[i] = row;
        out[number + i] = at;
    }
    launch.cost(0, 16.0 * static_cast<double>(number));
    return true;
}

}  // namespace

NamedKernel find_layout(const KernelName& name) {
    const auto& types = name.parameters;
    if (name.base == "index_elementwise_kernel") return find_flip(name);
    if (name.base == "triu_indices_kernel" && name.mentions("<long>")) return upper_indices;
    if (name.base == "tril_indices_kernel" && name.mentions("<long>")) return lower_indices;
    if (types.empty()) return {};
    const ScalarType type = element_type(types[0]);
    if (type == ScalarType::Unknown) return {};
    if (name.base == "roll_cuda_kernel" && types.size() == 8)
        return [type](const NamedLaunch& launch) { return roll(launch, type); };
    // <element, index, upper, elements of a thread, in place>
    if (name.base == "triu_tril_kernel" && name.template_arguments.size() == 5) {
        const bool upper = name.template_arguments[2] == "true";
        return [type, upper, index_bytes = index_bytes_of(types[0])](const NamedLaunch& launch) {
            return triangle(launch, type, index_bytes, upper);
        };
    }
    return {};
}

}  // namespace simgpu::torch
