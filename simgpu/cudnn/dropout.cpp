// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Dropout: descriptors, calls and the work of its kernels. Random numbers are counted: number n of
// a seed is a function of both, and the states in device memory hold the seed and the count.

#include "simgpu/cudnn/dropout.hpp"

#include "simgpu/cudnn/checks.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/problem.hpp"
#include "simgpu/cudnn/work.hpp"

namespace libswap::simgpu::cudnn {
namespace {

// As much as the vendor's generators take on a large device.
constexpr std::size_t kStatesBytes = std::size_t{1} << 20;

std::size_t reserve_bytes_of(const Tensor& tensor) {
    return static_cast<std::size_t>(tensor.elements() + 7) / 8;
}

template <typename T>
void drop(Work& work, const DropoutParams& p, bool draws) {
    std::vector<T> values = work.load<T>(p.x, p.x_desc);
    const auto bytes = static_cast<std::int64_t>(reserve_bytes_of(p.x_desc));
    std::uint8_t* fresh = draws ? work.span<std::uint8_t>(p.reserve, bytes) : nullptr;
    const std::uint8_t* kept = draws ? fresh : work.span<const std::uint8_t>(p.reserve, bytes);
    DropoutStates* states =
        draws && p.states != 0 ? work.span<DropoutStates>(p.states, 1) : nullptr;
    if (work.faulted()) {
        return;
    }
    if (draws) {
        std::memset(fresh, 0, static_cast<std::size_t>(bytes));
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool stays = states == nullptr || draw(*states) >= p.rate;
            fresh[i / 8] = static_cast<std::uint8_t>(fresh[i / 8] | (stays ? 1U << (i % 8) : 0U));
        }
    }
    const T factor = static_cast<T>(p.rate < 1 ? 1 / (1 - p.rate) : 0);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = (kept[i / 8] >> (i % 8) & 1U) != 0 ? values[i] * factor : T{};
    }
    work.cost(static_cast<double>(values.size()), static_cast<double>(bytes));
    work.store(p.y, p.y_desc, values);
}

cudnnStatus_t set(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle, float rate,
                  void* states, std::size_t bytes, unsigned long long seed) {
    if (descriptor == nullptr || handle == nullptr) {
        return bad_param("no descriptor, or no handle");
    }
    if (!(rate >= 0 && rate <= 1)) {
        return bad_param("the rate is not within 0 and 1");
    }
    if (states != nullptr && bytes < kStatesBytes) {
        return refuse(CUDNN_STATUS_INVALID_VALUE, "the states need more memory");
    }
    *descriptor = {rate, states, seed};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t run(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout, Kernel kernel,
                  cudnnTensorDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t y_desc,
                  void* y, void* reserve, std::size_t bytes) {
    SIMGPU_CUDNN_TRY(check_operands(handle, {dropout, x, y, reserve}))
    SIMGPU_CUDNN_TRY(check_alike({x_desc, y_desc}))
    if (bytes < reserve_bytes_of(x_desc->tensor)) {
        return bad_param("the reserve space is too small");
    }
    DropoutParams params{};
    params.x = address_of(x);
    params.y = address_of(y);
    params.reserve = address_of(reserve);
    params.states = address_of(dropout->states);
    params.rate = static_cast<double>(dropout->states == nullptr ? 0 : dropout->rate);
    params.x_desc = x_desc->tensor;
    params.y_desc = y_desc->tensor;
    ensure_context(*handle);
    return status_of(launch(kernel, params, handle->stream, params.x_desc.elements()));
}

}  // namespace

void host_dropout_states(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<DropoutStateParams>();
    auto* bytes = work.span<std::uint8_t>(p.states, static_cast<std::int64_t>(p.states_bytes));
    if (bytes == nullptr) {
        return;
    }
    std::memset(bytes, 0, p.states_bytes);
    const DropoutStates states{p.seed, 0};
    std::memcpy(bytes, &states, sizeof(states));
    work.cost(0, static_cast<double>(p.states_bytes));
}

void host_dropout_forward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<DropoutParams>();
    compute_as(p.x_desc.data_type(), [&]<typename T>(T) { drop<T>(work, p, true); });
}

void host_dropout_backward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<DropoutParams>();
    compute_as(p.x_desc.data_type(), [&]<typename T>(T) { drop<T>(work, p, false); });
}

}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* descriptor) {
    return create_descriptor(descriptor);
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t descriptor) {
    return destroy_descriptor(descriptor);
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, std::size_t* bytes) {
    if (handle == nullptr || bytes == nullptr) {
        return bad_param("no handle, or no place for the size");
    }
    *bytes = kStatesBytes;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x, std::size_t* bytes) {
    if (x == nullptr || bytes == nullptr) {
        return bad_param("no descriptor, or no place for the size");
    }
    *bytes = reserve_bytes_of(x->tensor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle,
                                        float rate, void* states, std::size_t bytes,
                                        unsigned long long seed) {
    SIMGPU_CUDNN_TRY(set(descriptor, handle, rate, states, bytes, seed))
    if (states == nullptr) {
        return CUDNN_STATUS_SUCCESS;
    }
    const DropoutStateParams params{address_of(states), bytes, seed};
    ensure_context(*handle);
    return status_of(launch(Kernel::dropout_states, params, handle->stream,
                            static_cast<std::int64_t>(bytes / sizeof(DropoutStates))));
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t descriptor,
                                            cudnnHandle_t handle, float rate, void* states,
                                            std::size_t bytes, unsigned long long seed) {
    return set(descriptor, handle, rate, states, bytes, seed);
}

cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle,
                                        float* rate, void** states, unsigned long long* seed) {
    if (descriptor == nullptr || handle == nullptr) {
        return bad_param("no descriptor, or no handle");
    }
    put(rate, descriptor->rate);
    put(states, descriptor->states);
    put(seed, descriptor->seed);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t dropout,
                                  const cudnnTensorDescriptor_t x_desc, const void* x,
                                  const cudnnTensorDescriptor_t y_desc, void* y, void* reserve,
                                  std::size_t bytes) {
    return run(handle, dropout, Kernel::dropout_forward, x_desc, x, y_desc, y, reserve, bytes);
}

cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t dropout,
                                   const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   const cudnnTensorDescriptor_t dx_desc, void* dx, void* reserve,
                                   std::size_t bytes) {
    return run(handle, dropout, Kernel::dropout_backward, dy_desc, dy, dx_desc, dx, reserve, bytes);
}

}  // extern "C"
