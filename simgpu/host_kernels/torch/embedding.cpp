// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Rows gathered by index, and the gradient of that (torch 2.15's IndexKernelUtils.cu and
// Embedding.cu).

#include <cstring>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

/// (out, in, indices, int count, int64 row bytes, int64 rows, int64 in stride, int64 out stride,
/// bool negative indices), strides in bytes.
bool gather(const NamedLaunch& launch) {
    const std::uint64_t count = launch.get<std::uint32_t>(3);
    const auto row = launch.get<std::uint64_t>(4);
    const auto rows = launch.get<std::int64_t>(5);
    const auto in_stride = launch.get<std::uint64_t>(6);
    const auto out_stride = launch.get<std::uint64_t>(7);
    if (count == 0 || rows <= 0) return true;
    const auto* indices = launch.read<std::int64_t>(launch.get<std::uint64_t>(2), count);
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(1),
                                            static_cast<std::uint64_t>(rows - 1) * in_stride + row);
    auto* out =
        launch.write<std::byte>(launch.get<std::uint64_t>(0), (count - 1) * out_stride + row);
    if (indices == nullptr || in == nullptr || out == nullptr) return true;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::int64_t index = indices[i] < 0 ? indices[i] + rows : indices[i];
        if (index < 0 || index >= rows) continue;  // traps on a device
        std::memcpy(out + i * out_stride, in + static_cast<std::uint64_t>(index) * in_stride, row);
    }
    launch.cost(0, 2.0 * static_cast<double>(count * row));
    return true;
}

/// (indices, grad, grad of the weight, int count, int64 row elements, int padding index): adds.
bool embedding_gradient(const NamedLaunch& launch) {
    const std::uint64_t count = launch.get<std::uint32_t>(3);
    const auto row = launch.get<std::uint64_t>(4);
    const auto padding = launch.get<std::int32_t>(5);
    const auto* indices = launch.read<std::int64_t>(launch.get<std::uint64_t>(0), count);
    const auto* grad = launch.read<float>(launch.get<std::uint64_t>(1), count * row);
    if (indices == nullptr || grad == nullptr) return true;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (indices[i] == padding || indices[i] < 0) continue;
        auto* to = launch.write<float>(
            launch.get<std::uint64_t>(2) + static_cast<std::uint64_t>(indices[i]) * row * 4, row);
        if (to == nullptr) return true;
        for (std::uint64_t e = 0; e < row; ++e) to[e] += grad[i * row + e];
    }
    launch.cost(static_cast<double>(count * row), 12.0 * static_cast<double>(count * row));
    return true;
}

}  // namespace

NamedKernel find_embedding(const KernelName& name) {
    if (name.base == "vectorized_gather_kernel" && name.mentions("long")) return gather;
    if (name.base == "embedding_backward_feature_kernel" && name.mentions("<float, float, long>"))
        return embedding_gradient;
    return {};
}

}  // namespace simgpu::torch
