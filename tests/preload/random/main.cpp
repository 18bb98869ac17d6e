// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Random CUDA programs, many in one process: generated from a seed each, or read from files. Prints
// one line a program: its name, the digest of all that was read back, its errors.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "generate.hpp"
#include "runner.hpp"

namespace {

using namespace random_programs;

constexpr const char* kUsage =
    "usage: random_programs [--first SEED] [--count N] [--steps N] [--live MiB] [--threads N] "
    "[--devices N] [--cached] [--untold] [--print] [--verbose] [FILE...]\n";

struct Options {
    std::uint64_t first = 1;
    std::uint64_t count = 0;
    Shape shape;
    bool print = false;
    bool verbose = false;
    std::vector<std::string> files;
};

bool parse_options(int argc, char** argv, Options* options) {
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool has_value = i + 1 < argc;
        const auto value = [&] { return std::strtoull(argv[++i], nullptr, 10); };
        const auto small = [&] { return static_cast<unsigned>(value()); };
        if (word == "--verbose")
            options->verbose = true;
        else if (word == "--print")
            options->print = true;
        else if (word == "--cached")
            options->shape.cached = true;
        else if (word == "--untold")
            Cache::tell_nothing();
        else if (has_value && word == "--first")
            options->first = value();
        else if (has_value && word == "--count")
            options->count = value();
        else if (has_value && word == "--steps")
            options->shape.steps = small();
        else if (has_value && word == "--live")
            options->shape.live_mib = small();
        else if (has_value && word == "--threads")
            options->shape.threads = small();
        else if (has_value && word == "--devices")
            options->shape.devices = small();
        else if (word.rfind("--", 0) == 0)
            return false;
        else
            options->files.push_back(word);
    }
    const Shape& shape = options->shape;
    return shape.threads >= 1 && shape.threads <= kThreads && shape.devices >= 1 &&
           shape.devices <= 2;
}

bool read_files(const Options& options, std::vector<Program>* programs) {
    for (const std::string& file : options.files) {
        std::ifstream stream(file);
        std::ostringstream text;
        text << stream.rdbuf();
        const std::string name = file.substr(file.rfind('/') + 1);
        std::string error = "cannot be read";
        auto parsed = stream ? parse(text.str(), name, &error) : std::nullopt;
        if (!parsed) {
            std::fprintf(stderr, "%s: %s\n", file.c_str(), error.c_str());
            return false;
        }
        programs->insert(programs->end(), parsed->begin(), parsed->end());
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse_options(argc, argv, &options)) return std::fputs(kUsage, stderr), 2;
    std::vector<Program> programs;
    if (!read_files(options, &programs)) return 2;
    for (std::uint64_t i = 0; i < options.count; ++i)
        programs.push_back(generate(options.first + i, options.shape));
    if (options.print) {
        for (const Program& program : programs) std::printf("%s", to_text(program).c_str());
        return 0;
    }
    bool two_devices = false;
    for (const Program& program : programs)
        if (!program.steps.empty()) two_devices |= program.steps[0].at(1) > 1;
    if (two_devices && !let_devices_share()) return std::fputs("not two devices\n", stderr), 1;
    for (const Program& program : programs) {
        Runner runner(program, options.verbose);
        runner.run();
        std::printf("%s\n", runner.line().c_str());
        std::fflush(stdout);
    }
    return 0;
}
