// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "program.hpp"

#include <algorithm>
#include <sstream>

namespace random_programs {
namespace {

constexpr const char* kNames[] = {
#define OP(name) #name,
    RANDOM_PROGRAM_STEPS(OP)
#undef OP
};

std::optional<Op> op_of(const std::string& name) {
    for (std::size_t i = 0; i < std::size(kNames); ++i)
        if (name == kNames[i]) return static_cast<Op>(i);
    return std::nullopt;
}

std::optional<Step> parse_step(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const auto op = op_of(name);
    if (!op) return std::nullopt;
    Step step{*op, {}};
    for (std::uint32_t number; words >> number;) step.numbers.push_back(number);
    if (!words.eof()) return std::nullopt;
    return step;
}

}  // namespace

Setting::Setting(const Step& step)
    : threads(std::clamp(step.at(0), 1u, kThreads)),
      devices(std::clamp(step.at(1), 1u, 2u)),
      first_stream(step.at(2) % 3),
      pool(step.at(3) % 2),
      follow(step.at(4) % 2),
      opportunistic(step.at(5) % 2),
      threshold_mib(step.at(6)) {
    if (first_stream == 2 && threads > 1) first_stream = 1;
}

std::string to_text(const Step& step) {
    std::string text = kNames[static_cast<std::size_t>(step.op)];
    for (const std::uint32_t number : step.numbers) text += ' ' + std::to_string(number);
    return text;
}

std::string to_text(const Program& program) {
    std::string text;
    for (const Step& step : program.steps) text += to_text(step) + '\n';
    return text;
}

std::optional<std::vector<Program>> parse(std::string_view text, std::string_view name,
                                          std::string* error) {
    std::vector<Program> programs;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        line.resize(std::min(line.find('#'), line.size()));
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const auto step = parse_step(line);
        if (!step) {
            *error = "not a step: " + line;
            return std::nullopt;
        }
        if (step->op == Op::program || programs.empty())
            programs.push_back({std::string(name) + '/' + std::to_string(programs.size()), {}});
        programs.back().steps.push_back(*step);
    }
    return programs;
}

}  // namespace random_programs
