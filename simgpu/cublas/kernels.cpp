// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cublas/kernels.hpp"

#include <algorithm>
#include <string>

#include "simgpu/cublas/driver.hpp"
#include "simgpu/cublas/host_kernels.hpp"

namespace libswap::simgpu::cublas {
namespace {

constexpr const char* kGemmName = "simgpu_cublas_gemm";
constexpr const char* kComplexGemmName = "simgpu_cublas_complex_gemm";
constexpr const char* kMatrixName = "simgpu_cublas_matrix";
constexpr const char* kVectorName = "simgpu_cublas_vector";

std::string entry(const char* name, std::size_t param_bytes) {
    return std::string(".visible .entry ") + name + "(\n    .param .align 8 .b8 " + name +
           "_param_0[" + std::to_string(param_bytes) + "]\n)\n{\n    trap;\n}\n";
}

// What is loaded says how parameters lie; what is done when it is launched is native
// (host_kernels.cpp).
std::string ptx() {
    return ".version 7.0\n.target sm_52\n.address_size 64\n" +
           entry(kGemmName, sizeof(GemmParams)) +
           entry(kComplexGemmName, sizeof(ComplexGemmParams)) +
           entry(kMatrixName, sizeof(MatrixParams)) + entry(kVectorName, sizeof(VectorParams));
}

struct Kernels {
    CUresult status = CUDA_ERROR_NOT_INITIALIZED;
    CUkernel gemm = nullptr;
    CUkernel complex_gemm = nullptr;
    CUkernel matrix = nullptr;
    CUkernel vector = nullptr;
};

Kernels load_kernels() {
    Kernels kernels;
    const Driver* d = driver();
    if (d == nullptr) {
        return kernels;
    }
    d->host_kernel_register(kGemmName, host_gemm);
    d->host_kernel_register(kComplexGemmName, host_complex_gemm);
    d->host_kernel_register(kMatrixName, host_matrix);
    d->host_kernel_register(kVectorName, host_vector);
    CUlibrary library = nullptr;
    kernels.status =
        d->cuLibraryLoadData_fn(&library, ptx().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    auto find = [&](CUkernel& kernel, const char* name) {
        if (kernels.status == CUDA_SUCCESS) {
            kernels.status = d->cuLibraryGetKernel_fn(&kernel, library, name);
        }
    };
    find(kernels.gemm, kGemmName);
    find(kernels.complex_gemm, kComplexGemmName);
    find(kernels.matrix, kMatrixName);
    find(kernels.vector, kVectorName);
    return kernels;
}

const Kernels& kernels() {
    // Never unloaded: kernels of a library live in every context, also after a reset of the device.
    static const Kernels loaded = load_kernels();
    return loaded;
}

template <typename Params>
CUresult launch_one(CUkernel kernel, const Params& params, CUstream stream, std::int64_t columns) {
    if (kernels().status != CUDA_SUCCESS) {
        return kernels().status;
    }
    constexpr unsigned kBlock = 256;
    constexpr std::int64_t kMostBlocks = 1 << 20;
    const auto grid = static_cast<unsigned>(
        std::clamp<std::int64_t>((columns + kBlock - 1) / kBlock, 1, kMostBlocks));
    Params copy = params;
    void* arguments[] = {&copy};
    return driver()->cuLaunchKernel_fn(reinterpret_cast<CUfunction>(kernel), grid, 1, 1, kBlock, 1,
                                       1, 0, stream, arguments, nullptr);
}

}  // namespace

CUresult launch(const GemmParams& params, CUstream stream) {
    // A thread for 8 x 8 results, as such kernels have.
    const std::int64_t tiles = (params.m + 7) / 8 * ((params.n + 7) / 8) * params.batch;
    return launch_one(kernels().gemm, params, stream, tiles);
}

CUresult launch(const ComplexGemmParams& params, CUstream stream) {
    const std::int64_t tiles = (params.m + 7) / 8 * ((params.n + 7) / 8) * params.batch;
    return launch_one(kernels().complex_gemm, params, stream, tiles);
}

CUresult launch(const MatrixParams& params, CUstream stream) {
    return launch_one(kernels().matrix, params, stream, params.m);
}

CUresult launch(const VectorParams& params, CUstream stream) {
    return launch_one(kernels().vector, params, stream, params.n);
}

}  // namespace libswap::simgpu::cublas
