// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Has a device measured that has no profile, by `swapctl bench --aside`: a process of its own,
// which keeps the profile as a file, or why it could not in a file beside it. Nothing else connects
// the two, so neither can do the other harm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace libswap {

/// Where a measurement leaves why it failed. It is not tried again for a day.
std::string measuring_failure_path(std::string_view profile_path);

/// swapctl as it was built or installed with this library, or "".
std::string find_swapctl();

/// @thread one
class Measuring {
  public:
    enum class State : std::uint8_t { Idle, Running, Done, Failed };

    /// Remembers the environment: it is the program's, which may change it when this thread does
    /// not expect it.
    Measuring();
    /// Starts `program bench --aside profile_path --device number`. Makes no driver call. Not Idle
    /// afterwards.
    void start(const std::string& program, int device, const std::string& profile_path,
               std::uint64_t now_ns);
    /// Looks for the files, now and then. Done or Failed once.
    State look(std::uint64_t now_ns);
    bool is_idle() const noexcept { return state_ == State::Idle; }
    bool is_running() const noexcept { return state_ == State::Running; }
    /// Why it failed.
    const std::string& reason() const noexcept { return reason_; }

  private:
    State fail(std::string reason);

    std::vector<std::string> environment_;
    State state_ = State::Idle;
    std::string profile_path_;
    std::string reason_;
    std::uint64_t started_ns_ = 0;
    std::uint64_t looked_ns_ = 0;
};

}  // namespace libswap
