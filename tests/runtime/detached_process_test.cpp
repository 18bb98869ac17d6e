// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/detached_process.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace libswap {
namespace {

volatile std::sig_atomic_t g_signals = 0;

class ADetachedProcess : public testing::Test {
  protected:
    ADetachedProcess()
        : folder_(std::filesystem::temp_directory_path() /
                  ("libswap-detached-" + std::to_string(getpid()))) {
        std::filesystem::create_directory(folder_);
    }
    ~ADetachedProcess() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    /// By a shell, whose last act is to move its file to where it is waited for.
    std::string told_by(const std::string& command) {
        const std::string out = folder_ / "out";
        std::string script = "{ " + command + "; } > " + out + ".part; mv " + out + ".part " + out;
        std::string shell = "/bin/sh";
        std::string option = "-c";
        std::string variable = "GIVEN=yes";
        char* const argv[] = {shell.data(), option.data(), script.data(), nullptr};
        char* const envp[] = {variable.data(), nullptr};
        EXPECT_EQ(start_detached("/bin/sh", argv, envp), 0);
        for (int tries = 0; tries < 3000 && !std::filesystem::exists(out); ++tries)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::ostringstream text;
        text << std::ifstream(out).rdbuf();
        return text.str();
    }

    const std::filesystem::path folder_;
};

TEST_F(ADetachedProcess, HasTheEnvironmentThatItIsGiven) {
    EXPECT_EQ(told_by("echo $GIVEN $HOME"), "yes\n");
}

TEST_F(ADetachedProcess, IsNoChildOfThisOne) {
    std::signal(SIGCHLD, [](int) { g_signals = g_signals + 1; });
    const std::string parent = told_by("echo $PPID");
    EXPECT_NE(parent, std::to_string(getpid()) + "\n");
    EXPECT_NE(parent, "");
    EXPECT_EQ(waitpid(-1, nullptr, __WALL), -1);
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(g_signals, 0);
    std::signal(SIGCHLD, SIG_DFL);
}

TEST_F(ADetachedProcess, SpeaksToNobodyAndBlocksNoSignal) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // The shell itself reads its mask: while it starts another program all signals are blocked.
    const std::string told = told_by(
        "readlink /proc/$$/fd/0 /proc/$$/fd/2; "
        "while read -r name value; do echo $name $value; done < /proc/$$/status");
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_NE(told.find("/dev/null\n/dev/null\n"), std::string::npos) << told;
    EXPECT_NE(told.find("SigBlk: 0000000000000000"), std::string::npos) << told;
}

TEST_F(ADetachedProcess, ThatIsNotThereIsAnError) {
    std::string name = "nothing";
    char* const argv[] = {name.data(), nullptr};
    char* const envp[] = {nullptr};
    errno = 0;
    EXPECT_EQ(start_detached((folder_ / "nothing").c_str(), argv, envp), ENOENT);
    EXPECT_EQ(errno, 0);
    EXPECT_EQ(waitpid(-1, nullptr, __WALL), -1);
}

}  // namespace
}  // namespace libswap
