// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/kernel_name.hpp"

#include <gtest/gtest.h>

namespace simgpu {
namespace {

TEST(KernelName, TakesATemplateApart) {
    const KernelName name = parse_kernel_name(
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
        "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0"
        "_T1_");
    EXPECT_EQ(name.base, "vectorized_elementwise_kernel");
    ASSERT_EQ(name.template_arguments.size(), 3U);
    EXPECT_EQ(name.template_arguments[1], "at::native::FillFunctor<float>");
    ASSERT_EQ(name.parameters.size(), 3U);
    EXPECT_EQ(name.parameters[0], "int");
}

TEST(KernelName, SeesThroughAnonymousNamespaces) {
    const KernelName name = parse_kernel_name(
        "_ZN2at6native12_GLOBAL__N_133embedding_backward_feature_kernelIfflEEvPKT1_PKT_PS5_ilii");
    EXPECT_EQ(name.base, "embedding_backward_feature_kernel");
    EXPECT_EQ(name.template_arguments[2], "long");
    EXPECT_EQ(name.parameters[0], "long const*");
}

TEST(KernelName, KeepsAPlainName) {
    const KernelName name = parse_kernel_name("my_kernel");
    EXPECT_EQ(name.base, "my_kernel");
    EXPECT_TRUE(name.template_arguments.empty());
    EXPECT_TRUE(name.parameters.empty());
}

TEST(KernelName, TakesAFunctionWithoutTemplateApart) {
    const KernelName name = parse_kernel_name("_ZN5space4copyEPfPKfi");
    EXPECT_EQ(name.base, "copy");
    ASSERT_EQ(name.parameters.size(), 3U);
    EXPECT_EQ(name.parameters[1], "float const*");
}

TEST(KernelName, SplitsListsAtTheirOutermostCommas) {
    const auto parts = split_list("a<b, c>, f(int, long)::{lambda(float)#1}, x->y");
    ASSERT_EQ(parts.size(), 3U);
    EXPECT_EQ(parts[0], "a<b, c>");
    EXPECT_EQ(parts[2], "x->y");
}

}  // namespace
}  // namespace simgpu
