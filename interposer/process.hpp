// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

namespace libswap {

class Engine;

/// The engine, or nullptr: before the first successful cuInit, in a forked child, with
/// LIBSWAP_MODE=off, and where the driver is not one that we can work with. @thread any
Engine* active_engine() noexcept;

/// After a successful cuInit of the program: settles the driver, reads the settings and starts the
/// engine. From the second time on it only waits until that is done. @thread any, outside of hooks
void start_after_init() noexcept;

}  // namespace libswap
