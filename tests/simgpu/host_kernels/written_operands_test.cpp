// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/written_operands.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace simgpu {
namespace {

using Parameters = std::vector<std::span<const std::byte>>;

TEST(WrittenOperands, ElementwiseKernelsWriteTheirFirst) {
    const KernelName name = parse_kernel_name(
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
        "addIfEESt5arrayIPcLm3EEEE"
        "viT0_T1_");
    const std::uint32_t count = 1000;
    const Parameters parameters{std::as_bytes(std::span(&count, 1)), {}, {}};
    const std::array<PointerWord, 3> pointers{{{2, 0}, {2, 8}, {2, 16}}};
    const WrittenOperands operands = written_operands(name, pointers, parameters);
    EXPECT_EQ(operands.written, (std::vector<bool>{true, false, false}));
    EXPECT_FALSE(operands.reads_written);
    EXPECT_EQ(operands.elements, 1000U);
    EXPECT_EQ(operands.type, FillType::Float);
}

TEST(WrittenOperands, OthersWriteWhatIsNotConst) {
    const KernelName name = parse_kernel_name("_ZN5space4copyEPfPKfi");
    const Parameters parameters(3);
    const std::array<PointerWord, 2> pointers{{{0, 0}, {1, 0}}};
    const WrittenOperands operands = written_operands(name, pointers, parameters);
    EXPECT_EQ(operands.written, (std::vector<bool>{true, false}));
    EXPECT_TRUE(operands.reads_written);
}

TEST(WrittenOperands, TensorsOfConstElementsAreRead) {
    const KernelName name = parse_kernel_name(
        "void select<float>(TensorInfo<float, unsigned int>, TensorInfo<float const, unsigned "
        "int>, TensorInfo<long const, unsigned int>)");
    const Parameters parameters(3);
    const std::array<PointerWord, 3> pointers{{{0, 0}, {1, 0}, {2, 0}}};
    EXPECT_EQ(written_operands(name, pointers, parameters).written,
              (std::vector<bool>{true, false, false}));
}

TEST(WrittenOperands, WithoutTypesAllMayBeWritten) {
    const KernelName name = parse_kernel_name("plain");
    const Parameters parameters(2);
    const std::array<PointerWord, 2> pointers{{{0, 0}, {1, 0}}};
    EXPECT_EQ(written_operands(name, pointers, parameters).written,
              (std::vector<bool>{true, true}));
}

TEST(WrittenOperands, TheNarrowestTypeDecides) {
    const Parameters parameters;
    const auto type = [&](const char* name) {
        return written_operands(parse_kernel_name(name), {}, parameters).type;
    };
    EXPECT_EQ(type("_Z1fIN3c104HalfEfEvPT_PT0_"), FillType::Half);
    EXPECT_EQ(type("_Z1fIlEvPT_"), FillType::Long);
    EXPECT_EQ(type("_Z1fIdEvPT_"), FillType::Double);
}

TEST(WrittenOperands, TheWidestTypeSaysHowFarIsRead) {
    const auto widest = [](const char* name) {
        return written_operands(parse_kernel_name(name), {}, {}).widest_bytes;
    };
    EXPECT_EQ(widest("void f<float, bool>(int)"), 4U);
    EXPECT_EQ(widest("void f<c10::BFloat16>(int)"), 2U);
    EXPECT_EQ(widest("void f<c10::complex<double> >(int)"), 16U);
    EXPECT_EQ(widest("void f<bool>(int)"), 1U);
}

}  // namespace
}  // namespace simgpu
