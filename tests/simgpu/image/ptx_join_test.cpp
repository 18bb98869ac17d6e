// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/image/ptx_join.hpp"

#include <gtest/gtest.h>

namespace libswap::simgpu::image {
namespace {

constexpr std::string_view kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

std::string with_header(std::string_view body) { return std::string(kHeader) + std::string(body); }

TEST(PtxJoin, ReturnsASingleTextAsItIs) {
    const std::string text = with_header("// a comment\n.global .u32 a;\n");
    EXPECT_EQ(join_ptx({text}), text);
}

TEST(PtxJoin, DropsDeclarationsOfWhatAnotherTextDefines) {
    const std::string user = with_header(
        ".extern .func (.param .b32 r) helper\n(\n.param .b32 p\n)\n;\n"
        ".extern .global .align 4 .u32 counter;\n.extern .const .align 4 .b8 table[12];\n"
        ".visible .entry run(.param .u64 p)\n{\n.reg .b32 %r<3>;\nret;\n}\n");
    const std::string owner = with_header(
        ".visible .global .align 4 .u32 counter = 3;\n"
        ".visible .const .align 4 .b8 table[12] = {0, 0, 128, 63};\n"
        ".visible .func (.param .b32 r) helper(\n.param .b32 p\n)\n{\nret;\n}\n");
    const auto joined = join_ptx({user, owner});
    ASSERT_TRUE(joined) << joined.error().reason;
    EXPECT_EQ(count(*joined, ".extern"), 0U) << *joined;
    EXPECT_EQ(count(*joined, ".version"), 1U);
    EXPECT_EQ(count(*joined, ".target"), 1U);
    EXPECT_EQ(count(*joined, "helper"), 1U);
    EXPECT_EQ(count(*joined, "counter = 3"), 1U);
    EXPECT_EQ(count(*joined, "table[12] = {0, 0, 128, 63}"), 1U);
    EXPECT_EQ(count(*joined, ".entry run"), 1U);
}

TEST(PtxJoin, KeepsExternalDeclarationsThatNobodyDefinesOnce) {
    const std::string a = with_header(".extern .func vprintf();\n");
    const auto joined = join_ptx({a, a});
    ASSERT_TRUE(joined);
    EXPECT_EQ(count(*joined, "vprintf"), 1U);
}

TEST(PtxJoin, KeepsOneOfSeveralWeakDefinitions) {
    const std::string a =
        with_header(".weak .func f()\n{\nret;\n}\n.weak .global .align 4 .u32 g = 1;\n");
    const auto joined = join_ptx({a, a, a});
    ASSERT_TRUE(joined);
    EXPECT_EQ(count(*joined, ".weak"), 2U);
}

TEST(PtxJoin, RefusesTwoStrongDefinitions) {
    const std::string a = with_header(".visible .global .u32 g;\n");
    const auto joined = join_ptx({a, a});
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().code, CUDA_ERROR_INVALID_PTX);
    EXPECT_NE(joined.error().reason.find('g'), std::string::npos);
}

TEST(PtxJoin, SeesThroughBracesInStringsAndComments) {
    const std::string a = with_header(
        "/* } */ .visible .func f()\n{\n// }\n{ .reg .b32 t; }\nret;\n}\n.global .u32 after;\n");
    const std::string b = with_header(".file 1 \"odd;{name}\"\n.extern .global .u32 after;\n");
    const auto joined = join_ptx({a, b});
    ASSERT_TRUE(joined) << joined.error().reason;
    EXPECT_EQ(count(*joined, "after"), 1U) << *joined;
}

TEST(PtxJoin, TakesTextsThatEndAnywhere) {
    const std::string whole =
        with_header(".visible .func f()\n{\nret;\n}\n.global .b8 s[4] = {1, 2, 3, 4};\n");
    for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
        const std::string part = whole.substr(0, bytes);
        const auto joined = join_ptx({part, std::string_view("")});
        EXPECT_TRUE(joined || !joined.error().reason.empty());
    }
}

}  // namespace
}  // namespace libswap::simgpu::image
