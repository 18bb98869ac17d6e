// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Softmax over a dimension that is not the last, and negative log likelihoods of each element or of
// planes, in float32 (torch 2.15's SoftMax.cu, Loss.cu, NLLLoss2d.cu). Targets are of 64 bits.

#include <algorithm>
#include <cmath>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

double wide(float x) { return static_cast<double>(x); }

/// (out, in, outer, elements, inner), or backward (gradient out, result, gradient, ...). Of a
/// softmax the gradient is times the result already.
bool softmax(const NamedLaunch& launch, bool logarithm, bool backward) {
    const std::size_t sizes = backward ? 3 : 2;
    const std::uint64_t outer = launch.get<std::uint32_t>(sizes);
    const std::uint64_t length = launch.get<std::uint32_t>(sizes + 1);
    const std::uint64_t inner = launch.get<std::uint32_t>(sizes + 2);
    const std::uint64_t number = outer * length * inner;
    auto* out = launch.write<float>(launch.get<std::uint64_t>(0), number);
    const auto* result = launch.read<float>(launch.get<std::uint64_t>(1), number);
    const auto* in = backward ? launch.read<float>(launch.get<std::uint64_t>(2), number) : result;
    if (out == nullptr || in == nullptr || result == nullptr) return true;
    for (std::uint64_t line = 0; line < outer * inner; ++line) {
        const std::uint64_t first = line / inner * length * inner + line % inner;
        const auto at = [&](std::uint64_t i) { return first + i * inner; };
        double most = -HUGE_VAL;
        double sum = 0;
        for (std::uint64_t i = 0; !backward && i < length; ++i)
            most = std::fmax(most, wide(in[at(i)]));
        for (std::uint64_t i = 0; i < length; ++i) {
            if (!backward)
                sum += std::exp(wide(in[at(i)]) - most);
            else
                sum += wide(in[at(i)]);
        }
        for (std::uint64_t i = 0; i < length; ++i) {
            const double x = wide(in[at(i)]);
            const double y = wide(result[at(i)]);
            const double value = backward    ? (x - (logarithm ? std::exp(y) : y) * sum)
                                 : logarithm ? x - most - std::log(sum)
                                             : std::exp(x - most) / sum;
            out[at(i)] = static_cast<float>(value);
        }
    }
    launch.cost(8.0 * static_cast<double>(number),
                (backward ? 12.0 : 8.0) * static_cast<double>(number));
    return true;
}

/// Where things lie in a loss of each element: places of rows by sample, class and place.
struct Shape {
    std::uint64_t samples = 0;
    std::uint64_t classes = 0;
    std::uint64_t places = 1;

    std::uint64_t targets() const { return samples * places; }
    std::uint64_t at(std::uint64_t target, std::int64_t label) const {
        return (target / places * classes + static_cast<std::uint64_t>(label)) * places +
               target % places;
    }
};

double weight_of(const float* weights, std::int64_t label) {
    return weights == nullptr ? 1 : wide(weights[label]);
}

/// Parameters of the four kernels of each element's loss; those of planes are given by accessors
/// (an address, sizes, strides), which are taken for dense.
struct EachForm {
    std::size_t in = 0;
    std::size_t target = 0;
    std::size_t out = 0;
    std::size_t weights = 0;
    std::size_t ignored = 0;
    bool planes = false;
    bool backward = false;
};

/// Whether an accessor of `dims` dimensions is dense.
bool dense(const NamedLaunch& launch, std::size_t parameter, std::size_t dims) {
    if (launch.parameter(parameter).size() != 8 * (1 + 2 * dims)) return false;
    std::int64_t stride = 1;
    for (std::size_t d = dims; d-- > 0;) {
        const auto size = launch.get<std::int64_t>(parameter, 8 * (1 + d));
        if (size > 1 && launch.get<std::int64_t>(parameter, 8 * (1 + dims + d)) != stride)
            return false;
        stride *= size;
    }
    return true;
}

/// The stride of what one number may stand for: 0 where it does.
std::uint64_t gradient_step(const NamedLaunch& launch, const EachForm& form) {
    const std::size_t dims = form.planes ? 3 : 1;
    const auto last = launch.get<std::uint64_t>(form.in, 8 * (2 * dims));
    return form.backward ? last : 1;
}

