// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/kernels.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "simgpu/cublas/driver.hpp"
#include "simgpu/cudnn/convolution.hpp"
#include "simgpu/cudnn/graph.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/rnn.hpp"

namespace libswap::simgpu::cudnn {
namespace {

struct Entry {
    const char* name;
    std::size_t param_bytes;
    SimgpuHostKernel work;
};

constexpr Entry kEntries[] = {
#define SIMGPU_CUDNN_KERNEL(name, Params) {"simgpu_cudnn_" #name, sizeof(Params), host_##name},
#include "simgpu/cudnn/kernels.def"
#undef SIMGPU_CUDNN_KERNEL
};
constexpr auto kCount = static_cast<std::size_t>(Kernel::Count);

// What the driver's ABI allows.
constexpr std::size_t kMostParamBytes = 4096;
#define SIMGPU_CUDNN_KERNEL(name, Params) static_assert(sizeof(Params) <= kMostParamBytes);
#include "simgpu/cudnn/kernels.def"
#undef SIMGPU_CUDNN_KERNEL

// What is loaded says how parameters lie; what is done when it is launched is native.
std::string ptx() {
    std::string text = ".version 7.0\n.target sm_52\n.address_size 64\n";
    for (const Entry& entry : kEntries) {
        text += std::string(".visible .entry ") + entry.name + "(\n    .param .align 8 .b8 " +
                entry.name + "_param_0[" + std::to_string(entry.param_bytes) +
                "]\n)\n{\n    trap;\n}\n";
    }
    return text;
}

struct Loaded {
    CUresult status = CUDA_ERROR_NOT_INITIALIZED;
    CUkernel kernels[kCount] = {};
};

Loaded load() {
    Loaded loaded;
    const cublas::Driver* d = cublas::driver();
    if (d == nullptr) {
        return loaded;
    }
    for (const Entry& entry : kEntries) {
        d->host_kernel_register(entry.name, entry.work);
    }
    CUlibrary library = nullptr;
    loaded.status =
        d->cuLibraryLoadData_fn(&library, ptx().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    for (std::size_t i = 0; i < kCount && loaded.status == CUDA_SUCCESS; ++i) {
        loaded.status = d->cuLibraryGetKernel_fn(&loaded.kernels[i], library, kEntries[i].name);
    }
    return loaded;
}

}  // namespace

CUresult launch(Kernel kernel, const void* params, std::size_t param_bytes, CUstream stream,
                std::int64_t threads) {
    // Never unloaded: kernels of a library live in every context, also after a reset of the device.
    static const Loaded loaded = load();
    if (loaded.status != CUDA_SUCCESS) {
        return loaded.status;
    }
    constexpr unsigned kBlock = 256;
    constexpr std::int64_t kMostBlocks = 1 << 20;
    const auto grid = static_cast<unsigned>(
        std::clamp<std::int64_t>((threads + kBlock - 1) / kBlock, 1, kMostBlocks));
    const auto which = static_cast<std::size_t>(kernel);
    if (param_bytes != kEntries[which].param_bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<char> copy(param_bytes);
    std::memcpy(copy.data(), params, param_bytes);
    void* arguments[] = {copy.data()};
    return cublas::driver()->cuLaunchKernel_fn(reinterpret_cast<CUfunction>(loaded.kernels[which]),
                                               grid, 1, 1, kBlock, 1, 1, 0, stream, arguments,
                                               nullptr);
}

}  // namespace libswap::simgpu::cudnn
