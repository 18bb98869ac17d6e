// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <CLI/CLI.hpp>

namespace libswap::tools {

/// Each adds a subcommand to the program; what it returns when run is in `exit_status`.
void add_plan_command(CLI::App& app, int& exit_status);
void add_compare_command(CLI::App& app, int& exit_status);
void add_generate_command(CLI::App& app, int& exit_status);
void add_fit_command(CLI::App& app, int& exit_status);
void add_trace_command(CLI::App& app, int& exit_status);
void add_workload_command(CLI::App& app, int& exit_status);
void add_run_command(CLI::App& app, int& exit_status);
void add_report_command(CLI::App& app, int& exit_status);

/// One line on stderr; the status to exit with.
int fail(const std::string& text);

}  // namespace libswap::tools
