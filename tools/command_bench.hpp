// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <CLI/CLI.hpp>

namespace libswap::tools {

/// As those of commands.hpp: measures a device.
void add_bench_command(CLI::App& app, int& exit_status);

}  // namespace libswap::tools
