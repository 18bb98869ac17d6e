// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "cost/iteration.hpp"

namespace libswap::tools {

/// What one operation of the dump did.
struct DumpOp {
    std::uint64_t serial = 0;
    std::uint64_t seq = 0;
    std::uint64_t signature = 0;
    std::uint64_t workspace_bytes = 0;
    std::string kind;
    std::uint32_t name = 0;
    double duration_us = -1;
    bool explained = true;
    std::uint64_t issued_ns = 0;  ///< host's clock
    std::uint64_t start_ns = 0;   ///< device's clock; 0: not known; 0 with end_ns: not measured
    std::uint64_t end_ns = 0;
    std::vector<cost::TracedOperand> operands;
};

struct DumpFree {
    std::uint64_t seq = 0;
    std::uint64_t block = 0;
    std::uint64_t at_ns = 0;  ///< host's clock; likewise below
};

struct DumpAlloc {
    std::uint64_t seq = 0;
    std::uint64_t block = 0;
    std::uint64_t bytes = 0;
    std::uint64_t asked_bytes = 0;
    std::uint64_t at_ns = 0;
};

struct DumpMove {
    std::string kind;
    std::uint64_t bytes = 0;
    std::uint64_t start_ns = 0;  ///< host's clock
    std::uint64_t end_ns = 0;
    std::uint64_t block = 0;
};

struct DumpStall {
    std::uint64_t serial = 0;
    std::uint64_t ns = 0;
    std::uint32_t name = 0;
    std::uint64_t at_ns = 0;  ///< when it was over
};

struct DumpLoop {
    std::uint64_t serial = 0;
    std::uint32_t loop = 0;
    std::uint64_t period = 0;
};

/// How far a model was from what was measured.
struct DumpModel {
    std::uint32_t name = 0;
    int device = 0;
    std::uint64_t count = 0;
    double mean_percent = 0;  ///< of absolute errors
    double ratio = 1;         ///< measured / predicted, in the end
};

/// An event log (libswap-trace/1, docs/trace-format.md), put in order.
struct TraceDump {
    std::string libswap_version;
    std::string device_name;
    std::uint64_t device_bytes = 0;
    std::uint64_t budget_bytes = 0;
    std::uint64_t pid = 0;
    std::vector<DumpOp> ops;  ///< by serial
    std::vector<DumpFree> frees;
    std::vector<DumpAlloc> allocs;
    std::vector<DumpMove> moves;
    std::vector<DumpStall> stalls;
    std::vector<DumpLoop> loops;
    std::vector<DumpModel> models;
    std::vector<std::string> names;
    std::uint64_t dropped = 0;
    bool complete = false;  ///< it has its last line

    std::string_view name(std::uint32_t number) const {
        return number < names.size() ? std::string_view(names[number]) : std::string_view();
    }
};

/// The error is one line with the number of the line it is about. A last line that was cut short
/// (the process was killed) is not an error: `complete` is then false.
tl::expected<TraceDump, std::string> parse_trace(std::string_view text);

/// The iteration that most of the dump's operations belong to, from its last two repetitions.
/// The error says why there is none.
tl::expected<cost::Workload, std::string> workload_of(const TraceDump& dump);

}  // namespace libswap::tools
