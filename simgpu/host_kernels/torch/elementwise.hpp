// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "simgpu/host_kernels/named_kernel.hpp"
#include "simgpu/host_kernels/torch/offsets.hpp"
#include "simgpu/host_kernels/torch/scalar_type.hpp"

/// TensorIterator's element-wise kernels: a functor by value, and pointers with the output first.
namespace simgpu::torch {

constexpr std::size_t kMostInputs = 5;

/// The elements of one launch, as a functor sees them.
struct Elements {
    std::uint64_t count = 0;
    std::size_t inputs = 0;
    /// Output first. Null where a tensor has no bytes.
    std::array<std::byte*, kMostInputs + 1> data{};
    /// In memory.
    std::array<ScalarType, kMostInputs + 1> types{};
    /// As the functor takes and gives them: what it holds is of these.
    std::array<ScalarType, kMostInputs + 1> functor{};
    Offsets offsets;
    /// What the functor holds.
    std::span<const std::byte> state;

    template <typename T>
    T held(std::size_t offset) const {
        T value{};
        if (offset + sizeof(T) <= state.size())
            std::memcpy(&value, state.data() + offset, sizeof(T));
        return value;
    }
    /// The launch, for what else a functor reads.
    const NamedLaunch* launch = nullptr;

    /// Whole numbers, some of which a double does not hold.
    bool all_integers() const {
        bool wide = false;
        for (std::size_t i = 0; i <= inputs; ++i) {
            if (is_float(types[i]) || is_float(functor[i])) return false;
            wide = wide || is_wide(types[i]);
        }
        return wide;
    }
    bool all_float() const {
        for (std::size_t i = 0; i <= inputs; ++i) {
            if (types[i] != ScalarType::Float) return false;
        }
        return true;
    }
};

/// A functor recognised by name.
struct ElementwiseOp {
    std::size_t inputs = 0;
    /// Output first, as the functor takes and gives them.
    std::array<ScalarType, kMostInputs + 1> types{};
    void (*apply)(const Elements&) = nullptr;
    /// Surely holds no values.
    bool empty = false;
};

/// The functor whose C++ type is `text`; `apply` is null where it is not known. @thread any
ElementwiseOp find_elementwise_op(std::string_view text);

/// Applies `function` (doubles to a double) to every element.
template <std::size_t Inputs, typename Function>
void for_each_element(const Elements& e, Function function) {
    const auto call = [&]<std::size_t... I>(std::index_sequence<I...>, auto&& value) {
        return function(value(std::integral_constant<std::size_t, I>{})...);
    };
    constexpr auto kIndices = std::make_index_sequence<Inputs>{};
    if (e.all_float() && e.offsets.dense()) {
        auto* out = reinterpret_cast<float*>(e.data[0]);
        std::array<const float*, Inputs + 1> in{};
        for (std::size_t i = 0; i < Inputs; ++i)
            in[i] = reinterpret_cast<const float*>(e.data[i + 1]);
        for (std::uint64_t n = 0; n < e.count; ++n) {
            out[n] = static_cast<float>(
                call(kIndices, [&](auto i) { return static_cast<double>(in[i][n]); }));
        }
        return;
    }
    if (e.all_float()) {
        e.offsets.for_each(e.count, [&](std::uint64_t, const auto& offsets) {
            const double result = call(kIndices, [&](auto i) {
                return static_cast<double>(
                    *reinterpret_cast<const float*>(e.data[i + 1] + offsets[i + 1]));
            });
            *reinterpret_cast<float*>(e.data[0] + offsets[0]) = static_cast<float>(result);
        });
        return;
    }
    e.offsets.for_each(e.count, [&](std::uint64_t, const auto& offsets) {
        const double result = call(
            kIndices, [&](auto i) { return load(e.types[i + 1], e.data[i + 1] + offsets[i + 1]); });
        store(e.types[0], e.data[0] + offsets[0], result);
    });
}

/// The same on whole numbers of 64 bits.
template <std::size_t Inputs, typename Function>
void for_each_integer(const Elements& e, Function function) {
    const auto call = [&]<std::size_t... I>(std::index_sequence<I...>, const auto& offsets) {
        return function(load_integer(e.types[I + 1], e.data[I + 1] + offsets[I + 1])...);
    };
    e.offsets.for_each(e.count, [&](std::uint64_t, const auto& offsets) {
        store_integer(e.types[0], e.data[0] + offsets[0],
                      call(std::make_index_sequence<Inputs>{}, offsets));
    });
}

}  // namespace simgpu::torch
