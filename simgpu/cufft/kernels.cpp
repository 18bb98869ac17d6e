// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cufft/kernels.hpp"

#include <algorithm>
#include <string>

#include "simgpu/cublas/driver.hpp"

namespace libswap::simgpu::cufft {
namespace {

constexpr const char* kName = "simgpu_cufft_transform";

// What is loaded says how parameters lie; what is done when it is launched is native.
std::string ptx() {
    return std::string(".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry ") + kName +
           "(\n    .param .align 8 .b8 " + kName + "_param_0[" +
           std::to_string(sizeof(TransformParams)) + "]\n)\n{\n    trap;\n}\n";
}

struct Loaded {
    CUresult status = CUDA_ERROR_NOT_INITIALIZED;
    CUkernel kernel = nullptr;
};

Loaded load() {
    Loaded loaded;
    const cublas::Driver* d = cublas::driver();
    if (d == nullptr) return loaded;
    d->host_kernel_register(kName, host_transform);
    CUlibrary library = nullptr;
    loaded.status =
        d->cuLibraryLoadData_fn(&library, ptx().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (loaded.status == CUDA_SUCCESS)
        loaded.status = d->cuLibraryGetKernel_fn(&loaded.kernel, library, kName);
    return loaded;
}

}  // namespace

CUresult launch(const TransformParams& params, CUstream stream) {
    // Never unloaded: kernels of a library live in every context, also after a reset of the device.
    static const Loaded loaded = load();
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
