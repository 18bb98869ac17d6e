// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>

namespace libswap {

/// What the program gets where the driver's cuGetProcAddress has answered `function` for `symbol`:
/// our hook of exactly that exported function, or `function` itself. @thread any
void* route_proc_address(const char* symbol, void* function, int version,
                         std::uint64_t flags) noexcept;

}  // namespace libswap
