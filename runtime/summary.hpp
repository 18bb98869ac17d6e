// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <string>
#include <vector>

#include "runtime/config.hpp"
#include "runtime/device.hpp"

namespace libswap {

struct SummaryInput {
    std::vector<Device*> devices;
    PassedThroughSource passed_through = nullptr;
    HookTimeSource hook_time = nullptr;
};

/// What was done, for people.
std::string summary_text(const SummaryInput& input);
/// The same for programs: one JSON object, bytes and nanoseconds as numbers.
std::string summary_json(const SummaryInput& input);
/// How far the models were from what was measured on a device, for the trace.
void log_models(Device& device, EventLog& log);
/// Prints with LIBSWAP_VERBOSE, writes the file of LIBSWAP_SUMMARY; else does nothing.
void write_summary(const Config& config, const SummaryInput& input);

}  // namespace libswap
