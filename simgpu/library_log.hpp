// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

namespace libswap::simgpu {

/// Writes `simgpu: library: text` as one line to stderr. @thread any
void say(const char* library, const char* text);

/// Says once per library and name that the function, or this use of it, is not built; aborts where
/// SIMGPU_STRICT is set. @thread any
void say_unbuilt(const char* library, const char* name);

}  // namespace libswap::simgpu
