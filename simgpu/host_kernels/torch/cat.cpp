// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// torch.cat (torch 2.15's Shape.cu): up to 128 inputs per launch, one per row of blocks, with
// 32-bit indices.

#include <cstdlib>
#include <cstring>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

constexpr std::size_t kMostDims = 4;

/// TensorSizeStride: sizes, then strides, in elements.
struct Shape {
    std::uint32_t sizes[kMostDims] = {};
    std::uint32_t strides[kMostDims] = {};

    Shape(const NamedLaunch& launch, std::size_t parameter, std::size_t at) {
        for (std::size_t i = 0; i < kMostDims; ++i) {
            sizes[i] = launch.get<std::uint32_t>(parameter, at + 4 * i);
            strides[i] = launch.get<std::uint32_t>(parameter, at + 4 * (kMostDims + i));
        }
    }
};

/// The kernel's template arguments (element, index, dimensions, most inputs, shapes of inputs).
struct Form {
    std::size_t element = 0;
    std::size_t dims = 0;
    std::size_t inputs = 0;
    std::size_t shapes = 0;
    /// Elements that are moved as one, of `element` bytes together: the output's shape counts such,
    /// and the inputs are contiguous.
    std::size_t together = 1;
};

/// Where element `index` lies in the output, whose dimension `joined` is `joined_size` long here.
std::uint64_t place(const Shape& out, std::size_t dims, std::size_t joined,
                    std::uint32_t joined_size, std::uint64_t index) {
    std::uint64_t offset = 0;
    for (std::size_t i = dims - 1; i >= 1; --i) {
        const std::uint64_t size = i == joined ? joined_size : out.sizes[i];
        offset += index % size * out.strides[i];
        index /= size;
    }
    return offset + index * out.strides[0];
}

/// (out, inputs, shape of the output, joined dimension, its stride in the output or, where several
/// elements are moved as one, the elements of an inner slice). The inputs'
/// struct lists addresses, then where each begins along the dimension, its size there, its
/// elements, whether it is contiguous, and the shapes of those that are not.
bool cat(const NamedLaunch& launch, const Form& form) {
    const Shape out(launch, 2, 0);
    const auto joined = launch.get<std::uint32_t>(3);
    const auto joined_stride = launch.get<std::uint32_t>(4);
    const std::size_t count = launch.grid()[1];
    if (count > form.inputs || joined >= form.dims || launch.count() != 5) return false;
    const auto number = [&](std::size_t list, std::size_t input) {
        return launch.get<std::uint32_t>(1, form.inputs * (8 + 4 * list) + 4 * input);
    };
    for (std::size_t i = 0; i < count; ++i) {
        const bool several = form.together > 1;
        const std::uint64_t elements = number(2, i) / form.together;
        const auto size = static_cast<std::uint32_t>(
            several ? std::uint64_t{number(1, i)} * joined_stride / form.together : number(1, i));
        if (elements == 0 || size == 0) continue;
        const std::uint64_t first = std::uint64_t{number(0, i)} * joined_stride / form.together;
        const std::uint64_t last = place(out, form.dims, joined, size, elements - 1);
        const bool strided = form.together == 1 && form.shapes > i &&
                             launch.get<std::uint8_t>(1, form.inputs * 20 + i) == 0;
        const Shape in(launch, 1, (form.inputs * 21 + 3) / 4 * 4 + i * sizeof(Shape));
        const auto source = [&](std::uint64_t e) {
            return strided ? place(in, form.dims, joined, size, e) : e;
        };
        const auto* from = launch.read<std::byte>(launch.get<std::uint64_t>(1, 8 * i),
                                                  (source(elements - 1) + 1) * form.element);
        auto* to = launch.write<std::byte>(launch.get<std::uint64_t>(0) + first * form.element,
                                           (last + 1) * form.element);
        if (from == nullptr || to == nullptr) return true;
        for (std::uint64_t e = 0; e < elements; ++e)
            std::memcpy(to + place(out, form.dims, joined, size, e) * form.element,
                        from + source(e) * form.element, form.element);
        launch.cost(0, 2.0 * static_cast<double>(elements * form.element));
    }
    return true;
}

std::size_t number(const std::string& text) {
    return static_cast<std::size_t>(std::strtoul(text.c_str(), nullptr, 10));
}

}  // namespace

NamedKernel find_cat(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    if (name.base.rfind("CatArrayBatchedCopy", 0) != 0 || arguments.size() < 5 ||
        arguments[1] != "unsigned int")
        return {};
    const std::size_t width = arguments[0].find("OpaqueType<");
    if (width == std::string::npos) return {};
    Form form{number(arguments[0].substr(width + std::strlen("OpaqueType<"))), number(arguments[2]),
              number(arguments[3]), number(arguments[4])};
    if (name.base.ends_with("_vectorized")) {
        // (..., bytes moved as one, elements in them)
        if (arguments.size() != 7) return {};
        form.element = number(arguments[5]);
        form.together = number(arguments[6]);
        if (form.together < 2) return {};
    }
    if (form.element == 0 || form.dims == 0 || form.dims > kMostDims || form.inputs == 0) return {};
    return [form](const NamedLaunch& launch) { return cat(launch, form); };
}

}  // namespace simgpu::torch
