// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/measuring.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "runtime/detached_process.hpp"
#include "runtime/device_profile.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kLookEveryNs = 20 * kMs;
/// The process ends itself sooner.
constexpr std::uint64_t kMostNs = 90'000 * kMs;
constexpr std::time_t kDay = 24 * 60 * 60;
constexpr std::size_t kMostReason = 200;

/// Of the program's environment, what is about the program and not about the device.
constexpr std::array<std::string_view, 6> kLeftOut = {
    "LD_PRELOAD=", "LD_AUDIT=", "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=",
    "NSYS_",       "LIBSWAP_"};

std::string read_line(const std::string& path) {
    std::array<char, kMostReason> buffer{};
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) return {};
    const bool any = std::fgets(buffer.data(), static_cast<int>(buffer.size()), file) != nullptr;
    std::fclose(file);
    std::string line = any ? buffer.data() : "";
    while (!line.empty() && line.back() == '\n') line.pop_back();
    return line;
}

bool failed_lately(const std::string& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return false;
    const std::time_t age = std::time(nullptr) - info.st_mtime;
    return age >= 0 && age < kDay;
}

/// As a system call takes them.
std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

}  // namespace

std::string measuring_failure_path(std::string_view profile_path) {
    return std::string(profile_path) + ".failed";
}

std::string find_swapctl() {
    static const char here = 0;
    Dl_info info{};
    if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
    char* const resolved = realpath(info.dli_fname, nullptr);
    if (resolved == nullptr) return {};
    std::string folder(resolved);
    std::free(resolved);
    folder.resize(folder.rfind('/') + 1);
    for (const char* place : {"../bin/swapctl", "tools/swapctl", "swapctl", "../../bin/swapctl"}) {
        std::string path = folder + place;
        if (access(path.c_str(), X_OK) == 0) return path;
    }
    return {};
}

Measuring::Measuring() {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        bool left_out = false;
        for (const std::string_view name : kLeftOut)
            left_out |= std::string_view(*entry).starts_with(name);
        if (!left_out) environment_.emplace_back(*entry);
    }
    environment_.emplace_back("LIBSWAP_MODE=off");
}

Measuring::State Measuring::fail(std::string reason) {
    reason_ = std::move(reason);
    return state_ = State::Failed;
}

void Measuring::start(const std::string& program, int device, const std::string& profile_path,
                      std::uint64_t now_ns) {
    profile_path_ = profile_path;
    started_ns_ = looked_ns_ = now_ns;
    const std::string failure = measuring_failure_path(profile_path);
    if (failed_lately(failure)) {
        fail(read_line(failure));
        return;
    }
    if (!make_device_profile_folder(profile_path)) {
        fail("the folder for its profile cannot be written");
        return;
    }
    unlink(failure.c_str());
    std::vector<std::string> words = {program,      "bench",    "--aside",
                                      profile_path, "--device", std::to_string(device)};
    const int error =
        start_detached(program.c_str(), pointers(words).data(), pointers(environment_).data());
    if (error == 0)
        state_ = State::Running;
    else
        fail(fmt::format("{}: {}", program, std::strerror(error)));
}

Measuring::State Measuring::look(std::uint64_t now_ns) {
    if (state_ != State::Running || now_ns - looked_ns_ < kLookEveryNs) return state_;
    looked_ns_ = now_ns;
    const std::string failure = measuring_failure_path(profile_path_);
    if (access(failure.c_str(), F_OK) == 0) return fail(read_line(failure));
    if (is_device_profile(profile_path_)) return state_ = State::Done;
    if (now_ns - started_ns_ > kMostNs) return fail("it took too long");
    return state_;
}

}  // namespace libswap
