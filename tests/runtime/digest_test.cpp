// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The digest kernel's PTX, run as it is, against the same function on a CPU.

#include "runtime/digest.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "simgpu/exec/run.hpp"
#include "simgpu/host_kernels/digest.hpp"

namespace libswap {
namespace {

/// All of this process's memory.
class HostPages : public simgpu::exec::Memory {
  public:
    std::byte* page(std::uint64_t va, bool) override {
        return reinterpret_cast<std::byte*>(va & ~((std::uint64_t{2} << 20) - 1));
    }
};

struct Params {
    std::uint64_t base, words, first, out, low, span, result;
};

class DigestKernel : public ::testing::Test {
  protected:
    void SetUp() override {
        auto parsed = simgpu::ptx::parse(kDigestPtx);
        ASSERT_TRUE(parsed.has_value());
        module_ = std::make_unique<simgpu::ptx::Module>(std::move(*parsed));
        ASSERT_EQ(module_->kernels.size(), 1u);
        EXPECT_EQ(module_->kernels[0].name, Digester::kKernelName);
        std::mt19937_64 random(5);
        data_.resize(5000);
        for (std::uint64_t& word : data_) word = random();
    }
    static std::uint64_t address(const void* memory) {
        return reinterpret_cast<std::uint64_t>(memory);
    }
    void run(std::size_t begin, std::size_t words, bool last) {
        const Params params{address(&data_[begin]),      words,       begin,
                            address(accumulator_),       window_low_, window_bytes_,
                            last ? address(&result_) : 0};
        HostPages memory;
        const auto result = simgpu::exec::run(
            *module_, module_->kernels[0], {{3, 1, 1}, {256, 1, 1}, 0},
            std::as_bytes(std::span(&params, 1)), memory, simgpu::ptx::SymbolAddresses{});
        ASSERT_TRUE(result.ok()) << result.detail;
    }
    Digest natively() {
        std::uint64_t out[3] = {};
        simgpu::digest_words(data_.data(), data_.size(), 0, window_low_, window_bytes_, out);
        return {out[0], out[1], out[2]};
    }

    std::unique_ptr<simgpu::ptx::Module> module_;
    std::vector<std::uint64_t> data_;
    std::uint64_t window_low_ = 0x7000'0000'0000;
    std::uint64_t window_bytes_ = 0x1000'0000;
    std::uint64_t accumulator_[4] = {};
    Digest result_;
};

TEST_F(DigestKernel, AgreesWithTheNativeOneAndClearsItsSums) {
    data_[17] = window_low_ + 8;
    data_[4999] = window_low_ + window_bytes_;
    run(0, data_.size(), true);
    EXPECT_EQ(result_, natively());
    EXPECT_EQ(result_.pointers, 1u);
    for (const std::uint64_t word : accumulator_) EXPECT_EQ(word, 0u);
}

TEST_F(DigestKernel, IsTheSameInPieces) {
    run(0, 2048, false);
    run(2048, data_.size() - 2048, true);
    EXPECT_EQ(result_, natively());
}

TEST_F(DigestKernel, SeesAnyChangeOfContentOrOrder) {
    run(0, data_.size(), true);
    const Digest before = result_;
    data_[123] ^= 1;
    run(0, data_.size(), true);
    EXPECT_FALSE(result_ == before);
    data_[123] ^= 1;
    std::swap(data_[7], data_[8]);
    run(0, data_.size(), true);
    EXPECT_FALSE(result_ == before);
}

TEST(Digest, OneThatNeverCameIsLikeNoOther) {
    const Digest never{0, 0, UINT64_MAX};
    EXPECT_FALSE(never == never);
}

}  // namespace
}  // namespace libswap
