// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/torch/scalar_type.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "simgpu/half_float.hpp"

namespace simgpu::torch {
namespace {

constexpr std::array<std::pair<std::string_view, ScalarType>, 15> kNames{{
    {"unsigned char", ScalarType::Byte},
    {"signed char", ScalarType::Char},
    {"short", ScalarType::Short},
    {"int", ScalarType::Int},
    {"long", ScalarType::Long},
    {"c10::Half", ScalarType::Half},
    {"float", ScalarType::Float},
    {"double", ScalarType::Double},
    {"bool", ScalarType::Bool},
    {"c10::BFloat16", ScalarType::BFloat16},
    {"unsigned short", ScalarType::UShort},
    {"unsigned int", ScalarType::UInt},
    {"unsigned long", ScalarType::ULong},
    {"long long", ScalarType::Long},
    {"unsigned long long", ScalarType::ULong},
}};

template <typename T>
double load_as(const void* from) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    return static_cast<double>(value);
}

template <typename T>
void store_as(void* to, T value) {
    std::memcpy(to, &value, sizeof(value));
}

/// What is out of an integer's range is undefined on a device; here it must only be defined.
template <typename T>
void store_rounded(void* to, double value) {
    constexpr double kLargest = 9.2e18;
    const bool fits = value > -kLargest && value < kLargest;
    store_as(to, static_cast<T>(fits ? static_cast<std::int64_t>(value) : INT64_MIN));
}

}  // namespace

ScalarType scalar_type(std::string_view name) {
    for (const auto& [text, type] : kNames) {
        if (text == name) return type;
    }
    return ScalarType::Unknown;
}

std::uint32_t size_of(ScalarType type) {
    switch (type) {
        case ScalarType::Byte:
        case ScalarType::Char:
        case ScalarType::Bool:
            return 1;
        case ScalarType::Short:
        case ScalarType::UShort:
        case ScalarType::Half:
        case ScalarType::BFloat16:
            return 2;
        case ScalarType::Int:
        case ScalarType::UInt:
        case ScalarType::Float:
            return 4;
        case ScalarType::Long:
        case ScalarType::ULong:
        case ScalarType::Double:
        case ScalarType::ComplexFloat:
            return 8;
        case ScalarType::ComplexDouble:
            return 16;
        case ScalarType::Unknown:
            break;
    }
    return 0;
}

double load(ScalarType type, const void* from) {
    switch (type) {
        case ScalarType::Byte:
            return load_as<std::uint8_t>(from);
        case ScalarType::Char:
            return load_as<std::int8_t>(from);
        case ScalarType::Short:
            return load_as<std::int16_t>(from);
        case ScalarType::Int:
            return load_as<std::int32_t>(from);
        case ScalarType::Long:
            return load_as<std::int64_t>(from);
        case ScalarType::UShort:
            return load_as<std::uint16_t>(from);
        case ScalarType::UInt:
            return load_as<std::uint32_t>(from);
        case ScalarType::ULong:
            return load_as<std::uint64_t>(from);
        case ScalarType::Float:
            return load_as<float>(from);
        case ScalarType::Double:
            return load_as<double>(from);
        case ScalarType::Bool:
            return load_as<std::uint8_t>(from) != 0 ? 1 : 0;
        case ScalarType::Half:
        case ScalarType::BFloat16: {
            std::uint16_t bits;
            std::memcpy(&bits, from, sizeof(bits));
            return static_cast<double>(type == ScalarType::Half ? half_to_float(bits)
                                                                : bf16_to_float(bits));
        }
        case ScalarType::ComplexFloat:
        case ScalarType::ComplexDouble:
        case ScalarType::Unknown:
            break;
    }
    return 0;
}

void store(ScalarType type, void* to, double value) {
    switch (type) {
        case ScalarType::Byte:
            return store_rounded<std::uint8_t>(to, value);
        case ScalarType::Char:
            return store_rounded<std::int8_t>(to, value);
        case ScalarType::Short:
            return store_rounded<std::int16_t>(to, value);
        case ScalarType::Int:
            return store_rounded<std::int32_t>(to, value);
        case ScalarType::Long:
            return store_rounded<std::int64_t>(to, value);
        case ScalarType::UShort:
            return store_rounded<std::uint16_t>(to, value);
        case ScalarType::UInt:
            return store_rounded<std::uint32_t>(to, value);
        case ScalarType::ULong:
            return store_rounded<std::uint64_t>(to, value);
        case ScalarType::Float:
            return store_as(to, static_cast<float>(value));
        case ScalarType::Double:
            return store_as(to, value);
        case ScalarType::Bool:
            return store_as<std::uint8_t>(to, value != 0 ? 1 : 0);
        case ScalarType::Half:
            return store_as(to, double_to_half(value));
        case ScalarType::BFloat16:
            return store_as(to, double_to_bf16(value));
        case ScalarType::ComplexFloat:
        case ScalarType::ComplexDouble:
        case ScalarType::Unknown:
            break;
    }
}

std::int64_t load_integer(ScalarType type, const void* from) {
    if (!is_wide(type)) return static_cast<std::int64_t>(load(type, from));
    std::int64_t value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

void store_integer(ScalarType type, void* to, std::int64_t value) {
    if (is_wide(type))
        std::memcpy(to, &value, sizeof(value));
    else
        store(type, to, static_cast<double>(value));
}

}  // namespace simgpu::torch
