// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace libswap {
namespace {

std::string captured(void (*work)()) {
    testing::internal::CaptureStderr();
    work();
    return testing::internal::GetCapturedStderr();
}

std::string prefix(const char* level) {
    return std::string("libswap: ") + level + ": [" + std::to_string(getpid()) + ":" +
           std::to_string(gettid()) + "] ";
}

TEST(Log, LineSaysLevelProcessAndThread) {
    configure_log(LogLevel::Warning, nullptr);
    EXPECT_EQ(captured([] { LIBSWAP_LOG(Warning, "device {} has no {}", 0, "VMM"); }),
              prefix("warning") + "device 0 has no VMM\n");
    EXPECT_EQ(captured([] { LIBSWAP_LOG(Error, "no"); }), prefix("error") + "no\n");
}

TEST(Log, NothingBelowTheThresholdIsWritten) {
    configure_log(LogLevel::Warning, nullptr);
    EXPECT_EQ(captured([] { LIBSWAP_LOG(Info, "quiet"); }), "");
    configure_log(LogLevel::Info, nullptr);
    EXPECT_EQ(captured([] { LIBSWAP_LOG(Info, "heard"); }), prefix("info") + "heard\n");
    EXPECT_EQ(captured([] { LIBSWAP_LOG(Debug, "quiet"); }), "");
    configure_log(LogLevel::Warning, nullptr);
}

TEST(Log, EachPlaceIsCapped) {
    const std::string text = captured([] {
        for (int i = 0; i < 100; ++i) LIBSWAP_LOG(Warning, "again {}", i);
    });
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), detail::kLinesPerSite);
    EXPECT_NE(text.find("again 7 (no more of these shown)\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("again 6 ("), std::string::npos);
}

TEST(Log, LongLinesAreCutAndStayOneLine) {
    const std::string text = captured([] { LIBSWAP_LOG(Warning, "{}", std::string(5000, 'x')); });
    EXPECT_LT(text.size(), 1200U);
    EXPECT_GT(text.size(), 900U);
    EXPECT_EQ(text.back(), '\n');
}

TEST(Log, ErrnoIsLeftAlone) {
    errno = 77;
    captured([] { LIBSWAP_LOG(Warning, "x"); });
    EXPECT_EQ(errno, 77);
}

TEST(Log, FileThatCannotBeOpenedIsSaidOnce) {
    const std::string text = captured([] {
        configure_log(LogLevel::Warning, "/nonexistent/folder/log");
        LIBSWAP_LOG(Warning, "still heard");
    });
    EXPECT_NE(
        text.find(
            "cannot open LIBSWAP_LOG_FILE '/nonexistent/folder/log' (No such file or directory)"),
        std::string::npos);
    EXPECT_NE(text.find("still heard\n"), std::string::npos);
}

// Last: the log stays in the file.
TEST(LogFile, TakesLinesInsteadOfStandardError) {
    const std::string path = testing::TempDir() + "libswap_log_test." + std::to_string(getpid());
    configure_log(LogLevel::Warning, path.c_str());
    EXPECT_EQ(captured([] { LIBSWAP_LOG(Warning, "to the file"); }), "");
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    EXPECT_EQ(content.str(), prefix("warning") + "to the file\n");
    unlink(path.c_str());
}

}  // namespace
}  // namespace libswap
