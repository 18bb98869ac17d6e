// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/interposer/run.hpp"

// Whole programs on simgpu that swap, with libswap preloaded as users preload it. Numbers in
// comments are rows of the issue log, docs/issue-log.md. LIBSWAP, BUILD_FOLDER and SIMGPU (folder
// of the stand-ins) come from the build.

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const std::string kBuild = BUILD_FOLDER;
const std::string kVictim = kBuild + "/process_victim";

bool is_sanitized() {
    const char* first = std::getenv("LIBSWAP_TEST_PRELOAD_FIRST");
    return first && *first;
}

/// `more` comes first: the first of two equal names counts.
Strings environment(const std::string& libraries, Strings more = {}) {
    for (const char* usual :
         {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "ASAN_OPTIONS=detect_leaks=0",
          "SIMGPU_MEMORY=64MiB", "LD_LIBRARY_PATH=" SIMGPU, "LIBSWAP_BUDGET=20MiB",
          "LIBSWAP_MIN_SWAP=64K", "LIBSWAP_HOST_LIMIT=256MiB"})
        more.emplace_back(usual);
    more.push_back(preload(libraries + ":" SIMGPU "/libcuda.so.1"));
    return more;
}

/// It ended right, said nothing else, and did swap.
void expect_right(const std::string& mode, const std::string& libraries = LIBSWAP,
                  const Strings& more = {}, const std::string& victim = kVictim) {
    const std::string summary = testing::TempDir() + "/summary_" + mode + ".json";
    fs::remove(summary);
    Strings with_summary = more;
    with_summary.push_back("LIBSWAP_SUMMARY=" + summary);
    const Outcome outcome = run({victim, mode}, environment(libraries, with_summary));
    EXPECT_EQ(outcome.status, 0) << mode;
    EXPECT_EQ(outcome.output, "right\n") << mode;
    std::ifstream file(summary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = text.find("\"bytes_out\": ");
    ASSERT_NE(at, std::string::npos) << mode << text;
    EXPECT_GT(std::stoull(text.substr(at + 13)), 0U) << mode << ": nothing was swapped";
}

class Process : public testing::TestWithParam<const char*> {};

TEST_P(Process, EndsRightAndInSilence) { expect_right(GetParam()); }

// 29, 30, 34: children by every call, with the environment and without. 47: exec.
// 6, and beyond the log: threads with small stacks, threads that free when they end, signals that
// the program waits for, standard streams closed as daemons do, libraries that open and close the
// driver, addresses of functions.
INSTANTIATE_TEST_SUITE_P(Cases, Process,
                         testing::Values("children", "replaced", "signals", "small_stacks",
                                         "late_frees", "closed_streams", "opened_again",
                                         "addresses"),
                         [](const auto& info) { return std::string(info.param); });

// While one thread's cuInit starts the engine, the others' wait for it: what they allocate next is
// more than the device has.
TEST(Threads, ThatBeginAtOnceAreAllSwapped) {
    if (is_sanitized()) GTEST_SKIP() << "the sanitizer's runtime comes first";
    expect_right("threads_at_once", kBuild + "/libslow_settings.so:" + LIBSWAP);
}

// Its settings are gone with it, and what it takes without them fits this device.
TEST(Settings, OfAnEnvironmentThatIsGoneAreTheDefaults) {
    const Outcome outcome =
        run({kVictim, "no_environment"}, environment(LIBSWAP, {"SIMGPU_MEMORY=1GiB"}));
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "right\n");
}

// With a trace there is one more thread of ours.
TEST(Trace, LeavesTheProgramsSignalsAlone) {
    const std::string trace = testing::TempDir() + "/signals.trace";
    expect_right("signals", LIBSWAP, {"LIBSWAP_TRACE=" + trace});
    EXPECT_GT(fs::file_size(trace), 0U);
}

// Programs at fixed addresses, where a function's address may be that of a stub in the program.
TEST(Program, AtFixedAddressesRunsRight) {
    expect_right("addresses", LIBSWAP, {}, kBuild + "/process_victim_fixed");
}

