// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Hooks of libraries other than the driver: cuDNN's and CUPTI's.

#pragma once

#include <string_view>

namespace libswap {

/// Our hook of that exact name of such a library's, or null. @thread any
void* find_library_hook(std::string_view name) noexcept;

/// The library's own function, wherever it was loaded from; null if there is none. Asked for again
/// until there is one. @thread any
void* find_library_function(const char* name) noexcept;

}  // namespace libswap
