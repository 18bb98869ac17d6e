// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What PyTorch 2.15 binds in libcufft: plans by cufftXtMakePlanMany and their execution. Plans need
// no work area.

#include <cufftXt.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "simgpu/cublas/driver.hpp"
#include "simgpu/cufft/kernels.hpp"
#include "simgpu/library_log.hpp"

namespace libswap::simgpu::cufft {
namespace {

struct Plan {
    TransformParams params;
    CUstream stream = nullptr;
    bool made = false;
};

/// Plans by their handles. The program uses a plan in one thread at a time.
struct Plans {
    std::mutex mutex;
    std::map<cufftHandle, std::unique_ptr<Plan>> all;
    cufftHandle next = 1;
};

Plans& plans() {
    static auto* const kept = new Plans;  // programs destroy plans while the process exits
    return *kept;
}

Plan* find(cufftHandle handle) {
    Plans& p = plans();
    const std::lock_guard lock(p.mutex);
    const auto found = p.all.find(handle);
    return found == p.all.end() ? nullptr : found->second.get();
}

std::optional<Layout> layout_of(cudaDataType type) {
    Layout layout;
    layout.is_complex = type == CUDA_C_16F || type == CUDA_C_32F || type == CUDA_C_64F;
    switch (type) {
        case CUDA_R_16F:
        case CUDA_C_16F:
            layout.precision = Precision::Half;
            return layout;
        case CUDA_R_32F:
        case CUDA_C_32F:
            return layout;
        case CUDA_R_64F:
        case CUDA_C_64F:
            layout.precision = Precision::Double;
            return layout;
        default:
            return std::nullopt;
    }
}

/// Without `embed` arrays lie one behind the other, without gaps.
void place(Layout& layout, const TransformParams& params, bool is_half, const long long* embed,
           long long stride, long long distance) {
    const auto rank = static_cast<std::size_t>(params.rank);
    if (embed != nullptr) {
        for (std::size_t i = 0; i < rank; ++i) layout.embed[i] = embed[i];
        layout.stride = stride;
        layout.distance = distance;
        return;
    }
    layout.embed = params.n;
    if (is_half) layout.embed[rank - 1] = params.n[rank - 1] / 2 + 1;
    layout.distance = 1;
    for (std::size_t i = 0; i < rank; ++i) layout.distance *= layout.embed[i];
}

}  // namespace
}  // namespace libswap::simgpu::cufft

using namespace libswap::simgpu::cufft;  // NOLINT: the C ABI's bodies follow

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT cufftResult cufftCreate(cufftHandle* handle) {
    if (handle == nullptr) return CUFFT_INVALID_VALUE;
    if (libswap::simgpu::cublas::driver() == nullptr) return CUFFT_SETUP_FAILED;
    Plans& p = plans();
    const std::lock_guard lock(p.mutex);
    *handle = p.next++;
    p.all.emplace(*handle, std::make_unique<Plan>());
    return CUFFT_SUCCESS;
}

EXPORT cufftResult cufftDestroy(cufftHandle handle) {
    Plans& p = plans();
    const std::lock_guard lock(p.mutex);
    return p.all.erase(handle) == 0 ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}

EXPORT cufftResult cufftSetAutoAllocation(cufftHandle handle, int) {
    return find(handle) == nullptr ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}

EXPORT cufftResult cufftSetWorkArea(cufftHandle handle, void*) {
    return find(handle) == nullptr ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}

EXPORT cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
    Plan* plan = find(handle);
    if (plan == nullptr) return CUFFT_INVALID_PLAN;
    plan->stream = stream;
    return CUFFT_SUCCESS;
}

EXPORT cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long* n,
                                       long long* inembed, long long istride, long long idist,
                                       cudaDataType inputtype, long long* onembed,
                                       long long ostride, long long odist, cudaDataType outputtype,
                                       long long batch, std::size_t* work_bytes, cudaDataType) {
    Plan* plan = find(handle);
    if (plan == nullptr || plan->made) return CUFFT_INVALID_PLAN;
    if (rank < 1 || rank > static_cast<int>(kMaxRank) || n == nullptr || batch < 1)
        return CUFFT_INVALID_SIZE;
    const auto from = layout_of(inputtype);
    const auto to = layout_of(outputtype);
    if (!from || !to || from->precision != to->precision || (!from->is_complex && !to->is_complex))
        return CUFFT_INVALID_TYPE;
    TransformParams& params = plan->params;
    params.from = *from;
    params.to = *to;
    params.rank = rank;
    params.batch = batch;
    for (int i = 0; i < rank; ++i) {
        if (n[i] < 1) return CUFFT_INVALID_SIZE;
        params.n[static_cast<std::size_t>(i)] = n[i];
    }
    // As documented: either of them missing, both layouts are the simple one.
    const bool simple = inembed == nullptr || onembed == nullptr;
    place(params.from, params, !to->is_complex, simple ? nullptr : inembed, istride, idist);
    place(params.to, params, !from->is_complex, simple ? nullptr : onembed, ostride, odist);
    plan->made = true;
    if (work_bytes != nullptr) *work_bytes = 0;
    return CUFFT_SUCCESS;
}

EXPORT cufftResult cufftXtExec(cufftHandle handle, void* input, void* output, int direction) {
    Plan* plan = find(handle);
    if (plan == nullptr || !plan->made) return CUFFT_INVALID_PLAN;
    if (input == nullptr || output == nullptr) return CUFFT_INVALID_VALUE;
    const bool real = !plan->params.from.is_complex || !plan->params.to.is_complex;
    if (real && input == output) {
        libswap::simgpu::say_unbuilt("cufft", "cufftXtExec of real arrays in place");
        return CUFFT_NOT_SUPPORTED;
    }
    CUcontext context = nullptr;
    if (libswap::simgpu::cublas::current_context(context) != CUDA_SUCCESS) return CUFFT_EXEC_FAILED;
    TransformParams params = plan->params;
    params.input = reinterpret_cast<std::uint64_t>(input);
    params.output = reinterpret_cast<std::uint64_t>(output);
    // What is real says which way it goes.
    params.sign = real ? (params.from.is_complex ? 1 : -1) : direction == CUFFT_FORWARD ? -1 : 1;
    return launch(params, plan->stream) == CUDA_SUCCESS ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}