bool each(const NamedLaunch& launch, const EachForm& form) {
    const std::size_t rows = form.backward ? form.out : form.in;
    const std::size_t dims = form.planes ? 4 : 2;
    if (!dense(launch, rows, dims)) return false;
    Shape shape{launch.get<std::uint64_t>(rows, 8), launch.get<std::uint64_t>(rows, 16)};
    if (form.planes)
        shape.places = launch.get<std::uint64_t>(rows, 24) * launch.get<std::uint64_t>(rows, 32);
    if (form.planes && !dense(launch, form.target, 3)) return false;
    const std::uint64_t number = shape.samples * shape.classes * shape.places;
    const std::uint64_t step = gradient_step(launch, form);
    if (form.backward && step > 1) return false;
    if (!form.backward && form.planes && !dense(launch, form.out, 3)) return false;
    const std::uint64_t ins = form.backward ? (step == 0 ? 1 : shape.targets()) : number;
    const auto* in = launch.read<float>(launch.get<std::uint64_t>(form.in), ins);
    auto* out = launch.write<float>(launch.get<std::uint64_t>(form.out),
                                    form.backward ? number : shape.targets());
    const auto* target =
        launch.read<std::int64_t>(launch.get<std::uint64_t>(form.target), shape.targets());
    const auto weights_va = launch.get<std::uint64_t>(form.weights);
    const auto* weights = weights_va == 0 ? nullptr : launch.read<float>(weights_va, shape.classes);
    const auto ignored = launch.get<std::int64_t>(form.ignored);
    if (in == nullptr || out == nullptr || target == nullptr) return true;
    for (std::uint64_t i = 0; i < shape.targets(); ++i) {
        const std::int64_t label = target[i];
        const bool counts =
            label != ignored && label >= 0 && static_cast<std::uint64_t>(label) < shape.classes;
        if (!counts) {
            if (!form.backward) out[i] = 0;
            continue;
        }
        const double weight = -weight_of(weights, label);
        if (form.backward)
            out[shape.at(i, label)] = static_cast<float>(weight * wide(in[step == 0 ? 0 : i]));
        else
            out[i] = static_cast<float>(weight * wide(in[shape.at(i, label)]));
    }
    launch.cost(static_cast<double>(shape.targets()), 16.0 * static_cast<double>(shape.targets()));
    return true;
}

/// (sum out, weight out, in, targets, weights, classes, places, blocks of a sample, ignored): adds
/// to both.
bool sum_planes(const NamedLaunch& launch) {
    const std::uint64_t blocks = std::max<std::uint32_t>(launch.get<std::uint32_t>(7), 1);
    const Shape shape{launch.grid()[0] / blocks, launch.get<std::uint32_t>(5),
                      launch.get<std::uint32_t>(6)};
    auto* sum = launch.write<float>(launch.get<std::uint64_t>(0), 1);
    auto* all = launch.write<float>(launch.get<std::uint64_t>(1), 1);
    const auto* in =
        launch.read<float>(launch.get<std::uint64_t>(2), shape.targets() * shape.classes);
    const auto* target = launch.read<std::int64_t>(launch.get<std::uint64_t>(3), shape.targets());
    const auto weights_va = launch.get<std::uint64_t>(4);
    const auto* weights = weights_va == 0 ? nullptr : launch.read<float>(weights_va, shape.classes);
    const auto ignored = launch.get<std::int64_t>(8);
    if (sum == nullptr || all == nullptr || in == nullptr || target == nullptr) return true;
    double losses = 0;
    double weight = 0;
    for (std::uint64_t i = 0; i < shape.targets(); ++i) {
        const std::int64_t label = target[i];
        if (label == ignored || label < 0 || static_cast<std::uint64_t>(label) >= shape.classes)
            continue;
        losses -= wide(in[shape.at(i, label)]) * weight_of(weights, label);
        weight += weight_of(weights, label);
    }
    *sum = static_cast<float>(wide(*sum) + losses);
    *all = static_cast<float>(wide(*all) + weight);
    launch.cost(2.0 * static_cast<double>(shape.targets()),
                12.0 * static_cast<double>(shape.targets()));
    return true;
}

