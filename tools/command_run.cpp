// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/commands.hpp"

namespace libswap::tools {

namespace {

struct Setting {
    const char* name;
    const char* unit;
    const char* sentence;
};

/// libswap's own table, so that no setting lacks its option.
constexpr Setting kSettings[] = {
#define SETTING(field, type, parser, name, default_text, unit, sentence) {name, unit, sentence},
#include "runtime/config.def"
#undef SETTING
};

struct RunArguments {
    std::map<std::string, std::string> settings;
    std::string library;
    bool verbose = false;
    std::vector<std::string> command;
};

/// LIBSWAP_HOST_LIMIT is --host-limit.
std::string option_name(const std::string& setting) {
    std::string option = "--" + setting.substr(std::strlen("LIBSWAP_"));
    for (char& c : option) c = c == '_' ? '-' : static_cast<char>(std::tolower(c));
    return option;
}

/// Beside swapctl in a build folder, or where an installation puts it.
std::string find_library() {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    for (const char* place : {"../libswap.so", "../lib/libswap.so", "libswap.so",
                              "../lib64/libswap.so", "../lib/x86_64-linux-gnu/libswap.so"}) {
        const auto path = self / place;
        if (std::filesystem::exists(path, error)) return path.lexically_normal().string();
    }
    return {};
}

bool names_library(const std::string& preload) {
    std::size_t begin = 0;
    while (begin < preload.size()) {
        const std::size_t end = std::min(preload.find_first_of(": ", begin), preload.size());
        const std::string entry = preload.substr(begin, end - begin);
        if (std::filesystem::path(entry).filename() == "libswap.so") return true;
        begin = end + 1;
    }
    return false;
}

void set_variable(const std::string& name, const std::string& value, bool verbose) {
    setenv(name.c_str(), value.c_str(), 1);
    if (verbose) fmt::print(stderr, "swapctl: {}={}\n", name, value);
}

int run_command(const RunArguments& args) {
    const std::string library = args.library.empty() ? find_library() : args.library;
    std::error_code error;
    if (library.empty())
        return fail("libswap.so is not where it was built or installed; use --libswap");
    if (!std::filesystem::exists(library, error)) return fail(library + ": no such file");
    for (const auto& [name, value] : args.settings) {
        if (!value.empty()) set_variable(name, value, args.verbose);
    }
    const char* before = std::getenv("LD_PRELOAD");
    const std::string preload = before == nullptr ? "" : before;
    if (!names_library(preload)) {
        const auto path = std::filesystem::absolute(library).string();
        set_variable("LD_PRELOAD", preload.empty() ? path : preload + ":" + path, args.verbose);
    }
    std::vector<char*> argv;
    for (const std::string& arg : args.command) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    const int status = errno == ENOENT ? 127 : 126;
    fail(fmt::format("{}: {}", args.command[0], std::strerror(errno)));
    return status;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_status) {
    auto args = std::make_shared<RunArguments>();
    CLI::App* command = app.add_subcommand("run", "Run a program under libswap");
    for (const Setting& setting : kSettings) {
        command->add_option(
            option_name(setting.name), args->settings[setting.name],
            fmt::format("{}: {} ({})", setting.name, setting.sentence, setting.unit));
    }
    command->add_option("--libswap", args->library, "the library to load (found beside swapctl)");
    command->add_flag("-v", args->verbose, "print what is set");
    command->add_option("command", args->command, "the program and its arguments, after --")
        ->required();
    command->positionals_at_end();
    command->callback([args, &exit_status] { exit_status = run_command(*args); });
}

}  // namespace libswap::tools
