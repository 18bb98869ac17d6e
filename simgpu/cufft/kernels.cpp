// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cufft/kernels.hpp"

#include <algorithm>

#include "simgpu/cublas/driver.hpp"

namespace libswap::simgpu::cufft {
namespace {

constexpr const char* kName = "simgpu_cufft_transform";

}  // namespace

CUresult launch(const TransformParams& params, CUstream stream) {
    static const cublas::HostKernel loaded =
        cublas::load_host_kernel(kName, sizeof(TransformParams), host_transform);
    if (loaded.status != CUDA_SUCCESS) return loaded.status;
    constexpr std::int64_t kBlock = 256;
    constexpr std::int64_t kMostBlocks = 1 << 20;
    std::int64_t elements = params.batch;
    for (std::int32_t i = 0; i < params.rank; ++i)
        elements *= params.n[static_cast<std::size_t>(i)];
    // A thread for 8 elements, as such kernels have.
    const auto grid = static_cast<unsigned>(
        std::clamp<std::int64_t>((elements / 8 + kBlock - 1) / kBlock, 1, kMostBlocks));
    TransformParams copy = params;
    void* arguments[] = {&copy};
    return cublas::driver()->cuLaunchKernel_fn(reinterpret_cast<CUfunction>(loaded.kernel), grid, 1,
                                               1, kBlock, 1, 1, 0, stream, arguments, nullptr);
}

}  // namespace libswap::simgpu::cufft
