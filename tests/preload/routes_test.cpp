// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/interposer/run.hpp"

// Programs that get at the driver in every way there is, on simgpu with 256 MiB, with libswap and a
// budget of less than half of what they allocate. LIBSWAP, BUILD_FOLDER and SIMGPU (folder of the
// stand-ins) come from the build.

namespace {

Outcome run_victim(const std::string& name, const std::vector<std::string>& more,
                   bool with_libswap = true) {
    const std::string stand_ins = SIMGPU "/libcuda.so.1:" SIMGPU "/libcudart.so.13";
    const std::vector<std::string> usual = {
        "PATH=/usr/bin:/bin", "ASAN_OPTIONS=detect_leaks=0", "SIMGPU_MEMORY=256MiB",
        "LD_LIBRARY_PATH=" SIMGPU,
        preload(with_libswap ? std::string(LIBSWAP) + ":" + stand_ins : stand_ins)};
    std::vector<std::string> environment = more;  // the first of two equal names counts
    environment.insert(environment.end(), usual.begin(), usual.end());
    return run({std::string(BUILD_FOLDER) + "/" + name}, environment);
}

class Route : public testing::TestWithParam<const char*> {
  protected:
    std::string program() const { return std::string("routes_") + GetParam(); }
};

/// The figure behind `key` in the summary at exit, in MiB: "out 12.0 MiB".
double figure(const std::string& text, const std::string& key) {
    const std::size_t at = text.find(key + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + key.size() + 1));
}

TEST_P(Route, RunsOnTheStandInsAlone) {
    const Outcome outcome = run_victim(program(), {}, false);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output.rfind("right ", 0), 0U) << outcome.output;
}

TEST_P(Route, FailsWithoutLibswapOnASmallDevice) {
    const Outcome outcome = run_victim(program(), {"SIMGPU_MEMORY=32MiB"}, false);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.output.find("error 2"), std::string::npos) << outcome.output;
}

TEST_P(Route, IsSwappedAndEndsWithTheSameBytes) {
    const Outcome alone = run_victim(program(), {}, false);
    const Outcome swapped =
        run_victim(program(), {"SIMGPU_MEMORY=32MiB", "LIBSWAP_BUDGET=24MiB", "LIBSWAP_VERBOSE=1"});
    EXPECT_EQ(swapped.status, 0) << swapped.output;
    EXPECT_NE(swapped.output.find(alone.output), std::string::npos) << swapped.output;
    EXPECT_GT(figure(swapped.output, "  out"), 32) << swapped.output;
}

// However it was looked up: three rounds of eight fills and reads, eight allocations and frees.
TEST_P(Route, HasEachCallSeenOnce) {
    const Outcome outcome = run_victim(program(), {"LIBSWAP_BUDGET=24MiB", "LIBSWAP_VERBOSE=2"});
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    for (const char* seen :
         {"] cuMemAlloc_v2 was called 8 times\n", "] cuMemFree_v2 was called 8 times\n"})
        EXPECT_NE(outcome.output.find(seen), std::string::npos) << seen << "in\n" << outcome.output;
    const bool is_runtime =
        program() == "routes_shared_runtime";  // which has calls of its own choice
    for (const char* seen :
         {"] cuMemsetD8_v2 was called 24 times\n", "] cuMemcpyDtoH_v2 was called 24 times\n"})
        EXPECT_TRUE(is_runtime || outcome.output.find(seen) != std::string::npos) << seen << "in\n"
                                                                                  << outcome.output;
}

TEST_P(Route, SaysNothingWithoutBeingAsked) {
    const Outcome alone = run_victim(program(), {}, false);
    const Outcome outcome = run_victim(program(), {});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, alone.output);
}

INSTANTIATE_TEST_SUITE_P(Ways, Route,
                         testing::Values("linked", "shared_runtime", "looked_up", "asked"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
