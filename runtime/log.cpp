// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/log.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace libswap {
namespace {

constinit std::atomic<int> g_threshold{static_cast<int>(LogLevel::Warning)};
constinit std::atomic<int> g_fd{STDERR_FILENO};

constexpr const char* kLevelNames[] = {"error", "warning", "info", "debug"};

void write_once(const char* text, std::size_t length) noexcept {
    const int saved_errno = errno;
    while (write(g_fd.load(std::memory_order_relaxed), text, length) < 0 && errno == EINTR) {
    }
    errno = saved_errno;  // a hook must leave the program's errno as it found it
}

}  // namespace

void configure_log(LogLevel threshold, const char* path) noexcept {
    g_threshold.store(static_cast<int>(threshold), std::memory_order_relaxed);
    if (!path || !*path) return;
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        LIBSWAP_LOG(Warning, "cannot open LIBSWAP_LOG_FILE '{}' ({}), writing to standard error",
                    path, strerrordesc_np(errno));
        return;
    }
    g_fd.store(fd, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) noexcept {
    return static_cast<int>(level) <= g_threshold.load(std::memory_order_relaxed);
}

void write_log_line(LogLevel level, std::string_view text) noexcept {
    char line[1152];
    const auto head =
        fmt::format_to_n(line, sizeof line - 1, "libswap: {}: [{}:{}] ",
                         kLevelNames[static_cast<int>(level)], getpid(), syscall(SYS_gettid));
    std::size_t length = head.size;
    const std::size_t taken = std::min(text.size(), sizeof line - length - 1);
    std::memcpy(line + length, text.data(), taken);
    length += taken;
    line[length++] = '\n';
    write_once(line, length);
}

void write_log_text(std::string_view text) noexcept { write_once(text.data(), text.size()); }

}  // namespace libswap
