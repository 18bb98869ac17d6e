// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/call_roles.hpp"

namespace libswap {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local const CallRoles* innermost = nullptr;

}  // namespace

CallRoles::CallRoles(const char* name, const CallOperand* operands, std::size_t count) noexcept
    : name_(name), operands_(operands), count_(count), outer_(innermost) {
    innermost = this;
}

CallRoles::~CallRoles() { innermost = outer_; }

const CallRoles* CallRoles::current() noexcept { return innermost; }

CallRoles::Role CallRoles::role_of(std::uint64_t address, std::uint64_t base) const noexcept {
    const CallOperand* nearest = nullptr;
    for (std::size_t i = 0; i < count_; ++i) {
        const CallOperand& operand = operands_[i];
        if (operand.address == 0 || operand.address > address || operand.address < base) continue;
        // Two that begin at one place are one operand, written if either is.
        if (!nearest || operand.address > nearest->address ||
            (operand.address == nearest->address && operand.is_written))
            nearest = &operand;
    }
    if (!nearest) return Role::Unknown;
    return nearest->is_written ? Role::Written : Role::Read;
}

}  // namespace libswap
