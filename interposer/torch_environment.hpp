// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

// The exported getenv: answers PyTorch about its allocator's variables as LIBSWAP_TORCH says. The
// environment itself stays as it is, so children and other programs see nothing of it, and what a
// script sets before it imports PyTorch counts.

namespace libswap {

/// For the engine's start: says what PyTorch was told, and what will not be swapped because its
/// user told it otherwise. Silent where PyTorch did not ask.
void report_torch_environment() noexcept;

}  // namespace libswap
