// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstring>
#include <type_traits>

namespace simgpu::driver {

/// What a program passed for an enumeration, which may be none of its values: never read as one.
template <class Enum>
std::underlying_type_t<Enum> enum_number(const Enum& value) {
    std::underlying_type_t<Enum> number;
    std::memcpy(&number, &value, sizeof number);
    return number;
}

}  // namespace simgpu::driver
