// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "interposer/hook_table.hpp"

#include <cstdint>

// Shared with the assembly in counted_thunks.cpp, hence plain objects with C names.
extern "C" {
/// Calls per hook; an element is only touched by atomic instructions.
[[gnu::visibility("hidden")]] extern std::uint64_t libswap_hook_calls[libswap::kHookCount];
/// The driver's function behind each hook, nullptr until known.
[[gnu::visibility("hidden")]] extern void* libswap_real_functions[libswap::kHookCount];
/// Above zero while the calling thread is inside a hook: calls made from there are not the
/// program's.
[[gnu::visibility("hidden"),
  gnu::tls_model("initial-exec")]] extern thread_local int libswap_hook_depth;
/// Finds the driver's function behind a hook whose entry is still nullptr. @return nullptr if there
/// is none
[[gnu::visibility("hidden")]] void* libswap_resolve_real(unsigned hook);
}
