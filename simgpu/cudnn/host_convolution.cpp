// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The work of the convolutions' kernels.

#include "simgpu/cudnn/convolution.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/work.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// values = act(alpha values + beta z + bias), in place.
template <typename T>
void finish_forward(Work& work, const ConvolutionParams& p, std::vector<T>& values) {
    std::vector<T> z;
    if (p.beta != 0) {
        z = work.load<T>(p.z, p.z_desc);
    }
    std::vector<T> bias;
    if (p.bias != 0) {
        bias = work.load<T>(p.bias, p.bias_desc);
    }
    if (work.faulted()) {
        return;
    }
    const T alpha = static_cast<T>(p.alpha);
    const T beta = static_cast<T>(p.beta);
    for_each_channel(p.y_desc, [&](std::size_t channel, std::size_t begin, std::size_t end) {
        const T shift = bias.empty() ? T{} : bias[channel];
        for (std::size_t i = begin; i < end; ++i) {
            const T value = alpha * values[i] + (z.empty() ? T{} : beta * z[i]) + shift;
            values[i] = p.has_activation != 0 ? activate(p.activation, value) : value;
        }
    });
}

template <typename T>
void run(Work& work, Direction direction) {
    const auto p = work.params<ConvolutionParams>();
    work.use_workspace(p.workspace, p.workspace_bytes);
    const auto operand = [&](std::uint64_t va, const Tensor& desc, Direction written_by) {
        return direction == written_by ? std::vector<T>(static_cast<std::size_t>(desc.elements()))
                                       : work.load<T>(va, desc);
    };
    std::vector<T> x = operand(p.x, p.x_desc, Direction::BackwardData);
    std::vector<T> w = operand(p.w, p.w_desc, Direction::BackwardFilter);
    std::vector<T> y = operand(p.y, p.y_desc, Direction::Forward);
    if (work.faulted()) {
        return;
    }
    convolve(direction, p.shape, p.x_desc, x, p.w_desc, w, p.y_desc, y);
    work.cost(p.work_factor * convolution_flops(p.w_desc, p.y_desc), 0);
    switch (direction) {
        case Direction::Forward:
            if (p.bias == 0 && p.has_activation == 0 && p.z == p.y) {
                return work.store(p.y, p.y_desc, y, p.alpha, p.beta);
            }
            finish_forward(work, p, y);
            return work.store(p.y, p.y_desc, y);
        case Direction::BackwardData:
            return work.store(p.x, p.x_desc, x, p.alpha, p.beta);
        case Direction::BackwardFilter:
            return work.store(p.w, p.w_desc, w, p.alpha, p.beta);
    }
}

void run_by_type(const SimgpuHostLaunch* launch, Direction direction) {
    Work work(launch);
    compute_as(work.params<ConvolutionParams>().x_desc.data_type(),
               [&]<typename T>(T) { run<T>(work, direction); });
}

template <typename T>
void bias_gradient(Work& work, const BiasGradientParams& p) {
    const std::vector<T> dy = work.load<T>(p.dy, p.dy_desc);
    if (work.faulted()) {
        return;
    }
    std::vector<double> sums(static_cast<std::size_t>(p.dy_desc.dims[1]));
    for_each_channel(p.dy_desc, [&](std::size_t channel, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            sums[channel] += static_cast<double>(dy[i]);
        }
    });
    work.store(p.db, p.db_desc, sums, p.alpha, p.beta);
    work.cost(static_cast<double>(dy.size()), 0);
}

}  // namespace

void host_convolution_forward(const SimgpuHostLaunch* launch) {
    run_by_type(launch, Direction::Forward);
}

void host_convolution_backward_data(const SimgpuHostLaunch* launch) {
    run_by_type(launch, Direction::BackwardData);
}

void host_convolution_backward_filter(const SimgpuHostLaunch* launch) {
    run_by_type(launch, Direction::BackwardFilter);
}

void host_convolution_backward_bias(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<BiasGradientParams>();
    compute_as(p.dy_desc.data_type(), [&]<typename T>(T) { bias_gradient<T>(work, p); });
}

}  // namespace libswap::simgpu::cudnn
