// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "run.hpp"

// Whole programs with libswap preloaded. The numbers are the rows of docs/issue-log.md. Paths come
// from the build: LIBSWAP, BUILD_FOLDER (the victims and small libraries), DRIVER, OLD_DRIVER
// (folders of counting drivers).

namespace {

using Strings = std::vector<std::string>;

const std::string kBuild = BUILD_FOLDER;

bool is_sanitized() {
    const char* first = std::getenv("LIBSWAP_TEST_PRELOAD_FIRST");
    return first && *first;
}

Strings with(Strings base, const Strings& more) {
    base.insert(base.end(), more.begin(), more.end());
    return base;
}

/// PATH and preload; leaks of the program under test are not what is tested here.
Strings plain(const std::string& libraries = LIBSWAP) {
    return {"PATH=/usr/bin:/bin", "LC_ALL=C", "ASAN_OPTIONS=detect_leaks=0", preload(libraries)};
}

/// Preloaded, on the counting driver, every hook's calls listed at exit, the engine off.
Strings counting(const std::string& libraries = LIBSWAP, const std::string& driver = DRIVER) {
    return with(plain(libraries),
                {"LD_LIBRARY_PATH=" + driver, "LIBSWAP_MODE=off", "LIBSWAP_VERBOSE=2"});
}

void expect_each_call_seen_once(const Outcome& outcome) {
    EXPECT_EQ(outcome.status, 0);
    for (const char* part :
         {"driver saw 1 2 1 1\n", "] cuInit was called 1 times\n",
          "] cuMemAlloc_v2 was called 2 times\n", "] cuMemcpyHtoD_v2 was called 1 times\n",
          "] cuImportExternalMemory was called 1 times\n"})
        EXPECT_NE(outcome.output.find(part), std::string::npos) << part << "in:\n"
                                                                << outcome.output;
}

class Program : public testing::TestWithParam<const char*> {
  protected:
    std::string path() const { return kBuild + "/" + GetParam(); }
};

TEST_P(Program, IsSeenOnceByEveryWayToTheDriver) {
    expect_each_call_seen_once(run({path()}, counting()));
}

// 19, 23, 29, 33: every symbol bound at start; one program has a C++ runtime of its own.
TEST_P(Program, RunsWithAllSymbolsBoundAtStart) {
    expect_each_call_seen_once(run({path()}, with(counting(), {"LD_BIND_NOW=1"})));
}

// 15, 16, 41: beside an allocator that looks symbols up and opens files while it sets itself up, in
// either order.
TEST_P(Program, RunsBesideAnAllocatorThatLooksSymbolsUp) {
    if (is_sanitized()) GTEST_SKIP() << "two allocators";
    const std::string toy = kBuild + "/libtoy_malloc.so";
    expect_each_call_seen_once(run({path()}, counting(std::string(LIBSWAP) + ":" + toy)));
    expect_each_call_seen_once(run({path()}, counting(toy + ":" + LIBSWAP)));
}

// 41: and under an auditor of the loader.
TEST_P(Program, RunsUnderAnAuditor) {
    if (is_sanitized()) GTEST_SKIP() << "auditors are not instrumented";
    expect_each_call_seen_once(
        run({path()}, with(counting(), {"LD_AUDIT=" + kBuild + "/libaudit.so"})));
}

INSTANTIATE_TEST_SUITE_P(Ways, Program,
                         testing::Values("victim_linked", "victim_looked_up", "victim_asked",
                                         "victim_static_cxx"),
                         [](const auto& info) { return std::string(info.param); });

// 72: another interposer with hooks of its own, on either side of us: each sees the call once.
TEST(Neighbours, AnotherInterposerSeesEachCallOnce) {
    const std::string toy = kBuild + "/libtoy_interposer.so";
    for (const std::string& order : {std::string(LIBSWAP) + ":" + toy, toy + ":" + LIBSWAP}) {
        const Outcome outcome = run({kBuild + "/victim_linked"}, counting(order));
        expect_each_call_seen_once(outcome);
        EXPECT_NE(outcome.output.find("toy saw 2\n"), std::string::npos) << order << '\n'
                                                                         << outcome.output;
    }
}

// 28: the program's own driver, not the one that LD_LIBRARY_PATH names.
TEST(Driver, OfTheProgramsRunPathIsFollowed) {
    const Outcome outcome =
        run({kBuild + "/victim_rpath"}, with(plain(), {"LD_LIBRARY_PATH=" DRIVER}));
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.output.find("the driver has no cuFuncGetParamInfo, passing through\n"),
              std::string::npos)
        << outcome.output;
    EXPECT_NE(outcome.output.find("driver saw 1 2 1 1\n"), std::string::npos) << outcome.output;
}

