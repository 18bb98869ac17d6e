// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/torch/elementwise.hpp"

#include <string>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

std::size_t aligned(std::size_t offset, std::size_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

/// The addresses of a launch's tensors, and the types in which they lie in memory.
struct Tensors {
    std::array<std::uint64_t, kMostInputs + 1> addresses{};
    std::array<ScalarType, kMostInputs + 1> types{};
};

/// at::native::memory::LoadWithCast and StoreWithCast: a type per tensor, then sizes.
bool read_types(std::span<const std::byte> bytes, std::size_t count, ScalarType* types) {
    if (bytes.size() < count) return false;
    for (std::size_t i = 0; i < count; ++i) {
        types[i] = static_cast<ScalarType>(std::to_integer<std::int8_t>(bytes[i]));
        if (size_of(types[i]) == 0 || is_complex(types[i])) return false;
    }
    return true;
}

bool run(const NamedLaunch& launch, const ElementwiseOp& op, const Tensors& tensors,
         Elements& elements) {
    elements.inputs = op.inputs;
    elements.types = tensors.types;
    elements.functor = op.types;
    elements.count = launch.get<std::uint32_t>(0);
    if (elements.offsets.dense()) {
        std::array<std::uint32_t, kMostInputs + 1> sizes{};
        for (std::size_t i = 0; i <= op.inputs; ++i) sizes[i] = size_of(tensors.types[i]);
        elements.offsets.set_dense(std::span(sizes).first(op.inputs + 1));
    }
    double bytes = 0;
    for (std::size_t i = 0; i <= op.inputs; ++i) {
        const std::uint64_t extent =
            elements.offsets.extent(i, elements.count, size_of(tensors.types[i]));
        // What is read is only read: a write would count as one.
        elements.data[i] =
            i == 0 ? launch.write<std::byte>(tensors.addresses[i], extent)
                   : const_cast<std::byte*>(launch.read<std::byte>(tensors.addresses[i], extent));
        if (elements.data[i] == nullptr) return true;
        bytes += static_cast<double>(extent);
    }
    elements.launch = &launch;
    op.apply(elements);
    launch.cost(static_cast<double>(elements.count * (op.inputs + 1)), bytes);
    return true;
}

/// (int count, functor, array of pointers)
bool run_vectorized(const NamedLaunch& launch, const ElementwiseOp& op) {
    Elements elements;
    Tensors tensors{{}, op.types};
    elements.state = launch.parameter(1);
    for (std::size_t i = 0; i <= op.inputs; ++i)
        tensors.addresses[i] = launch.get<std::uint64_t>(2, 8 * i);
    return run(launch, op, tensors, elements);
}

/// (int count, functor, array of pointers, input offsets, output offsets, loader, storer)
bool run_unrolled(const NamedLaunch& launch, const ElementwiseOp& op, bool casts) {
    if (launch.count() < 7) return false;
    Elements elements;
    Tensors tensors{{}, op.types};
    elements.state = launch.parameter(1);
    for (std::size_t i = 0; i <= op.inputs; ++i)
        tensors.addresses[i] = launch.get<std::uint64_t>(2, 8 * i);
    // Strided forms go through elementwise_kernel.
    if (launch.parameter(3).size() > 1 || launch.parameter(4).size() > 1) return false;
    if (casts && (!read_types(launch.parameter(5), op.inputs, &tensors.types[1]) ||
                  !read_types(launch.parameter(6), 1, tensors.types.data())))
        return false;
    return run(launch, op, tensors, elements);
}

/// (int count, lambda), which has captured offsets, pointers, the functor and, if it casts, types.
bool run_strided(const NamedLaunch& launch, const ElementwiseOp& op, bool casts) {
    const auto lambda = launch.parameter(1);
    const std::size_t count = op.inputs + 1;
    Elements elements;
    Tensors tensors{{}, op.types};
    if (!elements.offsets.read(lambda, count)) return false;
    const std::size_t data = aligned(Offsets::bytes_of(count), 8);
    for (std::size_t i = 0; i < count; ++i)
        tensors.addresses[i] = launch.get<std::uint64_t>(1, data + 8 * i);
    const std::size_t state = data + 8 * count;
    if (state + 1 > lambda.size()) return false;
    elements.state = lambda.subspan(state);
    // The types lie behind the functor: an empty one has a byte.
    if (casts && (!op.empty || !read_types(lambda.subspan(state + 1), count, tensors.types.data())))
        return false;
    return run(launch, op, tensors, elements);
}

/// The functor inside gpu_kernel_impl...<functor>(...)::{lambda}: its first template argument.
std::string functor_of_lambda(const std::string& text) {
    const std::size_t at = text.find("gpu_kernel_impl");
    const std::size_t open = text.find('<', at);
    if (at == std::string::npos || open == std::string::npos) return {};
    const auto parts = split_list(inside_bracket(text, open));
    return parts.empty() ? std::string() : std::string(parts[0]);
}

}  // namespace

NamedKernel find_elementwise(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    const auto bind = [](const std::string& functor, auto form) -> NamedKernel {
        const ElementwiseOp op = find_elementwise_op(functor);
        if (op.apply == nullptr) return {};
        return [op, form](const NamedLaunch& launch) { return form(launch, op); };
    };
    if (name.base == "vectorized_elementwise_kernel" && arguments.size() >= 2)
        return bind(arguments[1], run_vectorized);
    if (name.base == "unrolled_elementwise_kernel" && arguments.size() >= 2) {
        const bool casts = name.mentions("LoadWithCast");
        return bind(arguments[0], [casts](const NamedLaunch& launch, const ElementwiseOp& op) {
            return run_unrolled(launch, op, casts);
        });
    }
    if (name.base == "elementwise_kernel" && arguments.size() >= 3) {
        const bool casts = arguments[2].find("gpu_kernel_impl_nocast") == std::string::npos;
        return bind(functor_of_lambda(arguments[2]),
                    [casts](const NamedLaunch& launch, const ElementwiseOp& op) {
                        return run_strided(launch, op, casts);
                    });
    }
    return {};
}

}  // namespace simgpu::torch
