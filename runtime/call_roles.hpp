// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstddef>
#include <cstdint>

namespace libswap {

/// One operand of a library's call.
struct CallOperand {
    std::uint64_t address = 0;  ///< on the device; 0: not there
    bool is_written = false;
};

/// What a call of a library (cuDNN) says about the launches that it makes, for as long as it lasts,
/// on its thread. The launches' own parameters say what they touch; this says what is done with it.
/// A hint for plans: what it says is not relied upon.
class CallRoles {
  public:
    enum class Role : std::uint8_t { Unknown, Read, Written };

    /// `name` and `operands` outlive it.
    CallRoles(const char* name, const CallOperand* operands, std::size_t count) noexcept;
    ~CallRoles();
    CallRoles(const CallRoles&) = delete;
    CallRoles& operator=(const CallRoles&) = delete;

    /// The innermost of this thread, or null. @thread any
    static const CallRoles* current() noexcept;

    const char* name() const noexcept { return name_; }
    /// Of an address that a launch has: the operand's that begins there, or the nearest before it
    /// that begins at `base` or behind, the begin of the buffer which the address lies in.
    Role role_of(std::uint64_t address, std::uint64_t base) const noexcept;

  private:
    const char* name_;
    const CallOperand* operands_;
    std::size_t count_;
    const CallRoles* outer_;
};

}  // namespace libswap