TEST(Driver, OpenedByPathIsFollowed) {
    const std::string other = testing::TempDir() + "/libother_driver.so";
    std::filesystem::copy_file(DRIVER "/libcuda.so.1", other,
                               std::filesystem::copy_options::overwrite_existing);
    expect_each_call_seen_once(run({kBuild + "/victim_looked_up", other}, counting()));
    expect_each_call_seen_once(run({kBuild + "/victim_asked", other}, counting()));
}

// 5: a driver whose initialisation calls itself through us, from a thread that it waits for.
TEST(Driver, ThatCallsBackWhileItInitialisesIsAnswered) {
    for (const char* victim : {"victim_linked", "victim_static_cxx"}) {
        const Outcome outcome =
            run({kBuild + "/" + victim}, with(counting(), {"FAKE_CALLS_BACK=1"}));
        EXPECT_EQ(outcome.status, 0) << outcome.output;
        EXPECT_NE(outcome.output.find("] cuMemAlloc_v2 was called 2 times\n"), std::string::npos)
            << outcome.output;
    }
}

// 18: a driver in a namespace of its own, asked from the program's.
TEST(Driver, InAnotherNamespaceIsFollowed) {
    if (is_sanitized()) GTEST_SKIP() << "sanitizers do not support namespaces";
    expect_each_call_seen_once(
        run({kBuild + "/victim_looked_up"}, with(counting(), {"VICTIM_NAMESPACE=1"})));
}

TEST(Driver, ThatWasProbedAndClosedIsForgotten) {
    for (const char* victim : {"victim_linked", "victim_looked_up", "victim_asked"})
        expect_each_call_seen_once(
            run({kBuild + "/" + victim},
                with(counting(), {"VICTIM_PROBES=" OLD_DRIVER "/libcuda_probe.so"})));
}

// Without a driver the exported names must not seem to be one.
TEST(Driver, ThatIsAbsentStaysAbsent) {
    const Outcome outcome = run({kBuild + "/victim_without_driver"}, plain());
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
}

// 25: ctypes, in a scope of its own and in the global one.
TEST(Driver, OpenedByCtypesIsHooked) {
    for (const char* mode : {"RTLD_LOCAL", "RTLD_GLOBAL"}) {
        const std::string script =
            std::string("import ctypes as c; d = c.CDLL('libcuda.so.1', mode=c.") + mode +
            "); a = c.c_uint64(); print(d.cuInit(0), d.cuMemAlloc_v2(c.byref(a), "
            "c.c_size_t(4096)), d.cuMemCreate(0))";
        const Outcome outcome = run({"python3", "-c", script}, counting());
        EXPECT_EQ(outcome.status, 0);
        EXPECT_NE(outcome.output.find("0 0 0\n"), std::string::npos) << outcome.output;
        EXPECT_NE(outcome.output.find("cuMemAlloc_v2 was called 1 times\n"), std::string::npos)
            << outcome.output;
        EXPECT_NE(outcome.output.find("cuMemCreate was called 1 times\n"), std::string::npos)
            << outcome.output;
    }
}

