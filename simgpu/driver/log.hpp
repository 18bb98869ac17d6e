// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <cstddef>
#include <utility>

namespace simgpu::driver {

/// Writes `simgpu: text` as one line to stderr, in one write and without allocating. @thread any
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
    constexpr std::size_t kLimit = 1000;
    std::array<char, kLimit + 32> line;
    char* end = fmt::format_to(line.data(), "simgpu: ");
    end = fmt::format_to_n(end, kLimit, format, std::forward<Args>(args)...).out;
    *end++ = '\n';
    // Nothing can be done about a closed stderr.
    [[maybe_unused]] auto written =
        ::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(end - line.data()));
}

}  // namespace simgpu::driver
