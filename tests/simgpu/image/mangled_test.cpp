// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Images with random damage, at the very end of readable memory: each is read or refused with a
// reason, and no byte past the end is touched. ASan and UBSan watch in the sanitized build.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "simgpu/image/image.hpp"
#include "tests/simgpu/image/compose.hpp"

namespace libswap::simgpu::image::test {
namespace {

constexpr int kRounds = 400;

void check(const tl::expected<Image, ImageError>& image) {
    if (!image) {
        EXPECT_FALSE(image.error().reason.empty());
        EXPECT_NE(image.error().code, CUDA_SUCCESS);
        return;
    }
    const auto contents = image->contents();
    if (!contents) {
        EXPECT_FALSE(contents.error().reason.empty());
        EXPECT_NE(contents.error().code, CUDA_SUCCESS);
    }
}

void damage(Bytes& bytes, std::mt19937& random) {
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < changes && !bytes.empty(); ++i) {
        // Half of the damage goes to the headers in front, where it does most.
        const std::size_t reach =
            random() % 2 == 0 ? std::min<std::size_t>(bytes.size(), 256) : bytes.size();
        const std::size_t at = random() % reach;
        switch (random() % 4) {
            case 0:
                bytes[at] = static_cast<std::byte>(random());
                break;
            case 1:
                bytes[at] = std::byte{0xFF};
                break;
            case 2:
                bytes[at] = std::byte{0};
                break;
            default:
                bytes[at] ^= static_cast<std::byte>(1U << random() % 8);
                break;
        }
    }
    if (random() % 4 == 0) {
        bytes.resize(random() % (bytes.size() + 1));
    }
}

void try_damaged(const Bytes& good, unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < kRounds; ++round) {
        Bytes bad = good;
        damage(bad, random);
        if (bad.empty()) {
            continue;
        }
        SCOPED_TRACE(round);
        const GuardedBytes guarded(bad);
        check(load_image(guarded.data(), bad.size(), 80));
        check(load_image(guarded.data(), 80));
    }
}

TEST(Mangled, FatBinaryOfNvcc) {
    try_damaged(read_file(data_folder() + "/kernels_several.fatbin"), 1);
}

TEST(Mangled, FatBinaryWithoutPacking) {
    try_damaged(read_file(data_folder() + "/kernels_plain.fatbin"), 2);
}

TEST(Mangled, Lz4Entry) {
    try_damaged(compose({{.kind = 2,
                          .architecture = 80,
                          .plain = read_file(data_folder() + "/kernels_80.cubin"),
                          .packing = Packing::Lz4}}),
                3);
}

TEST(Mangled, Cubin) { try_damaged(read_file(data_folder() + "/kernels_80.cubin"), 4); }

TEST(Mangled, OldCubin) { try_damaged(read_file(data_folder() + "/kernels_75.cubin"), 5); }

TEST(Mangled, PtxText) {
    Bytes text = read_file(data_folder() + "/kernels.ptx");
    text.push_back(std::byte{0});
    try_damaged(text, 6);
}

TEST(Mangled, EveryTruncationOfACubin) {
    const Bytes whole = read_file(data_folder() + "/kernels_80.cubin");
    for (std::size_t bytes = 1; bytes < whole.size(); bytes += 13) {
        const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
        const GuardedBytes guarded(part);
        check(load_image(guarded.data(), part.size(), 80));
        check(load_image(guarded.data(), 80));
    }
}

TEST(Mangled, EveryTruncationOfAFatBinary) {
    const Bytes whole = read_file(data_folder() + "/kernels_default.fatbin");
    for (std::size_t bytes = 1; bytes < whole.size(); bytes += 7) {
        const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
        const GuardedBytes guarded(part);
        EXPECT_FALSE(load_image(guarded.data(), part.size(), 80));
        EXPECT_FALSE(load_image(guarded.data(), 80));
    }
}

}  // namespace
}  // namespace libswap::simgpu::image::test