/// (sum, weight): the sum becomes the mean.
bool average(const NamedLaunch& launch) {
    auto* sum = launch.write<float>(launch.get<std::uint64_t>(0), 1);
    const auto* weight = launch.read<float>(launch.get<std::uint64_t>(1), 1);
    if (sum != nullptr && weight != nullptr) *sum /= *weight;
    return true;
}

/// (gradient out, gradient, targets, weights, weight of all, mean, classes, places, blocks of a
/// sample, ignored)
bool planes_gradient(const NamedLaunch& launch) {
    const std::uint64_t blocks = std::max<std::uint32_t>(launch.get<std::uint32_t>(8), 1);
    const Shape shape{launch.grid()[0] / blocks, launch.get<std::uint32_t>(6),
                      launch.get<std::uint32_t>(7)};
    auto* out = launch.write<float>(launch.get<std::uint64_t>(0), shape.targets() * shape.classes);
    const auto* grad = launch.read<float>(launch.get<std::uint64_t>(1), 1);
    const auto* target = launch.read<std::int64_t>(launch.get<std::uint64_t>(2), shape.targets());
    const auto weights_va = launch.get<std::uint64_t>(3);
    const auto* weights = weights_va == 0 ? nullptr : launch.read<float>(weights_va, shape.classes);
    const auto* all = launch.read<float>(launch.get<std::uint64_t>(4), 1);
    const auto ignored = launch.get<std::int64_t>(9);
    if (out == nullptr || grad == nullptr || target == nullptr || all == nullptr) return true;
    const double factor = wide(*grad) / (launch.get<std::uint8_t>(5) != 0 ? wide(*all) : 1);
    for (std::uint64_t i = 0; i < shape.targets(); ++i) {
        const std::int64_t label = target[i];
        if (label == ignored || label < 0 || static_cast<std::uint64_t>(label) >= shape.classes)
            continue;
        out[shape.at(i, label)] = static_cast<float>(-weight_of(weights, label) * factor);
    }
    launch.cost(static_cast<double>(shape.targets()), 12.0 * static_cast<double>(shape.targets()));
    return true;
}

NamedKernel find_each(const KernelName& name) {
    const auto bind = [](const EachForm& form) -> NamedKernel {
        return [form](const NamedLaunch& launch) { return each(launch, form); };
    };
    if (name.base == "nll_loss_forward_no_reduce_cuda_kernel") return bind({1, 2, 3, 4, 6});
    if (name.base == "nll_loss_backward_no_reduce_cuda_kernel")
        return bind({2, 1, 3, 4, 6, false, true});
    if (name.base == "nll_loss2d_forward_no_reduce_kernel") return bind({1, 2, 3, 4, 5, true});
    if (name.base == "nll_loss2d_backward_no_reduce_kernel")
        return bind({2, 1, 3, 4, 5, true, true});
    return {};
}

}  // namespace

NamedKernel find_spatial_loss(const KernelName& name) {
    if (!name.mentions("<float")) return {};
    if (name.base == "cunn_SpatialSoftMaxForward" && name.mentions("<float, float, float, int, "))
        return [logarithm = name.mentions("LogSoftMaxForwardEpilogue")](const NamedLaunch& launch) {
            return softmax(launch, logarithm, false);
        };
    if (name.base == "cunn_SpatialSoftMaxBackward" && name.mentions("<float, float, float, int, "))
        return [logarithm = name.mentions("LogSoftMaxBackwardEpilogue")](
                   const NamedLaunch& launch) { return softmax(launch, logarithm, true); };
    if (name.base == "nll_loss2d_forward_kernel" && name.mentions("<float, float, int>"))
        return sum_planes;
    if (name.base == "nll_loss2d_forward_size_average_kernel") return average;
    if (name.base == "nll_loss2d_backward_kernel" && name.mentions("<float, int>"))
        return planes_gradient;
    return find_each(name);
}

}  // namespace simgpu::torch