// 29, 30, 34: tools that never touch CUDA run as without us, and say nothing.
TEST(Bystander, RunsInSilence) {
    const std::string source = testing::TempDir() + "/bystander.c";
    std::ofstream(source) << "int main(void) { return 0; }\n";
    const std::vector<Strings> commands = {
        {"/bin/true"},
        {kBuild + "/static_program"},
        {"env", "-i", "/bin/true"},
        {"gcc", "-O1", "-o", testing::TempDir() + "/bystander", source},
        {"sh", "-c", "echo done | cat >/dev/null"},
        {"python3", "-c",
         "import threading; threading.Thread(target=print, args=('',), kwargs={'end': "
         "''}).start()"},
    };
    for (const Strings& command : commands) {
        const Outcome outcome =
            run(command,
                with(plain(), {"LD_BIND_NOW=1", "LIBSWAP_VERBOSE=2", "LIBSWAP_BUDGET=nonsense"}));
        EXPECT_EQ(outcome.status, 0) << command[0];
        EXPECT_EQ(outcome.output, "") << command[0];
    }
}

TEST(Bystander, HasNoThreadOfOurs) {
    const Outcome outcome = run({"grep", "Threads", "/proc/self/status"}, plain());
    EXPECT_EQ(outcome.output, "Threads:\t1\n");
}

/// What C code of a Python program gets from getenv, what Python and its children see, and the
/// lines at the start of the engine.
std::string torch_environment(const Strings& more) {
    const std::string script =
        "import ctypes as c, os; get = c.CDLL(None).getenv; get.restype = c.c_char_p\n"
        "print(*(get(n) for n in (b'PYTORCH_ALLOC_CONF', b'PYTORCH_CUDA_ALLOC_CONF', "
        "b'PYTORCH_NO_CUDA_MEMORY_CACHING', b'LC_ALL')), flush=True)\n"
        "print([n for n in os.environ if n.startswith('PYTORCH')], flush=True)\n"
        "os.system('env | grep -c ^PYTORCH')";
    return run({"python3", "-c", script}, with(plain(), more)).output;
}

// PyTorch's C++ reads its settings by getenv; nothing else learns of what it is told.
TEST(Torch, IsToldByGetenvAlone) {
    EXPECT_EQ(torch_environment({}), "None b'max_split_size_mb:21' None b'C'\n[]\n0\n");
    EXPECT_EQ(torch_environment({"LIBSWAP_TORCH=uncached"}), "None None b'1' b'C'\n[]\n0\n");
    EXPECT_EQ(torch_environment({"PYTORCH_ALLOC_CONF=backend:native"}),
              "b'backend:native' None None b'C'\n['PYTORCH_ALLOC_CONF']\n1\n");
}

// As a script does before it imports PyTorch.
TEST(Torch, HearsWhatAScriptSets) {
    const std::string script =
        "import ctypes as c, os; os.environ['PYTORCH_ALLOC_CONF'] = 'backend:native'\n"
        "get = c.CDLL(None).getenv; get.restype = c.c_char_p\n"
        "print(get(b'PYTORCH_CUDA_ALLOC_CONF'))";
    EXPECT_EQ(run({"python3", "-c", script}, plain()).output, "None\n");
}

// Less than a millisecond for a process that never touches CUDA: medians of 100 alternating runs
// each.
TEST(Bystander, StartsAsFast) {
    if (is_sanitized()) GTEST_SKIP() << "the sanitizer's runtime takes longer";
    const auto time_one = [](const Strings& environment) {
        const auto begin = std::chrono::steady_clock::now();
        run({"/bin/true"}, environment);
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count();
    };
    std::vector<double> added;
    for (int i = 0; i < 100; ++i) {
        const double without = time_one({"LC_ALL=C"});
        added.push_back(time_one(plain()) - without);
    }
    std::nth_element(added.begin(), added.begin() + 50, added.end());
    std::cout << "added to a process start: " << added[50] << " ms\n";
    EXPECT_LT(added[50], 1.0);
}

