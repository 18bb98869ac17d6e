// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string_view>

namespace simgpu::torch {

/// Element types, by PyTorch's numbers (c10::ScalarType), which kernels are given by value.
enum class ScalarType : std::int8_t {
    Byte = 0,
    Char = 1,
    Short = 2,
    Int = 3,
    Long = 4,
    Half = 5,
    Float = 6,
    Double = 7,
    ComplexFloat =
        9,  ///< these two only in functors of complex_ops.cpp; scalar_type() knows neither
    ComplexDouble = 10,
    Bool = 11,
    BFloat16 = 15,
    UShort = 27,
    UInt = 28,
    ULong = 29,
    Unknown = 127,
};

/// The type that C++ calls by this name in a kernel's name. Unknown for others.
ScalarType scalar_type(std::string_view name);
std::uint32_t size_of(ScalarType type);

inline bool is_complex(ScalarType type) {
    return type == ScalarType::ComplexFloat || type == ScalarType::ComplexDouble;
}

/// Elements as doubles, of types that are not complex: exact for all but integers from 2^53 on.
double load(ScalarType type, const void* from);
void store(ScalarType type, void* to, double value);

/// Whether elements are whole numbers of more bits than a double holds.
inline bool is_wide(ScalarType type) {
    return type == ScalarType::Long || type == ScalarType::ULong;
}
inline bool is_float(ScalarType type) {
    return type == ScalarType::Float || type == ScalarType::Double || type == ScalarType::Half ||
           type == ScalarType::BFloat16;
}
/// The same for whole numbers, exact. Other types go through a double.
std::int64_t load_integer(ScalarType type, const void* from);
void store_integer(ScalarType type, void* to, std::int64_t value);

}  // namespace simgpu::torch
