// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace libswap {

enum class LogLevel : int { Error = 0, Warning = 1, Info = 2, Debug = 3 };

/// Where lines go and which: called once the settings are read. `path` may be nullptr (standard
/// error); one that cannot be opened is said in one line, and standard error is used.
void configure_log(LogLevel threshold, const char* path) noexcept;

/// One relaxed load: whether lines of this level are written at all. @thread any
bool log_enabled(LogLevel level) noexcept;

/// Writes `libswap: <level>: [pid:tid] text` with one write(2). Longer than about 1000 bytes is
/// cut. Allocates nothing. @thread any
void write_log_line(LogLevel level, std::string_view text) noexcept;

/// Writes text as it is, lines and all, to the log's destination with one write(2): the summary at
/// exit.
void write_log_text(std::string_view text) noexcept;

namespace detail {

/// How many lines one LIBSWAP_LOG writes at most; the last says that more are not shown.
inline constexpr std::uint32_t kLinesPerSite = 8;

/// The number of this message at its place, from 1.
inline std::uint32_t count_message(std::atomic<std::uint32_t>& site) noexcept {
    return site.fetch_add(1, std::memory_order_relaxed) + 1;
}

template <class... Args>
void log(LogLevel level, std::uint32_t number, fmt::format_string<Args...> format,
         Args&&... args) noexcept {
    if (number > kLinesPerSite && level != LogLevel::Debug) return;
    char text[1024];
    std::size_t length = 0;
    try {
        length = fmt::format_to_n(text, sizeof text - 32, format, std::forward<Args>(args)...).size;
    } catch (...) {
        return write_log_line(level, "(a message that could not be formatted)");
    }
    if (length > sizeof text - 32) length = sizeof text - 32;
    if (number == kLinesPerSite && level != LogLevel::Debug) {
        constexpr std::string_view kMore = " (no more of these shown)";
        kMore.copy(text + length, kMore.size());
        length += kMore.size();
    }
    write_log_line(level, {text, length});
}

}  // namespace detail
}  // namespace libswap

/// LIBSWAP_LOG(Warning, "no HOST_NUMA memory on device {}, swapping only explained buffers",
/// device) At most detail::kLinesPerSite lines from each place (debug lines are not capped). No
/// allocation.
#define LIBSWAP_LOG(level, ...)                                                                  \
    do {                                                                                         \
        if (::libswap::log_enabled(::libswap::LogLevel::level)) {                                \
            static constinit ::std::atomic<::std::uint32_t> libswap_site{0};                     \
            ::libswap::detail::log(::libswap::LogLevel::level,                                   \
                                   ::libswap::detail::count_message(libswap_site), __VA_ARGS__); \
        }                                                                                        \
    } while (false)
