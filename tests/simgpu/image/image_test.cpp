// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/image/image.hpp"

#include <fatbinary_section.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/simgpu/image/compose.hpp"

namespace libswap::simgpu::image::test {
namespace {

EntrySpec ptx_entry(std::string_view name, unsigned architecture, Packing packing = Packing::Zstd) {
    Bytes text = to_bytes(small_ptx(name, architecture));
    text.push_back(std::byte{0});
    return {.kind = 1, .architecture = architecture, .plain = text, .packing = packing};
}

EntrySpec cubin_entry(int architecture) {
    return {
        .kind = 2,
        .architecture = static_cast<std::uint32_t>(architecture),
        .plain = read_file(data_folder() + "/kernels_" + std::to_string(architecture) + ".cubin"),
        .packing = Packing::Lz4};
}

std::string only_kernel(const Bytes& fatbin, std::uint32_t capability) {
    const auto image = load_image(fatbin.data(), capability);
    if (!image) {
        return image.error().reason;
    }
    const auto contents = image->contents();
    if (!contents) {
        return contents.error().reason;
    }
    return (*contents)->kernels.size() == 1 ? (*contents)->kernels[0].name : "not one kernel";
}

TEST(LoadImage, PrefersPtxToMachineCode) {
    const Bytes fatbin = compose({cubin_entry(80), ptx_entry("p", 90)});
    const auto image = load_image(fatbin.data(), 80);
    ASSERT_TRUE(image) << image.error().reason;
    EXPECT_EQ(image->form(), Form::Ptx);
    EXPECT_EQ(image->architecture(), 90U);
}

TEST(LoadImage, TakesNewestPtxThatTheDeviceCanRunElseTheOldest) {
    const Bytes fatbin =
        compose({ptx_entry("k70", 70), ptx_entry("k120", 120), ptx_entry("k80", 80, Packing::Lz4),
                 ptx_entry("k75", 75), ptx_entry("k90", 90)});
    EXPECT_EQ(only_kernel(fatbin, 80), "k80");
    EXPECT_EQ(only_kernel(fatbin, 86), "k80");
    EXPECT_EQ(only_kernel(fatbin, 90), "k90");
    EXPECT_EQ(only_kernel(fatbin, 60), "k70");
    EXPECT_EQ(only_kernel(fatbin, 121), "k120");
}

TEST(LoadImage, TakesCubinWhereThereIsNoPtx) {
    const Bytes fatbin = compose({cubin_entry(75), cubin_entry(90), cubin_entry(120)});
    const auto image = load_image(fatbin.data(), 80);
    ASSERT_TRUE(image) << image.error().reason;
    EXPECT_EQ(image->form(), Form::Cubin);
    EXPECT_EQ(image->architecture(), 75U);
    const auto contents = image->contents();
    ASSERT_TRUE(contents) << contents.error().reason;
    EXPECT_EQ((*contents)->module, nullptr);
    EXPECT_NE((*contents)->find_kernel("wide"), nullptr);
}

TEST(LoadImage, SaysThatAnEmptyFatBinaryFitsNoDevice) {
    const Bytes fatbin = compose({{.kind = 8, .plain = to_bytes("something else")}});
    const auto image = load_image(fatbin.data(), 80);
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().code, CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST(LoadImage, KeepsNothingOfTheProgramsBytes) {
    auto fatbin = std::make_unique<Bytes>(compose({ptx_entry("k", 80)}));
    const auto image = load_image(fatbin->data(), 80);
    ASSERT_TRUE(image);
    std::fill(fatbin->begin(), fatbin->end(), std::byte{0});
    fatbin.reset();
    const auto contents = image->contents();
    ASSERT_TRUE(contents) << contents.error().reason;
    EXPECT_NE((*contents)->find_kernel("k"), nullptr);
}

TEST(LoadImage, ReadsTheWrapperThatNvccRegisters) {
    const Bytes fatbin = compose({ptx_entry("k", 80)});
    const __fatBinC_Wrapper_t wrapper{FATBINC_MAGIC, FATBINC_VERSION,
                                      reinterpret_cast<const unsigned long long*>(fatbin.data()),
                                      nullptr};
    const auto image = load_image(&wrapper, 80);
    ASSERT_TRUE(image) << image.error().reason;
    ASSERT_TRUE(image->contents());
    __fatBinC_Wrapper_t broken = wrapper;
    broken.version = 77;
    EXPECT_FALSE(load_image(&broken, 80));
    broken = wrapper;
    broken.data = nullptr;
    EXPECT_FALSE(load_image(&broken, 80));
    broken.data = reinterpret_cast<const unsigned long long*>(16);
    EXPECT_FALSE(load_image(&broken, 80));
}

TEST(LoadImage, JoinsThePtxOfADeviceLinkedProgram) {
    const Bytes linked = compose({cubin_entry(80)});
    const Bytes first = compose({cubin_entry(80), ptx_entry("one", 80)});
    const Bytes second = compose({ptx_entry("two", 80)});
    const void* objects[] = {first.data(), second.data(), nullptr};
    const __fatBinC_Wrapper_t wrapper{FATBINC_MAGIC, FATBINC_LINK_VERSION,
                                      reinterpret_cast<const unsigned long long*>(linked.data()),
                                      objects};
    const auto image = load_image(&wrapper, 80);
    ASSERT_TRUE(image) << image.error().reason;
    const auto contents = image->contents();
    ASSERT_TRUE(contents) << contents.error().reason;
    EXPECT_NE((*contents)->find_kernel("one"), nullptr);
    EXPECT_NE((*contents)->find_kernel("two"), nullptr);
}

TEST(LoadImage, FallsBackToLinkedCodeWhereAnObjectHasNoPtx) {
    const Bytes linked = compose({cubin_entry(80)});
    const Bytes first = compose({ptx_entry("one", 80)});
    const Bytes second = compose({cubin_entry(80)});
    const void* objects[] = {first.data(), second.data(), nullptr};
    const __fatBinC_Wrapper_t wrapper{FATBINC_MAGIC, FATBINC_LINK_VERSION,
                                      reinterpret_cast<const unsigned long long*>(linked.data()),
                                      objects};
    const auto image = load_image(&wrapper, 80);
    ASSERT_TRUE(image) << image.error().reason;
    EXPECT_EQ(image->form(), Form::Cubin);
}

TEST(LoadImage, ReadsCubinWithoutASize) {
    const GuardedBytes cubin(read_file(data_folder() + "/kernels_80.cubin"));
    const auto image = load_image(cubin.data(), 80);
    ASSERT_TRUE(image) << image.error().reason;
    const auto contents = image->contents();
    ASSERT_TRUE(contents);
    EXPECT_EQ((*contents)->kernels.size(), 3U);
}

TEST(LoadImage, ReadsPtxThatEndsAtTheEndOfMemory) {
    Bytes text = to_bytes(small_ptx("edge", 75));
    text.push_back(std::byte{0});
    const GuardedBytes guarded(text);
    const auto image = load_image(guarded.data(), 80);
    ASSERT_TRUE(image) << image.error().reason;
    EXPECT_EQ(image->architecture(), 75U);
    const auto contents = image->contents();
    ASSERT_TRUE(contents) << contents.error().reason;
    ASSERT_NE((*contents)->module, nullptr);
    ASSERT_EQ((*contents)->kernels.size(), 1U);
    EXPECT_EQ((*contents)->kernels[0].parameter_bytes, 8U);
}

TEST(LoadImage, RefusesPtxWithoutAnEnd) {
    const GuardedBytes guarded(to_bytes(small_ptx("edge", 75)));
    const auto image = load_image(guarded.data(), 80);
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().code, CUDA_ERROR_INVALID_PTX);
}

TEST(LoadImage, SaysWhereBadPtxIsBad) {
    const std::string text = small_ptx("k", 80) + ".visible .entry broken(\n";
    const auto image = load_image(text.c_str(), 80);
    ASSERT_TRUE(image) << image.error().reason;
    const auto contents = image->contents();
    ASSERT_FALSE(contents);
    EXPECT_EQ(contents.error().code, CUDA_ERROR_INVALID_PTX);
    EXPECT_NE(contents.error().reason.find("line"), std::string::npos) << contents.error().reason;
}

TEST(LoadImage, RefusesWhatIsNoImage) {
    EXPECT_EQ(load_image(nullptr, 80).error().code, CUDA_ERROR_INVALID_VALUE);
    const char words[] = "just some words";
    EXPECT_EQ(load_image(words, 80).error().code, CUDA_ERROR_INVALID_IMAGE);
    const unsigned char noise[] = {0x9a, 0x01, 0xff, 0x00, 0x80};
    EXPECT_EQ(load_image(noise, 80).error().code, CUDA_ERROR_INVALID_IMAGE);
    EXPECT_FALSE(load_image(reinterpret_cast<const void*>(64), 80));
}

TEST(LoadImage, ReadsEveryFatBinaryThatNvccMakes) {
    for (const char* name : {"kernels_default.fatbin", "kernels_plain.fatbin",
                             "kernels_size.fatbin", "kernels_several.fatbin"}) {
        const Bytes bytes = read_file(data_folder() + "/" + name);
        ASSERT_FALSE(bytes.empty()) << name;
        const GuardedBytes guarded(bytes);
        const auto image = load_image(guarded.data(), 80);
        ASSERT_TRUE(image) << name << ": " << image.error().reason;
        EXPECT_EQ(image->form(), Form::Ptx) << name;
        const auto contents = image->contents();
        ASSERT_TRUE(contents) << name << ": " << contents.error().reason;
        const KernelInfo* small = (*contents)->find_kernel("small");
        ASSERT_NE(small, nullptr) << name;
        EXPECT_EQ(small->parameters.size(), 4U);
        EXPECT_EQ(small->max_threads, 256U);
        const VariableInfo* managed = (*contents)->find_variable("shared_with_host");
        ASSERT_NE(managed, nullptr);
        EXPECT_TRUE(managed->managed);
    }
}

TEST(LoadImage, CubinAndPtxAgreeOnParameters) {
    const Bytes cubin = read_file(data_folder() + "/kernels_80.cubin");
    Bytes ptx = read_file(data_folder() + "/kernels.ptx");
    const auto from_cubin = load_image(cubin.data(), cubin.size(), 80);
    const auto from_ptx = load_image(ptx.data(), ptx.size(), 80);
    ASSERT_TRUE(from_cubin && from_ptx);
    ASSERT_TRUE(from_cubin->contents() && from_ptx->contents());
    for (const KernelInfo& kernel : (*from_cubin->contents())->kernels) {
        const KernelInfo* other = (*from_ptx->contents())->find_kernel(kernel.name);
        ASSERT_NE(other, nullptr) << kernel.name;
        EXPECT_EQ(kernel.parameter_bytes, other->parameter_bytes) << kernel.name;
        ASSERT_EQ(kernel.parameters.size(), other->parameters.size());
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            EXPECT_EQ(kernel.parameters[i].offset, other->parameters[i].offset);
            EXPECT_EQ(kernel.parameters[i].bytes, other->parameters[i].bytes);
        }
    }
}

}  // namespace
}  // namespace libswap::simgpu::image::test
