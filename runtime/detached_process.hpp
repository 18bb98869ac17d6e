// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

namespace libswap {

/// Starts a program that the calling process has nothing to do with any more: it is no child of it
/// (wait() does not find it, its end sends no signal), its standard streams are /dev/null, and no
/// handler of fork runs. What else is open it inherits, and should close. `argv` and `envp` end
/// with null. Returns 0, or the errno of what failed. Blocks until the program is loaded. @thread
/// any
int start_detached(const char* path, char* const* argv, char* const* envp) noexcept;

}  // namespace libswap
