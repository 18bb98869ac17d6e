// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// One kernel does the product, by libcublas's arithmetic, and what follows it.

#include "simgpu/cublaslt/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "simgpu/cublas/blas.hpp"
#include "simgpu/cublas/driver.hpp"
#include "simgpu/cublas/host_kernels.hpp"
#include "simgpu/half_float.hpp"

namespace libswap::simgpu::cublaslt {
namespace {

constexpr const char* kName = "simgpu_cublaslt_matmul";

double activate(Activation activation, double x) {
    switch (activation) {
        case Activation::None:
            break;
        case Activation::Relu:
            return x < 0 ? 0 : x;
        case Activation::Gelu: {
            constexpr double kRootOfTwoByPi = 0.79788456080286535588;
            return 0.5 * x * (1 + std::tanh(kRootOfTwoByPi * (x + 0.044715 * x * x * x)));
        }
    }
    return x;
}

template <typename T>
T* span(const SimgpuHostLaunch* launch, std::uint64_t va, std::int64_t bytes) {
    return static_cast<T*>(
        launch->span(launch, va, static_cast<std::size_t>(bytes), std::is_const_v<T> ? 0 : 1));
}

std::uint64_t moved(std::uint64_t va, std::int64_t elements, cublas::Element element) {
    return va + static_cast<std::uint64_t>(elements * bytes_of(element));
}

/// False where memory is missing: the launch has failed.
bool copy_source(const SimgpuHostLaunch* launch, const MatmulParams& p) {
    const cublas::GemmParams& d = p.product;
    const std::int64_t bytes = d.m * bytes_of(d.result);
    for (std::int64_t batch = 0; batch < d.batch; ++batch) {
        for (std::int64_t column = 0; column < d.n; ++column) {
            const auto* from = span<const std::byte>(
                launch, moved(p.source, batch * p.source_stride + column * p.source_ld, d.result),
                bytes);
            auto* to = span<std::byte>(
                launch, moved(d.c, batch * d.stride_c + column * d.ldc, d.result), bytes);
            if (from == nullptr || to == nullptr) return false;
            std::memmove(to, from, static_cast<std::size_t>(bytes));
        }
    }
    return true;
}

double load(cublas::Element element, const std::byte* from, std::int64_t index) {
    from += index * bytes_of(element);
    switch (element) {
        case cublas::Element::Double:
            return *reinterpret_cast<const double*>(from);
        case cublas::Element::Half:
            return static_cast<double>(
                ::simgpu::half_to_float(*reinterpret_cast<const std::uint16_t*>(from)));
        case cublas::Element::BFloat:
            return static_cast<double>(
                ::simgpu::bf16_to_float(*reinterpret_cast<const std::uint16_t*>(from)));
        case cublas::Element::Float:
            break;
    }
    return static_cast<double>(*reinterpret_cast<const float*>(from));
}

void store(cublas::Element element, std::byte* to, std::int64_t index, double value) {
    to += index * bytes_of(element);
    switch (element) {
        case cublas::Element::Double:
            *reinterpret_cast<double*>(to) = value;
            return;
        case cublas::Element::Half:
            *reinterpret_cast<std::uint16_t*>(to) = ::simgpu::double_to_half(value);
            return;
        case cublas::Element::BFloat:
            *reinterpret_cast<std::uint16_t*>(to) = ::simgpu::double_to_bf16(value);
            return;
        case cublas::Element::Float:
            break;
    }
    *reinterpret_cast<float*>(to) = static_cast<float>(value);
}

void finish(const SimgpuHostLaunch* launch, const MatmulParams& p) {
    const cublas::GemmParams& d = p.product;
    for (std::int64_t batch = 0; batch < d.batch; ++batch) {
        const std::byte* bias = nullptr;
        if (p.bias != 0) {
            bias =
                span<const std::byte>(launch, moved(p.bias, batch * p.bias_stride, p.bias_element),
                                      d.m * bytes_of(p.bias_element));
            if (bias == nullptr) return;
        }
        for (std::int64_t column = 0; column < d.n; ++column) {
            auto* values =
                span<std::byte>(launch, moved(d.c, batch * d.stride_c + column * d.ldc, d.result),
                                d.m * bytes_of(d.result));
            if (values == nullptr) return;
            for (std::int64_t row = 0; row < d.m; ++row) {
                double x = load(d.result, values, row);
                if (bias != nullptr) x += load(p.bias_element, bias, row);
                store(d.result, values, row, activate(p.activation, x));
            }
        }
    }
}

void host_matmul(const SimgpuHostLaunch* launch) {
    MatmulParams p{};
    std::memcpy(&p, launch->params, std::min<std::size_t>(sizeof(p), launch->param_bytes));
    const bool keeps_source = p.product.beta.device != 0 || p.product.beta.value != 0;
    const bool copies = keeps_source && p.source != p.product.c;
    if (copies && !copy_source(launch, p)) return;
    SimgpuHostLaunch product = *launch;
    product.params = &p.product;
    product.param_bytes = sizeof(p.product);
    cublas::host_gemm(&product);
    if (p.bias != 0 || p.activation != Activation::None) finish(launch, p);
}

cublas::HostKernel load() {
    // The handle may be libcublas's, which has loaded its own.
    if (!cublas::blas::load()) return {};
    return cublas::load_host_kernel(kName, sizeof(MatmulParams), host_matmul);
}

}  // namespace

CUresult launch(const MatmulParams& params, CUstream stream) {
    static const cublas::HostKernel loaded = load();
    if (loaded.status != CUDA_SUCCESS) return loaded.status;
    constexpr std::int64_t kMostBlocks = 1 << 20;
    const std::int64_t tiles =
        (params.product.m + 127) / 128 * ((params.product.n + 127) / 128) * params.product.batch;
    const auto grid = static_cast<unsigned>(std::clamp<std::int64_t>(tiles, 1, kMostBlocks));
    MatmulParams copy = params;
    void* arguments[] = {&copy};
    return cublas::driver()->cuLaunchKernel_fn(reinterpret_cast<CUfunction>(loaded.kernel), grid, 1,
                                               1, 256, 1, 1, 0, stream, arguments, nullptr);
}

}  // namespace libswap::simgpu::cublaslt
