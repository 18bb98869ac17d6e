// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>

namespace libswap {

/// The engine's clock: steady, in nanoseconds. @thread any
std::uint64_t now_ns() noexcept;

}  // namespace libswap
