// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <string_view>

namespace libswap {

/// Our hook of that exact name of cuDNN's, or null. @thread any
void* find_cudnn_hook(std::string_view name) noexcept;

/// cuDNN's own function, wherever it was loaded from; null if there is none. Asked for again until
/// there is one. @thread any
void* find_cudnn_function(const char* name) noexcept;

}  // namespace libswap
