// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/questions/answers.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "microbench/report/table_json.hpp"

namespace libswap::bench {

const std::vector<Question>& questions() {
    static const std::vector<Question> kQuestions{
        {"chunk_costs", "What do calls on chunks of device memory cost?", ask_chunk_costs},
        {"waits", "Which calls wait for a kernel that runs?", ask_waits},
        {"two_addresses", "May one handle lie at two addresses?", ask_two_addresses},
        {"mapping_in_captures", "What may be called while another thread captures (GLOBAL)?",
         ask_mapping_in_captures},
        {"capture_codes", "Which codes do calls on captures give?", ask_capture_codes},
        {"host_memory", "What is an address whose memory has moved to the host?", ask_host_memory},
        {"pinned_memory", "What does pinned memory cost?", ask_pinned_memory},
        {"launches", "What does a launch cost the host?", ask_launches},
        {"cupti", "What does it cost to have operations timed by CUPTI?", ask_cupti},
    };
    return kQuestions;
}

std::string code_name(const Driver& driver, CUresult code) {
    const char* name = nullptr;
    if (driver.cuGetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr)
        return fmt::format("error {}", static_cast<int>(code));
    return name;
}

std::string format_answer(const Question& question, const Answer& answer) {
    std::string text = fmt::format("\n{}\n  {}\n", question.text, answer.in_short);
    for (const auto& [name, value] : answer.facts)
        text += fmt::format("  {:<52} {}\n", name, value);
    for (const Table& table : answer.tables) text += format_table(table);
    return text;
}

std::string answer_json(const Question& question, const Answer& answer) {
    nlohmann::ordered_json json{
        {"key", question.key}, {"question", question.text}, {"answer", answer.in_short}};
    json["facts"] = nlohmann::ordered_json::object();
    for (const auto& [name, value] : answer.facts) json["facts"][name] = value;
    json["tables"] = nlohmann::ordered_json::array();
    for (const Table& table : answer.tables) json["tables"].push_back(table_json(table));
    return json.dump(2) + "\n";
}

}  // namespace libswap::bench
