// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The work of the kernels that go element by element through whole tensors, and of softmax.

#include <algorithm>
#include <cmath>

#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/work.hpp"

namespace libswap::simgpu::cudnn {
namespace {

template <typename T>
void activation_forward(Work& work) {
    const auto p = work.params<ActivationParams>();
    std::vector<T> values = work.load<T>(p.x, p.x_desc);
    for (T& value : values) {
        value = activate(p.activation, value);
    }
    work.cost(static_cast<double>(values.size()), 0);
    work.store(p.y, p.y_desc, values, p.alpha, p.beta);
}

template <typename T>
void activation_backward(Work& work) {
    const auto p = work.params<ActivationGradientParams>();
    const std::vector<T> y = work.load<T>(p.y, p.y_desc);
    const std::vector<T> x = work.load<T>(p.x, p.x_desc);
    std::vector<T> values = work.load<T>(p.dy, p.dy_desc);
    if (work.faulted()) {
        return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = activation_gradient(p.activation, y[i], x[i], values[i]);
    }
    work.cost(2 * static_cast<double>(values.size()), 0);
    work.store(p.dx, p.dx_desc, values, p.alpha, p.beta);
}

/// Softmax goes along one axis of a tensor of three.
struct Axes {
    std::size_t outer;
    std::size_t length;
    std::size_t inner;
};

Axes softmax_axes(const Tensor& tensor, std::int32_t mode) {
    const auto images = static_cast<std::size_t>(tensor.dims[0]);
    const std::size_t rest = static_cast<std::size_t>(tensor.elements()) / images;
    if (mode == CUDNN_SOFTMAX_MODE_INSTANCE) {
        return {images, rest, 1};
    }
    const auto channels = static_cast<std::size_t>(tensor.dims[1]);
    return {images, channels, rest / channels};
}

/// Calls visit(place of the first, distance to the next) for each line along the axis.
template <typename Visit>
void for_each_line(const Axes& axes, const Visit& visit) {
    for (std::size_t outer = 0; outer < axes.outer; ++outer) {
        for (std::size_t inner = 0; inner < axes.inner; ++inner) {
            visit(outer * axes.length * axes.inner + inner, axes.inner);
        }
    }
}

template <typename T>
void softmax_line(T* at, std::size_t step, std::size_t length, std::int32_t algorithm) {
    T largest = algorithm == CUDNN_SOFTMAX_FAST ? T{} : at[0];
    if (algorithm != CUDNN_SOFTMAX_FAST) {
        for (std::size_t i = 0; i < length; ++i) {
            largest = std::max(largest, at[i * step]);
        }
    }
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
        sum += static_cast<double>(std::exp(at[i * step] - largest));
    }
    const T log_sum = static_cast<T>(std::log(sum));
    const T factor = static_cast<T>(1 / sum);
    for (std::size_t i = 0; i < length; ++i) {
        T& value = at[i * step];
        value = algorithm == CUDNN_SOFTMAX_LOG ? value - largest - log_sum
                                               : std::exp(value - largest) * factor;
    }
}

template <typename T>
void softmax_forward(Work& work) {
    const auto p = work.params<SoftmaxParams>();
    std::vector<T> values = work.load<T>(p.x, p.x_desc);
    if (work.faulted()) {
        return;
    }
    const Axes axes = softmax_axes(p.x_desc, p.mode);
    for_each_line(axes, [&](std::size_t first, std::size_t step) {
        softmax_line(values.data() + first, step, axes.length, p.algorithm);
    });
    work.cost(4 * static_cast<double>(values.size()), 0);
    work.store(p.y, p.y_desc, values, p.alpha, p.beta);
}

template <typename T>
void softmax_backward(Work& work) {
    const auto p = work.params<SoftmaxParams>();
    const std::vector<T> y = work.load<T>(p.y, p.y_desc);
    std::vector<T> values = work.load<T>(p.x, p.x_desc);
    if (work.faulted()) {
        return;
    }
    const bool is_log = p.algorithm == CUDNN_SOFTMAX_LOG;
    const Axes axes = softmax_axes(p.y_desc, p.mode);
    for_each_line(axes, [&](std::size_t first, std::size_t step) {
        double sum = 0;
        for (std::size_t i = 0; i < axes.length; ++i) {
            const std::size_t at = first + i * step;
            sum += static_cast<double>(is_log ? values[at] : values[at] * y[at]);
        }
        for (std::size_t i = 0; i < axes.length; ++i) {
            const std::size_t at = first + i * step;
            values[at] = is_log ? values[at] - std::exp(y[at]) * static_cast<T>(sum)
                                : y[at] * (values[at] - static_cast<T>(sum));
        }
    });
    work.cost(4 * static_cast<double>(values.size()), 0);
    work.store(p.dx, p.dx_desc, values, p.alpha, p.beta);
}

}  // namespace

void host_activation_forward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<ActivationParams>().x_desc.data_type(),
               [&]<typename T>(T) { activation_forward<T>(work); });
}

void host_activation_backward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<ActivationGradientParams>().x_desc.data_type(),
               [&]<typename T>(T) { activation_backward<T>(work); });
}

void host_softmax_forward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<SoftmaxParams>().x_desc.data_type(),
               [&]<typename T>(T) { softmax_forward<T>(work); });
}

void host_softmax_backward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<SoftmaxParams>().x_desc.data_type(),
               [&]<typename T>(T) { softmax_backward<T>(work); });
}

}  // namespace libswap::simgpu::cudnn