// 42, 43: a sanitized program, with its runtime before us and after.
TEST(Sanitizer, ProgramRunsPreloaded) {
    if (is_sanitized()) GTEST_SKIP() << "all programs are";
    const std::string runtime = run({"gcc", "-print-file-name=libasan.so"}, plain()).output;
    const std::string libasan = runtime.substr(0, runtime.find('\n'));
    expect_each_call_seen_once(run({kBuild + "/victim_asan"}, counting(libasan + ":" + LIBSWAP)));
    Strings late = counting();
    for (std::string& entry : late)
        if (entry.rfind("ASAN_OPTIONS", 0) == 0) entry += ":verify_asan_link_order=0";
    expect_each_call_seen_once(run({kBuild + "/victim_asan"}, late));
}

TEST(Sanitizer, OfThreadsProgramRunsPreloaded) {
    if (is_sanitized()) GTEST_SKIP() << "one sanitizer at a time";
    const std::string runtime = run({"gcc", "-print-file-name=libtsan.so"}, plain()).output;
    const Outcome outcome = run({kBuild + "/victim_tsan"},
                                counting(runtime.substr(0, runtime.find('\n')) + ":" + LIBSWAP));
    // The runtime refuses some kernels' address layouts before the program begins.
    if (outcome.output.find("unexpected memory mapping") != std::string::npos)
        GTEST_SKIP() << outcome.output;
    expect_each_call_seen_once(outcome);
}

// 45, 46: forks while other threads register exit handlers, open libraries and call the driver.
TEST(Fork, ChildrenEndAtOnce) {
    const Outcome outcome = run({kBuild + "/victim_fork", "race"},
                                with(plain(), {"LD_LIBRARY_PATH=" DRIVER, "LIBSWAP_MODE=off"}));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
}

// 47: the child's calls go to the driver as they are, and nothing of ours comes alive until it
// calls cuInit.
TEST(Fork, ChildPassesThroughUntilItInitialises) {
    const Outcome outcome = run({kBuild + "/victim_fork", "child"}, counting());
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    // The parent allocated once; the first child is not listed, the second initialised and
    // allocated once more.
    EXPECT_NE(outcome.output.find("cuMemAlloc_v2 was called 1 times"), std::string::npos)
        << outcome.output;
    std::size_t reports = 0;
    for (std::size_t at = outcome.output.find("cuInit was called"); at != std::string::npos;
         at = outcome.output.find("cuInit was called", at + 1))
        ++reports;
    EXPECT_EQ(reports, 2U) << outcome.output;
}

// 91, 92: frees from late destructors, with a driver that has shut down.
TEST(Exit, CallsFromLateDestructorsAreHarmless) {
    const Outcome outcome =
        run({kBuild + "/victim_exit"},
            with(plain(), {"LD_LIBRARY_PATH=" DRIVER, "LIBSWAP_MODE=off", "FAKE_DEINIT=1"}));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "late free: 4\n");
}

// 93: opened and closed, not preloaded.
TEST(Exit, LibraryCanBeOpenedAndClosedAgainAndAgain) {
    if (is_sanitized()) GTEST_SKIP();
    for (int i = 0; i < 100; ++i) {
        void* library = dlopen(LIBSWAP, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library, nullptr) << dlerror();
        EXPECT_NE(dlsym(library, "cuInit"), nullptr);
        EXPECT_EQ(dlclose(library), 0);
    }
}

// 37: a program that gained privileges ignores LD_PRELOAD, and settings with it.
TEST(Secure, PrivilegedProgramRunsWithoutUs) {
    if (getuid() != 0) GTEST_SKIP() << "only root can make a privileged program";
    const std::string program = testing::TempDir() + "/libswap_secure_program";
    std::filesystem::copy_file(kBuild + "/victim_secure", program,
                               std::filesystem::copy_options::overwrite_existing);
    chmod(program.c_str(), 04755);
    const Outcome outcome = run({"setpriv", "--reuid=65534", "--clear-groups", program}, plain());
    std::filesystem::remove(program);
    if (outcome.output.find("not secure") != std::string::npos)
        GTEST_SKIP() << "the file system ignores set-uid";
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "no libswap\n");
}

}  // namespace
