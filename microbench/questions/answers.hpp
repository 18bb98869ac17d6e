// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What is asked of a driver and its hardware, because the design hangs on it and no manual says.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "microbench/device/session.hpp"
#include "microbench/report/results.hpp"

namespace libswap::bench {

/// What came of one question.
struct Answer {
    std::string in_short;  ///< one line
    std::vector<std::pair<std::string, std::string>> facts;
    std::vector<Table> tables;

    void fact(std::string name, std::string value) {
        facts.emplace_back(std::move(name), std::move(value));
    }
    Table& table(std::string key, std::string question, std::string unit) {
        return tables.emplace_back(
            Table{std::move(key), std::move(question), std::move(unit), {}, {}});
    }
};

struct AskOptions {
    int device = 0;
    bool quick = false;  ///< smaller sizes, fewer repetitions
};

/// A question; `ask` throws CudaError where it cannot be answered.
struct Question {
    const char* key;
    const char* text;
    Answer (*ask)(Session& session, const AskOptions& options);
};

/// All of them, in the order in which they are asked.
const std::vector<Question>& questions();

Answer ask_chunk_costs(Session& session, const AskOptions& options);
Answer ask_waits(Session& session, const AskOptions& options);
Answer ask_two_addresses(Session& session, const AskOptions& options);
Answer ask_mapping_in_captures(Session& session, const AskOptions& options);
Answer ask_capture_codes(Session& session, const AskOptions& options);
Answer ask_host_memory(Session& session, const AskOptions& options);
Answer ask_pinned_memory(Session& session, const AskOptions& options);
Answer ask_launches(Session& session, const AskOptions& options);
Answer ask_cupti(Session& session, const AskOptions& options);

/// "CUDA_ERROR_NOT_READY".
std::string code_name(const Driver& driver, CUresult code);

/// For people.
std::string format_answer(const Question& question, const Answer& answer);
/// One JSON object.
std::string answer_json(const Question& question, const Answer& answer);

}  // namespace libswap::bench
