// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Element-wise functors of complex numbers: what is done around Fourier transforms and rotary
// positions.

#include <complex>
#include <cstring>
#include <string>

#include "simgpu/host_kernels/torch/elementwise_rows.hpp"

namespace simgpu::torch {
namespace {

// std::complex's product looks for infinities that came of NaNs; PyTorch's does not.
template <typename T>
std::complex<T> product(std::complex<T> a, std::complex<T> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <typename T, std::size_t Inputs, typename Function>
void for_each_complex(const Elements& e, Function function) {
    const auto at = [&](std::size_t i, const auto& offsets) {
        std::complex<T> value;
        std::memcpy(&value, e.data[i] + offsets[i], sizeof value);
        return value;
    };
    e.offsets.for_each(e.count, [&](std::uint64_t, const auto& offsets) {
        std::complex<T> result;
        if constexpr (Inputs == 1)
            result = function(at(1, offsets));
        else
            result = function(at(1, offsets), at(2, offsets));
        std::memcpy(e.data[0] + offsets[0], &result, sizeof result);
    });
}

template <typename T>
void copy(const Elements& e) {
    for_each_complex<T, 1>(e, [](std::complex<T> x) { return x; });
}

template <typename T>
void conjugate(const Elements& e) {
    for_each_complex<T, 1>(e, [](std::complex<T> x) { return std::conj(x); });
}

template <typename T>
void multiply(const Elements& e) {
    for_each_complex<T, 2>(e, product<T>);
}

/// The operation comes first, an empty object, then the number, aligned to its size.
template <typename T>
void scale(const Elements& e) {
    const auto held = e.held<std::complex<T>>(sizeof(std::complex<T>));
    for_each_complex<T, 1>(e, [held](std::complex<T> x) { return product(x, held); });
}

template <typename T>
void add(const Elements& e) {
    const auto alpha = e.held<std::complex<T>>(0);
    for_each_complex<T, 2>(
        e, [alpha](std::complex<T> x, std::complex<T> y) { return x + product(alpha, y); });
}

template <typename T>
ElementwiseOp op_of(std::string_view text, const std::string& element) {
    const auto says = [&](const std::string& part) {
        return text.find(part) != std::string_view::npos;
    };
    const auto takes = [&](const char* functor) {
        return says(functor + ("<" + element + ", " + element + ", " + element) + ", ");
    };
    ElementwiseOp op;
    op.types.fill(sizeof(T) == sizeof(float) ? ScalarType::ComplexFloat
                                             : ScalarType::ComplexDouble);
    op.inputs = 1;
    if (says("{lambda(" + element + ")#")) {
        op.empty = true;
        if (says("direct_copy_kernel_cuda")) op.apply = copy<T>;
        if (says("conj_kernel_cuda")) op.apply = conjugate<T>;
    } else if (says("MulFunctor<" + element)) {
        if (takes("AUnaryFunctor") || takes("BUnaryFunctor")) op.apply = scale<T>;
        if (!takes("BinaryFunctor")) return op;
        op.inputs = 2;
        op.empty = true;
        op.apply = multiply<T>;
    } else if (says("CUDAFunctor_add<" + element)) {
        op.inputs = 2;
        op.apply = add<T>;
    }
    return op;
}

}  // namespace

ElementwiseOp find_complex_op(std::string_view text) {
    const ElementwiseOp op = op_of<float>(text, "c10::complex<float>");
    return op.apply != nullptr ? op : op_of<double>(text, "c10::complex<double>");
}

}  // namespace simgpu::torch
