// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/measuring.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/clock.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr const char* kProfile =
    R"({"format": "libswap-device/1", "h2d": {"latency_us": 7, "overhead_us": 1, "gap_us": 4, "gbps": 51},
        "d2h": {"latency_us": 8, "overhead_us": 1, "gap_us": 3, "gbps": 52},
        "h2d_duplex_gbps": 41, "d2h_duplex_gbps": 42, "map_us_per_gib": 6000, "unmap_us_per_gib": 1300,
        "map_us_per_chunk": 50, "unmap_us_per_chunk": 20, "reaction_us": 10, "fp32_tflops": 19,
        "mem_gbps": 1400, "launch_latency_us": 3})";

class AMeasurement : public testing::Test {
  protected:
    AMeasurement()
        : folder_(std::filesystem::temp_directory_path() /
                  ("libswap-measuring-" + std::to_string(getpid()))),
          profile_(folder_ / "cache" / "GPU-13000.json") {
        std::filesystem::create_directory(folder_);
        std::ofstream(folder_ / "profile") << kProfile;
        setenv("LD_PRELOAD", "/nonexistent", 1);
        setenv("LIBSWAP_BUDGET", "1GiB", 1);
    }
    ~AMeasurement() override {
        unsetenv("LD_PRELOAD");
        unsetenv("LIBSWAP_BUDGET");
        std::error_code ignored;
        std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, ignored);
        std::filesystem::remove_all(folder_, ignored);
    }

    /// A program in place of swapctl. $3 is the profile's path.
    std::string program(const std::string& script) {
        const std::filesystem::path path = folder_ / "program";
        std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
        chmod(path.c_str(), 0755);
        return path;
    }
    Measuring::State run(Measuring& measuring, const std::string& program) {
        measuring.start(program, 2, profile_, now_ns());
        for (int tries = 0; tries < 3000 && measuring.is_running(); ++tries) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            measuring.look(now_ns());
        }
        return measuring.look(now_ns());
    }
    std::string read(const std::filesystem::path& path) {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }

    const std::filesystem::path folder_;
    const std::string profile_;
};

TEST_F(AMeasurement, IsDoneOnceTheProfileIsThere) {
    Measuring measuring;
    EXPECT_TRUE(measuring.is_idle());
    const std::string copy = "cp " + (folder_ / "profile").string() + " $3.part; mv $3.part $3";
    EXPECT_EQ(run(measuring, program("echo $@ > " + (folder_ / "words").string() + "; env > " +
                                     (folder_ / "env").string() + "; " + copy)),
              Measuring::State::Done);
    EXPECT_EQ(read(folder_ / "words"), "bench --aside " + profile_ + " --device 2\n");
    const std::string environment = read(folder_ / "env");
    EXPECT_EQ(environment.find("LD_PRELOAD"), std::string::npos);
    EXPECT_EQ(environment.find("LIBSWAP_BUDGET"), std::string::npos);
    EXPECT_NE(environment.find("LIBSWAP_MODE=off"), std::string::npos);
    EXPECT_NE(environment.find("PATH="), std::string::npos);
}

TEST_F(AMeasurement, ThatFailsSaysWhyAndIsNotTriedAgain) {
    const std::string failing = program("echo no device > $3.failed; echo >> $3.count");
    Measuring first;
    EXPECT_EQ(run(first, failing), Measuring::State::Failed);
    EXPECT_EQ(first.reason(), "no device");
    Measuring second;
    EXPECT_EQ(run(second, failing), Measuring::State::Failed);
    EXPECT_EQ(second.reason(), "no device");
    EXPECT_EQ(read(profile_ + ".count"), "\n");
}

TEST_F(AMeasurement, IsTriedAgainAfterADay) {
    const std::string failing = program("echo no device > $3.failed; echo >> $3.count");
    Measuring first;
    run(first, failing);
    const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(25);
    std::filesystem::last_write_time(measuring_failure_path(profile_), long_ago);
    Measuring second;
    EXPECT_EQ(run(second, failing), Measuring::State::Failed);
    EXPECT_EQ(read(profile_ + ".count"), "\n\n");
}

TEST_F(AMeasurement, ThatSaysNothingIsGivenUp) {
    Measuring measuring;
    measuring.start(program("exit 1"), 0, profile_, 0);
    EXPECT_EQ(measuring.look(1'000 * kMs), Measuring::State::Running);
    EXPECT_EQ(measuring.look(100'000 * kMs), Measuring::State::Failed);
    EXPECT_EQ(measuring.reason(), "it took too long");
}

TEST_F(AMeasurement, IsNotStartedWhereNothingCanBeKept) {
    if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
    std::filesystem::permissions(
        folder_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    Measuring measuring;
    EXPECT_EQ(run(measuring, "/bin/true"), Measuring::State::Failed);
    EXPECT_NE(measuring.reason().find("cannot be written"), std::string::npos);
}

TEST_F(AMeasurement, WithoutItsProgramHasFailed) {
    Measuring measuring;
    EXPECT_EQ(run(measuring, folder_ / "nothing"), Measuring::State::Failed);
    EXPECT_NE(measuring.reason().find("nothing: No such file"), std::string::npos);
}

/// What somebody left there by mistake is no profile; half of one isn't either.
TEST_F(AMeasurement, IsNotDoneByAFileThatIsNoProfile) {
    Measuring measuring;
    measuring.start(program("head -c 100 " + (folder_ / "profile").string() + " > $3"), 0, profile_,
                    0);
    for (int tries = 0; tries < 3000 && read(profile_).size() < 100; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(measuring.look(1'000 * kMs), Measuring::State::Running);
}

}  // namespace
}  // namespace libswap
