// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/image/cubin.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/simgpu/image/compose.hpp"

namespace libswap::simgpu::image::test {
namespace {

class Cubin : public testing::TestWithParam<int> {
  protected:
    void SetUp() override {
        bytes_ = read_file(data_folder() + "/kernels_" + std::to_string(GetParam()) + ".cubin");
        ASSERT_FALSE(bytes_.empty()) << "run by meson, with nvcc";
    }
    Bytes bytes_;
};

TEST_P(Cubin, TellsArchitectureAndExtent) {
    EXPECT_EQ(cubin_architecture(ByteView(bytes_)), static_cast<std::uint32_t>(GetParam()));
    const auto extent = cubin_extent(ByteView(bytes_));
    ASSERT_TRUE(extent);
    EXPECT_EQ(*extent, bytes_.size());
}

TEST_P(Cubin, ListsKernelsWithParametersAndSizes) {
    const auto contents = read_cubin(ByteView(bytes_));
    ASSERT_TRUE(contents) << contents.error().reason;
    EXPECT_EQ(contents->kernels.size(), 3U);
    const KernelInfo* small = contents->find_kernel("small");
    ASSERT_NE(small, nullptr);
    ASSERT_EQ(small->parameters.size(), 4U);
    const std::uint32_t offsets[] = {0, 8, 16, 24};
    const std::uint32_t sizes[] = {8, 1, 8, 2};
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(small->parameters[static_cast<std::size_t>(i)].offset, offsets[i]);
        EXPECT_EQ(small->parameters[static_cast<std::size_t>(i)].bytes, sizes[i]);
    }
    EXPECT_EQ(small->parameter_bytes, 26U);
    EXPECT_GE(small->static_shared_bytes, 33U * 4);
    EXPECT_EQ(small->max_threads, 256U);
    EXPECT_GT(small->registers, 0U);
    const KernelInfo* wide = contents->find_kernel("wide");
    ASSERT_NE(wide, nullptr);
    ASSERT_EQ(wide->parameters.size(), 2U);
    EXPECT_EQ(wide->parameters[0].bytes, 6000U);
    EXPECT_EQ(wide->parameters[1].offset, 6000U);
    const KernelInfo* none = contents->find_kernel("none");
    ASSERT_NE(none, nullptr);
    EXPECT_TRUE(none->parameters.empty());
    EXPECT_EQ(none->parameter_bytes, 0U);
    EXPECT_EQ(contents->find_kernel("absent"), nullptr);
}

TEST_P(Cubin, ListsVariablesWithInitialBytesAndPointers) {
    const auto contents = read_cubin(ByteView(bytes_));
    ASSERT_TRUE(contents);
    const VariableInfo* zeros = contents->find_variable("zeros");
    ASSERT_NE(zeros, nullptr);
    EXPECT_EQ(zeros->bytes, 400U);
    EXPECT_TRUE(zeros->initial.empty());
    const VariableInfo* table = contents->find_variable("table");
    ASSERT_NE(table, nullptr);
    const int expected[] = {1, 2, 3, 4};
    ASSERT_EQ(table->initial.size(), sizeof expected);
    EXPECT_EQ(std::memcmp(table->initial.data(), expected, sizeof expected), 0);
    const VariableInfo* scale = contents->find_variable("scale");
    ASSERT_NE(scale, nullptr);
    EXPECT_TRUE(scale->constant);
    EXPECT_EQ(scale->bytes, 12U);
    const VariableInfo* middle = contents->find_variable("middle");
    ASSERT_NE(middle, nullptr);
    ASSERT_EQ(middle->relocations.size(), 1U);
    EXPECT_EQ(middle->relocations[0].offset, 0U);
    EXPECT_EQ(middle->relocations[0].addend, 8);
    EXPECT_EQ(middle->relocations[0].symbol, "table");
}

TEST_P(Cubin, RefusesOtherMachinesAndFiles) {
    Bytes other = bytes_;
    other[18] = std::byte{62};
    EXPECT_FALSE(read_cubin(ByteView(other)));
    EXPECT_FALSE(
        read_cubin(ByteView(to_bytes("\x7f"
                                     "ELF"))));
    EXPECT_FALSE(read_cubin(ByteView()));
}

TEST_P(Cubin, RefusesSectionsOutsideOfTheFile) {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes_.data(), sizeof header);
    for (std::size_t index = 1; index < header.e_shnum; ++index) {
        const std::size_t at = header.e_shoff + index * sizeof(Elf64_Shdr);
        Elf64_Shdr section;
        std::memcpy(&section, bytes_.data() + at, sizeof section);
        if (section.sh_type == SHT_NOBITS) {
            continue;
        }
        Bytes mangled = bytes_;
        section.sh_size = ~std::uint64_t{0} - 100;
        std::memcpy(mangled.data() + at, &section, sizeof section);
        EXPECT_FALSE(read_cubin(ByteView(mangled))) << index;
    }
}

INSTANTIATE_TEST_SUITE_P(Architectures, Cubin, testing::Values(75, 80, 90, 120));

}  // namespace
}  // namespace libswap::simgpu::image::test
