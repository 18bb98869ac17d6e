// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "simgpu/host_kernels/torch/elementwise.hpp"

/// PyTorch's element-wise functors by name, and how they find the values that they hold.
namespace simgpu::torch {

/// Of the last input's type, of the first one's, or a truth value.
enum class Result : std::uint8_t { AsInputs, AsFirst, Bool };

struct ElementwiseRow {
    std::string_view name;
    /// Something else that the name must say, where the first does not tell apart.
    std::string_view also;
    std::size_t inputs;
    Result result;
    void (*apply)(const Elements&);
};

/// Activations and losses with their gradients. @thread any
std::span<const ElementwiseRow> activation_rows();

/// The functor of complex numbers whose C++ type is `text`; `apply` is null where it is not known.
/// @thread any
ElementwiseOp find_complex_op(std::string_view text);

/// The type in which a functor for elements of `type` calculates, and holds its values.
inline ScalarType calculating(ScalarType type) {
    return type == ScalarType::Half || type == ScalarType::BFloat16 ? ScalarType::Float : type;
}

/// The functor's value number `index`, values of one type in a row.
inline double value(const Elements& e, std::size_t index, ScalarType type, std::size_t first = 0) {
    const ScalarType held = calculating(type);
    const std::size_t at = first + index * size_of(held);
    return at + size_of(held) <= e.state.size() ? load(held, e.state.data() + at) : 0;
}
inline double value(const Elements& e, std::size_t index) { return value(e, index, e.functor[0]); }

template <double (*F)(double)>
void unary(const Elements& e) {
    for_each_element<1>(e, F);
}
template <double (*F)(double, double)>
void binary(const Elements& e) {
    for_each_element<2>(e, F);
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace simgpu::torch
