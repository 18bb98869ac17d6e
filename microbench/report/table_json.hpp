// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "microbench/report/results.hpp"

namespace libswap::bench {

/// A table for programs, numbers as numbers.
nlohmann::ordered_json table_json(const Table& table);

}  // namespace libswap::bench
