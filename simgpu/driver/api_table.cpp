// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/api_table.hpp"

#include <algorithm>

// cuda.h stays out of this file: only the addresses count here, and its prototypes would differ.
// Default visibility, since a hidden reference would hide the exported symbol.
extern "C" {
#define SIMGPU_API(symbol, base, version, per_thread) \
    __attribute__((visibility("default"))) void symbol();
#include "simgpu/driver/api.def"
#undef SIMGPU_API
}

namespace simgpu::driver {

namespace {

const ApiRow kRows[] = {
#define SIMGPU_API(symbol, base, version, per_thread) \
    {#symbol, #base, version, per_thread != 0, &::symbol},
#include "simgpu/driver/api.def"
#undef SIMGPU_API
};

struct ByBase {
    bool operator()(const ApiRow& row, std::string_view base) const { return row.base < base; }
    bool operator()(std::string_view base, const ApiRow& row) const { return base < row.base; }
};

}  // namespace

std::span<const ApiRow> api_rows() { return kRows; }

std::span<const ApiRow> rows_of_base(std::string_view base) {
    auto [first, last] = std::equal_range(std::begin(kRows), std::end(kRows), base, ByBase{});
    return {first, last};
}

}  // namespace simgpu::driver