// 3: in a folder of any name, by a link, named twice, and a second copy of it beside the first.
TEST(Library, MayLieAnywhereAndBeNamedTwice) {
    const fs::path odd = fs::path(testing::TempDir()) / "odd..folder, so+so";
    fs::create_directories(odd);
    const fs::path link = fs::path(testing::TempDir()) / "libswap_odd_link";
    fs::remove(link);
    fs::create_directory_symlink(odd, link);
    fs::copy_file(LIBSWAP, odd / "libswap.so", fs::copy_options::overwrite_existing);
    const std::string copy = link / "libswap.so";
    expect_right("plain", copy);
    expect_right("plain", copy + ":" + copy);
    // The copy behind has nothing to do, and the last word about it: that nothing was swapped.
    for (const std::string& order : {copy + ":" + LIBSWAP, std::string(LIBSWAP) + ":" + copy}) {
        const Outcome outcome = run({kVictim, "plain"}, environment(order));
        EXPECT_EQ(outcome.status, 0) << order;
        EXPECT_EQ(outcome.output, "right\n") << order;
    }
}

// 3: a library that finds its own name in another one, by handle and by scope.
TEST(Library, ThatLooksItsOwnNameUpElsewhereFindsIt) {
    const fs::path odd = fs::path(testing::TempDir()) / "odd cudnn";
    fs::create_directories(odd);
    for (const char* name : {"libcudnn_outer.so", "libcudnn_inner.so"})
        fs::copy_file(kBuild + "/" + name, odd / name, fs::copy_options::overwrite_existing);
    const Outcome outcome = run({kBuild + "/nested_library", (odd / "libcudnn_outer.so").string()},
                                environment(LIBSWAP));
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "inner\n");
}

// 8: the first library of all is an empty libdl that asks for dlsym itself.
TEST(Library, BehindAnEmptyLibdlFindsTheRealOne) {
    if (is_sanitized()) GTEST_SKIP() << "the sanitizer's runtime comes first";
    expect_right("plain", kBuild + "/libempty_dl.so:" + LIBSWAP);
    expect_right("plain", "libdl.so.2:" + std::string(LIBSWAP));
}

// 15, 16, 41: allocator, auditor and libswap in every order, for a program and an interpreter.
TEST(Library, RunsBesideAnAllocatorAndAnAuditorInAnyOrder) {
    if (is_sanitized()) GTEST_SKIP() << "two allocators";
    const std::string toy = INTERPOSER_FOLDER "/libtoy_malloc.so";
    const std::string audit = "LD_AUDIT=" INTERPOSER_FOLDER "/libaudit.so";
    for (const std::string& order :
         {std::string(LIBSWAP) + ":" + toy, toy + ":" + std::string(LIBSWAP)})
        for (const Strings& more : {Strings{}, Strings{audit}}) {
            expect_right("plain", order, more);
            const Outcome python =
                run({"python3", "-c", "print('said')"}, environment(order, more));
            EXPECT_EQ(python.status, 0) << order;
            EXPECT_EQ(python.output, "said\n") << order;
        }
}

// 32: a program built against another libstdc++ than ours was.
TEST(Library, DoesNotMindWhichLibstdcxxTheProgramHas) {
    if (is_sanitized()) GTEST_SKIP() << "the sanitizer's runtime needs the real one";
    const fs::path folder = fs::path(testing::TempDir()) / "old_cxx";
    fs::create_directories(folder);
    std::ofstream(folder / "library.c") << "int old_version(void) { return 5; }\n";
    std::ofstream(folder / "program.c")
        << "#include <stdio.h>\nint old_version(void);\n"
           "int main(void) { return puts(old_version() == 5 ? \"old\" : \"new\") < 0; }\n";
    const std::string library = folder / "libstdc++.so.6";
    const Strings plain = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    ASSERT_EQ(run({"gcc", "-shared", "-fPIC", "-Wl,-soname,libstdc++.so.6", "-o", library,
                   folder / "library.c"},
                  plain)
                  .status,
              0);
    ASSERT_EQ(run({"gcc", "-o", folder / "program", folder / "program.c", library}, plain).status,
              0);
    const Outcome outcome =
        run({folder / "program"}, {"LD_LIBRARY_PATH=" + folder.string(), preload(LIBSWAP)});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "old\n");
}

