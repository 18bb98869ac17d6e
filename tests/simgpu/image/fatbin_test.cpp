// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/image/fatbin.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/simgpu/image/compose.hpp"

namespace libswap::simgpu::image::test {
namespace {

Bytes long_text() {
    std::string text;
    for (int line = 0; line < 500; ++line) {
        text += "line " + std::to_string(line) + " of some text that packs well\n";
    }
    return to_bytes(text);
}

TEST(Fatbin, UnpacksEveryPacking) {
    for (const Packing packing : {Packing::Plain, Packing::Lz4, Packing::Zstd}) {
        const Bytes plain = long_text();
        const Bytes fatbin = compose({{.plain = plain, .packing = packing}});
        const auto entries = fatbin_entries(ByteView(fatbin));
        ASSERT_TRUE(entries) << entries.error().reason;
        ASSERT_EQ(entries->size(), 1U);
        const FatbinEntry& entry = (*entries)[0];
        EXPECT_EQ(entry.packing, packing);
        const auto unpacked = unpack(entry.packing, entry.stored, entry.plain_bytes);
        ASSERT_TRUE(unpacked) << unpacked.error().reason;
        // A plain entry keeps its padding: nothing says how much of it there is.
        ASSERT_GE(unpacked->size(), plain.size());
        EXPECT_EQ(std::memcmp(unpacked->data(), plain.data(), plain.size()), 0);
    }
}

TEST(Fatbin, ListsKindsItKnowsAndPassesOverOthers) {
    const Bytes fatbin = compose({{.kind = 2, .architecture = 75, .plain = to_bytes("12345678")},
                                  {.kind = 8, .plain = to_bytes("another kind")},
                                  {.kind = 1, .architecture = 90, .plain = to_bytes("text")}});
    const auto entries = fatbin_entries(ByteView(fatbin));
    ASSERT_TRUE(entries) << entries.error().reason;
    ASSERT_EQ(entries->size(), 2U);
    EXPECT_EQ((*entries)[0].form, Form::Cubin);
    EXPECT_EQ((*entries)[0].architecture, 75U);
    EXPECT_EQ((*entries)[1].form, Form::Ptx);
    EXPECT_EQ((*entries)[1].architecture, 90U);
}

TEST(Fatbin, RefusesEveryTruncation) {
    const Bytes whole = compose({{.plain = long_text(), .packing = Packing::Lz4},
                                 {.plain = long_text(), .packing = Packing::Zstd}});
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
        const auto entries = fatbin_entries(ByteView(part));
        ASSERT_FALSE(entries) << bytes;
        EXPECT_EQ(entries.error().code, CUDA_ERROR_INVALID_IMAGE);
        EXPECT_FALSE(entries.error().reason.empty());
    }
}

TEST(Fatbin, RefusesEntryThatClaimsMoreThanItsFatBinary) {
    Bytes fatbin = compose({{.plain = long_text()}});
    const std::uint64_t huge = ~std::uint64_t{0} - 8;
    std::memcpy(fatbin.data() + kFatbinHeaderBytes + 8, &huge, sizeof huge);
    EXPECT_FALSE(fatbin_entries(ByteView(fatbin)));
}

TEST(Fatbin, RefusesCompressedSizeBeyondTheEntry) {
    const Bytes fatbin =
        compose({{.plain = long_text(), .packing = Packing::Lz4, .claimed_stored_bytes = 1 << 20}});
    EXPECT_FALSE(fatbin_entries(ByteView(fatbin)));
}

TEST(Fatbin, RefusesAbsurdPlainSizeBeforeAllocating) {
    for (const std::uint64_t claimed : {std::uint64_t{1} << 31, std::uint64_t{1} << 62}) {
        const Bytes fatbin = compose(
            {{.plain = long_text(), .packing = Packing::Zstd, .claimed_plain_bytes = claimed}});
        const auto entries = fatbin_entries(ByteView(fatbin));
        if (entries) {
            const FatbinEntry& entry = (*entries)[0];
            EXPECT_FALSE(unpack(entry.packing, entry.stored, entry.plain_bytes));
        }
    }
}

TEST(Fatbin, RefusesPackedBytesThatDoNotUnpack) {
    for (const Packing packing : {Packing::Lz4, Packing::Zstd}) {
        Bytes fatbin = compose({{.plain = long_text(), .packing = packing}});
        for (std::size_t at = kFatbinHeaderBytes + 64; at < fatbin.size(); ++at) {
            fatbin[at] = std::byte{0xFF};
        }
        const auto entries = fatbin_entries(ByteView(fatbin));
        ASSERT_TRUE(entries);
        const FatbinEntry& entry = (*entries)[0];
        const auto unpacked = unpack(entry.packing, entry.stored, entry.plain_bytes);
        ASSERT_FALSE(unpacked);
        EXPECT_EQ(unpacked.error().code, CUDA_ERROR_INVALID_IMAGE);
    }
}

TEST(Fatbin, RefusesPlainSizeThatIsNotTheTrueOne) {
    for (const Packing packing : {Packing::Lz4, Packing::Zstd}) {
        for (const int off : {-1, 1}) {
            const Bytes plain = long_text();
            const Bytes fatbin =
                compose({{.plain = plain,
                          .packing = packing,
                          .claimed_plain_bytes = plain.size() + static_cast<std::uint64_t>(off)}});
            const auto entries = fatbin_entries(ByteView(fatbin));
            ASSERT_TRUE(entries);
            const FatbinEntry& entry = (*entries)[0];
            EXPECT_FALSE(unpack(entry.packing, entry.stored, entry.plain_bytes));
        }
    }
}

}  // namespace
}  // namespace libswap::simgpu::image::test
