// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/torch/ordering.hpp"

#include <cstring>

#include "simgpu/host_kernels/kernel_name.hpp"

namespace simgpu::torch {
namespace {

std::uint64_t mask_of(std::uint32_t bits) {
    return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// `infinity`: its bits without the sign.
std::uint64_t ordered_float(std::uint64_t bits, std::uint32_t width, std::uint64_t infinity) {
    const std::uint64_t sign = std::uint64_t{1} << (width - 1);
    const std::uint64_t magnitude = bits & (sign - 1);
    if (magnitude > infinity) return mask_of(width);
    if (magnitude == 0) return sign;
    return (bits & sign) != 0 ? ~bits & mask_of(width) : bits | sign;
}

}  // namespace

ScalarType element_type(std::string_view parameter) {
    std::string_view name = parameter;
    if (const std::size_t open = name.find('<'); open != std::string_view::npos) {
        const auto arguments = split_list(inside_bracket(name, open));
        if (arguments.empty()) return ScalarType::Unknown;
        name = arguments[0];
    }
    while (name.ends_with('*') || name.ends_with(' ')) name.remove_suffix(1);
    if (name.ends_with(" const")) name.remove_suffix(6);
    if (name == "__half") return ScalarType::Half;
    if (name == "__nv_bfloat16") return ScalarType::BFloat16;
    return scalar_type(name);
}

std::uint64_t ordered_bits(ScalarType type, const void* from) {
    std::uint64_t bits = 0;
    const std::uint32_t width = 8 * size_of(type);
    std::memcpy(&bits, from, size_of(type));
    switch (type) {
        case ScalarType::Byte:
        case ScalarType::UShort:
        case ScalarType::UInt:
        case ScalarType::ULong:
            return bits;
        case ScalarType::Bool:
            return bits != 0 ? 1 : 0;
        case ScalarType::Char:
        case ScalarType::Short:
        case ScalarType::Int:
        case ScalarType::Long:
            return bits ^ std::uint64_t{1} << (width - 1);
        case ScalarType::Half:
            return ordered_float(bits, width, 0x7c00);
        case ScalarType::BFloat16:
            return ordered_float(bits, width, 0x7f80);
        case ScalarType::Float:
            return ordered_float(bits, width, 0x7f800000);
        case ScalarType::Double:
            return ordered_float(bits, width, 0x7ff0000000000000);
        case ScalarType::ComplexFloat:
        case ScalarType::ComplexDouble:
        case ScalarType::Unknown:
            break;
    }
    return 0;
}

std::uint64_t descending_bits(ScalarType type, const void* from) {
    return ~ordered_bits(type, from) & mask_of(8 * size_of(type));
}

}  // namespace simgpu::torch