// 39: nothing is looked for but libc and its own parts.
TEST(Library, LooksForNothingButLibc) {
    if (is_sanitized()) GTEST_SKIP() << "the sanitizer's runtime looks for more";
    const Outcome outcome =
        run({"/bin/true"}, {"LD_DEBUG=libs", std::string("LD_PRELOAD=") + LIBSWAP, "LC_ALL=C"});
    EXPECT_EQ(outcome.status, 0);
    std::istringstream lines(outcome.output);
    std::set<std::string> sought;
    for (std::string line; std::getline(lines, line);)
        if (const std::size_t at = line.find("find library="); at != std::string::npos)
            sought.insert(line.substr(at + 13, line.find(' ', at + 13) - at - 13));
    for (const std::string& library : sought)
        EXPECT_TRUE(library == "libc.so.6" || library == "libm.so.6") << library;
    EXPECT_FALSE(sought.empty()) << outcome.output;
}

// 36, 39: a container with libc and nothing else.
TEST(Library, RunsInABareContainer) {
    if (is_sanitized()) GTEST_SKIP() << "needs the sanitizer's runtime";
    if (geteuid() != 0) GTEST_SKIP() << "only root can change the root folder";
    const fs::path root = fs::path(testing::TempDir()) / "bare";
    fs::remove_all(root);
    const auto bring = [&](const fs::path& file) {
        fs::create_directories(root / file.parent_path().relative_path());
        fs::copy_file(file, root / file.relative_path(), fs::copy_options::overwrite_existing);
    };
    for (const char* file : {"/usr/bin/env", "/usr/bin/true", "/lib64/ld-linux-x86-64.so.2"})
        bring(file);
    for (const char* name : {"libc.so.6", "libm.so.6"})
        for (const char* folder : {"/lib/x86_64-linux-gnu", "/lib64"})
            if (fs::exists(fs::path(folder) / name)) bring(fs::path(folder) / name);
    fs::copy_file(LIBSWAP, root / "libswap.so");
    const Outcome outcome = run({"chroot", root, "/usr/bin/env", "LD_PRELOAD=/libswap.so",
                                 "LD_BIND_NOW=1", "LIBSWAP_VERBOSE=2", "/usr/bin/true"},
                                {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"});
    fs::remove_all(root);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "");
}

// Memory that malloc gives holds anything: nothing of ours relies on it.
TEST(Library, ReliesOnNothingThatMallocReturns) {
    if (is_sanitized()) GTEST_SKIP() << "the sanitizer has its own malloc";
    expect_right("plain", LIBSWAP, {"MALLOC_PERTURB_=165"});
    const std::string checked =
        run({"gcc", "-print-file-name=libc_malloc_debug.so.0"}, environment(LIBSWAP)).output;
    const std::string library = checked.substr(0, checked.find('\n'));
    if (library.find('/') == std::string::npos) return;
    expect_right("plain", library + ":" + LIBSWAP, {"GLIBC_TUNABLES=glibc.malloc.check=3"});
}

// A process that may have no more threads runs on what the device has, and is told so once.
TEST(Library, WithoutAThreadSaysSoAndPassesThrough) {
    if (is_sanitized()) GTEST_SKIP() << "the sanitizer starts threads";
    const Outcome outcome =
        run({kVictim, "small"},
            environment(kBuild + "/libno_threads.so:" + LIBSWAP, {"LIBSWAP_BUDGET=4MiB"}));
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.output.find("no thread to be had"), std::string::npos) << outcome.output;
}

// 27, 29: compilers of the toolkit, as Triton and nvcc start them.
TEST(Bystander, CompilersOfTheToolkitRunInSilence) {
    const std::string source = testing::TempDir() + "/bystander.ptx";
    std::ofstream(source) << ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { ret; }\n";
    for (const char* tool : {"/bin/ptxas", "/bin/fatbinary", "/bin/cuobjdump"}) {
        const std::string path = std::string(CUDA_ROOT) + tool;
        if (!fs::exists(path)) continue;
        const Strings words = std::string(tool) == "/bin/ptxas"
                                  ? Strings{path, "-arch=sm_80", "-o", source + ".o", source}
                                  : Strings{path, "--version"};
        const Outcome with = run(words, environment(LIBSWAP, {"LD_BIND_NOW=1"}));
        const Outcome without = run(words, {"PATH=/usr/bin:/bin", "LC_ALL=C"});
        EXPECT_EQ(with.status, 0) << path;
        EXPECT_EQ(with.output, without.output) << path;
    }
}

}  // namespace
