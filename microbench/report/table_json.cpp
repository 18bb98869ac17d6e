// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/report/table_json.hpp"

#include <nlohmann/json.hpp>

namespace libswap::bench {

nlohmann::ordered_json table_json(const Table& table) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Row& row : table.rows)
        rows.push_back({{"name", row.name},
                        {"median", row.value.median},
                        {"minimum", row.value.least},
                        {"spread_percent", row.value.spread_percent},
                        {"samples", row.value.samples}});
    return {{"key", table.key},
            {"question", table.question},
            {"unit", table.unit},
            {"rows", std::move(rows)},
            {"notes", table.notes}};
}

}  // namespace libswap::bench
