// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/call_roles.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace libswap {
namespace {

using Role = CallRoles::Role;

constexpr std::uint64_t kBuffer = 0x7000'0000;

TEST(CallRoles, KnowOperandsByTheirBeginAndWhatLiesBehind) {
    const CallOperand operands[] = {
        {kBuffer, false}, {kBuffer + 0x1000, true}, {0, true}, {kBuffer + 0x2000, false}};
    const CallRoles roles("call", operands, 4);
    EXPECT_EQ(roles.role_of(kBuffer, kBuffer), Role::Read);
    EXPECT_EQ(roles.role_of(kBuffer + 0xfff, kBuffer), Role::Read);
    EXPECT_EQ(roles.role_of(kBuffer + 0x1000, kBuffer), Role::Written);
    EXPECT_EQ(roles.role_of(kBuffer + 0x1800, kBuffer), Role::Written);
    EXPECT_EQ(roles.role_of(kBuffer + 0x2004, kBuffer), Role::Read);
}

TEST(CallRoles, SayNothingOfOtherBuffers) {
    const CallOperand operands[] = {{kBuffer, false}, {kBuffer + 0x1000, true}};
    const CallRoles roles("call", operands, 2);
    EXPECT_EQ(roles.role_of(kBuffer - 1, kBuffer - 0x1000), Role::Unknown);
    EXPECT_EQ(roles.role_of(kBuffer + 0x5000, kBuffer + 0x4000), Role::Unknown);
}

TEST(CallRoles, CallWrittenWhatIsReadAndWritten) {
    const CallOperand operands[] = {{kBuffer, true}, {kBuffer, false}};
    EXPECT_EQ(CallRoles("call", operands, 2).role_of(kBuffer, kBuffer), Role::Written);
    const CallOperand turned[] = {{kBuffer, false}, {kBuffer, true}};
    EXPECT_EQ(CallRoles("call", turned, 2).role_of(kBuffer, kBuffer), Role::Written);
}

TEST(CallRoles, AreTheInnermostOfTheirThread) {
    EXPECT_EQ(CallRoles::current(), nullptr);
    const CallRoles outer("outer", nullptr, 0);
    {
        const CallRoles inner("inner", nullptr, 0);
        EXPECT_STREQ(CallRoles::current()->name(), "inner");
        std::thread([] { EXPECT_EQ(CallRoles::current(), nullptr); }).join();
    }
    EXPECT_STREQ(CallRoles::current()->name(), "outer");
}

}  // namespace
}  // namespace libswap
