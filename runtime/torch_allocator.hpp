// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "runtime/config.hpp"

namespace libswap {

/// Whether PyTorch's CUDA allocator is set up by an environment variable of this name.
bool is_torch_variable(const char* name) noexcept;

/// What libswap answers PyTorch, where the program's environment (`source`, with libswap's settings
/// too) lacks the variable: nullptr where its user set one of these variables, where nothing is
/// swapped, and for all but the variable that LIBSWAP_TORCH comes to.
/// @return text that lives for ever. @thread any
const char* torch_answer(const char* name, SettingSource source, void* context);

/// Whether an allocator set up with this value takes its memory by the driver's virtual memory
/// calls, which pass through libswap.
bool has_expandable_segments(const char* value) noexcept;

}  // namespace libswap
