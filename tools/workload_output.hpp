// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>

#include "tools/formats.hpp"

namespace libswap::tools {

/// Writes a workload to a file and says in one line what it holds; without a file, prints it.
/// The status to exit with.
int put_out(const cost::Workload& workload, const WorkloadMeta& meta, const std::string& file);

}  // namespace libswap::tools
