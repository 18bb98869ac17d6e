// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "run.hpp"

// What libswap.so shows to the loader, read with binutils: LIBSWAP is the library's path.

namespace {

const std::vector<std::string> kEnvironment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};

std::string tool(std::vector<std::string> command) {
    const Outcome outcome = run(std::move(command), kEnvironment);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return outcome.output;
}

std::set<std::string> hook_names() {
    return {
#define HOOK(name, version, kind) #name,
#define COUNTED(name, version) #name,
#include "interposer/hooks.def"
#undef HOOK
#undef COUNTED
#define CUDNN(name) #name,
#include "interposer/cudnn_exports.def"
#undef CUDNN
#define CUPTI(name, parameters, arguments) #name,
#include "interposer/cupti_exports.def"
#undef CUPTI
        "dlsym", "dlvsym", "getenv",
        // c10::reportMemoryUsageToProfiler, of PyTorch.
        "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"};
}

TEST(Exports, AreTheHooksAndNothingElse) {
    std::istringstream lines(tool({"nm", "-D", "--defined-only", LIBSWAP}));
    std::set<std::string> exported;
    for (std::string address, kind, name; lines >> address >> kind >> name;) {
        EXPECT_EQ(kind, "T") << name;
        exported.insert(name);  // with "@VERSION" if it had a version, which would not bind
    }
    EXPECT_EQ(exported, hook_names());
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIBSWAP_SKIP_IF_SANITIZED() GTEST_SKIP() << "a sanitized library needs its sanitizer"
#else
#define LIBSWAP_SKIP_IF_SANITIZED() (void)0
#endif

// 27, 32: a preload that needs more than libc drags it into every process.
TEST(Exports, NeedOnlyLibc) {
    LIBSWAP_SKIP_IF_SANITIZED();
    std::istringstream lines(tool({"readelf", "-dW", LIBSWAP}));
    std::set<std::string> needed;
    for (std::string line; std::getline(lines, line);)
        if (line.find("(NEEDED)") != std::string::npos)
            needed.insert(line.substr(line.find('[') + 1, line.rfind(']') - line.find('[') - 1));
    const std::set<std::string> allowed = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"};
    for (const std::string& library : needed) EXPECT_TRUE(allowed.count(library)) << library;
}

// 1, 7, 36: no private symbol, and no version that a container with glibc 2.34 lacks.
TEST(Exports, ImportNothingNewerThanGlibc234) {
    LIBSWAP_SKIP_IF_SANITIZED();
    const std::string symbols = tool({"nm", "-D", "--undefined-only", LIBSWAP});
    EXPECT_EQ(symbols.find("GLIBC_PRIVATE"), std::string::npos);
    EXPECT_EQ(symbols.find("GLIBCXX"), std::string::npos);
    std::size_t versions = 0;
    for (std::size_t at = symbols.find("@GLIBC_2."); at != std::string::npos;
         at = symbols.find("@GLIBC_2.", at + 1), ++versions)
        EXPECT_LE(std::stoi(symbols.substr(at + 9)), 34) << symbols.substr(at, 14);
    EXPECT_GT(versions, 10U);
}

// Nothing runs at load but the C++ runtime's own set-up: no constructor of ours.
TEST(Exports, HaveNoConstructorOfTheirOwn) {
    LIBSWAP_SKIP_IF_SANITIZED();
    const std::string symbols = tool({"nm", "-C", LIBSWAP});
    std::istringstream lines(symbols);
    for (std::string line; std::getline(lines, line);)
        if (line.find("_GLOBAL__sub_I_") != std::string::npos) {
            EXPECT_TRUE(line.find("eh_alloc") != std::string::npos ||
                        line.find("system_error") != std::string::npos ||
                        line.find("memory_resource") != std::string::npos ||
                        line.find("_locale") != std::string::npos ||
                        line.find("future") != std::string::npos)
                << line;
        }
}

}  // namespace
