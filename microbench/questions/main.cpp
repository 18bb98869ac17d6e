// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Asks a device what no manual says. A question may end badly for the context, so
// scripts/gpu_check asks each in a process of its own.
#include <cstdio>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "microbench/questions/answers.hpp"

namespace {

using namespace libswap::bench;

constexpr const char* kUsage =
    "usage: gpu_questions [--quick] [--json] [--device N] [QUESTION...]\n"
    "       gpu_questions --list | --describe\n";

/// The device, for a header.
std::string describe(const DeviceInfo& info) {
    const nlohmann::ordered_json json{
        {"name", info.name},
        {"uuid", info.uuid},
        {"driver_version", info.driver_version},
        {"compute_capability", fmt::format("{}.{}", info.compute_major, info.compute_minor)},
        {"sm_count", info.sm_count},
        {"memory_bytes", info.memory_bytes},
        {"l2_bytes", info.l2_bytes},
        {"copy_engines", info.copy_engines},
        {"has_vmm", info.has_vmm}};
    return json.dump(2) + "\n";
}

bool ask(const Question& question, const AskOptions& options, bool json) {
    try {
        Session session(options.device);
        const Answer answer = question.ask(session, options);
        fmt::print("{}", json ? answer_json(question, answer) : format_answer(question, answer));
        return true;
    } catch (const CudaError& failure) {
        fmt::print(stderr, "gpu_questions: {}: {}\n", question.key, failure.what());
        return false;
    }
}

struct Arguments {
    AskOptions options;
    bool json = false;
    bool list = false;
    bool describe = false;
    std::vector<std::string> keys;
};

bool parse(int argc, char** argv, Arguments& arguments) {
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--quick") {
            arguments.options.quick = true;
        } else if (word == "--json") {
            arguments.json = true;
        } else if (word == "--list") {
            arguments.list = true;
        } else if (word == "--describe") {
            arguments.describe = true;
        } else if (word == "--device" && i + 1 < argc) {
            arguments.options.device = std::atoi(argv[++i]);
        } else if (word.rfind('-', 0) == 0) {
            return false;
        } else {
            arguments.keys.push_back(word);
        }
    }
    return true;
}

const Question* find(const std::string& key) {
    for (const Question& question : questions())
        if (key == question.key) return &question;
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    if (!parse(argc, argv, arguments)) return std::fputs(kUsage, stderr), 2;
    if (arguments.list || arguments.keys.empty()) {
        for (const Question& question : questions()) {
            if (arguments.list) fmt::print("{}\n", question.key);
            arguments.keys.emplace_back(question.key);
        }
        if (arguments.list) return 0;
    }
    if (arguments.describe) {
        try {
            fmt::print("{}", describe(Session(arguments.options.device).info()));
            return 0;
        } catch (const CudaError& failure) {
            fmt::print(stderr, "gpu_questions: {}\n", failure.what());
            return 1;
        }
    }
    bool all = true;
    for (const std::string& key : arguments.keys) {
        const Question* question = find(key);
        if (question == nullptr) {
            fmt::print(stderr, "gpu_questions: no question {} (--list names them)\n", key);
            return 2;
        }
        all &= ask(*question, arguments.options, arguments.json);
    }
    return all ? 0 : 1;
}
