// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A fat binary:
//
//   u32 magic | u16 version | u16 header bytes (16) | u64 bytes that follow
//   entry, entry, ...
//
// and an entry, whose header has 64 bytes or more:
//
//    0 u16 kind (1 PTX, 2 ELF)      4 u32 header bytes     8 u64 stored bytes, padded to 8
//   16 u32 compressed bytes, or 0  28 u32 architecture    40 u64 flags    56 u64 plain bytes

#include "simgpu/image/fatbin.hpp"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <new>

namespace libswap::simgpu::image {
namespace {

constexpr std::uint16_t kKindPtx = 1;
constexpr std::uint16_t kKindElf = 2;
constexpr std::uint64_t kFlagLz4 = std::uint64_t{1} << 13;
constexpr std::uint64_t kFlagZstd = std::uint64_t{1} << 15;
constexpr std::uint32_t kZstdMagic = 0xFD2FB528;
constexpr std::size_t kEntryHeaderBytes = 64;

tl::unexpected<ImageError> invalid(std::string reason) {
    return tl::make_unexpected(ImageError{CUDA_ERROR_INVALID_IMAGE, std::move(reason)});
}

Packing packing_of(std::uint64_t flags, ByteView stored) {
    const auto magic = stored.read<std::uint32_t>(0);
    if ((flags & kFlagZstd) != 0 || ((flags & kFlagLz4) == 0 && magic == kZstdMagic)) {
        return Packing::Zstd;
    }
    return Packing::Lz4;
}

/// The entry at the start of `rest`, whose header is known to be whole.
tl::expected<FatbinEntry, ImageError> describe(ByteView payload, ByteView header) {
    FatbinEntry entry{};
    entry.form = *header.read<std::uint16_t>(0) == kKindPtx ? Form::Ptx : Form::Cubin;
    entry.architecture = *header.read<std::uint32_t>(28);
    const std::uint32_t compressed_bytes = *header.read<std::uint32_t>(16);
    entry.plain_bytes = *header.read<std::uint64_t>(56);
    if (compressed_bytes == 0) {
        entry.packing = Packing::Plain;
        entry.stored = payload;
        entry.plain_bytes = payload.size();
        return entry;
    }
    const auto stored = payload.part(0, compressed_bytes);
    if (!stored) {
        return invalid(fmt::format("fat binary entry claims {} compressed bytes in {}",
                                   compressed_bytes, payload.size()));
    }
    if (entry.plain_bytes == 0 || entry.plain_bytes > kLargestImageBytes) {
        return invalid(
            fmt::format("fat binary entry claims to unpack to {} bytes", entry.plain_bytes));
    }
    entry.stored = *stored;
    entry.packing = packing_of(*header.read<std::uint64_t>(40), *stored);
    return entry;
}

tl::expected<void, ImageError> unpack_into(Packing packing, ByteView stored,
                                           std::vector<std::byte>& plain) {
    if (packing == Packing::Zstd) {
        const std::size_t got =
            ZSTD_decompress(plain.data(), plain.size(), stored.data(), stored.size());
        if (ZSTD_isError(got) != 0 || got != plain.size()) {
            return invalid("fat binary entry does not unpack (zstd)");
        }
        return {};
    }
    const int got = LZ4_decompress_safe(
        reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(plain.data()),
        static_cast<int>(stored.size()), static_cast<int>(plain.size()));
    if (got < 0 || static_cast<std::size_t>(got) != plain.size()) {
        return invalid("fat binary entry does not unpack (LZ4)");
    }
    return {};
}

}  // namespace

tl::expected<std::uint64_t, ImageError> fatbin_bytes(ByteView header) {
    const auto magic = header.read<std::uint32_t>(0);
    const auto header_bytes = header.read<std::uint16_t>(6);
    const auto body_bytes = header.read<std::uint64_t>(8);
    if (!body_bytes || magic != kFatbinMagic) {
        return invalid("not a fat binary");
    }
    if (*header_bytes < kFatbinHeaderBytes || *body_bytes > kLargestImageBytes) {
        return invalid(
            fmt::format("fat binary header claims {} + {} bytes", *header_bytes, *body_bytes));
    }
    return *header_bytes + *body_bytes;
}

tl::expected<std::vector<FatbinEntry>, ImageError> fatbin_entries(ByteView fatbin) {
    const auto total = fatbin_bytes(fatbin);
    if (!total) {
        return tl::make_unexpected(total.error());
    }
    const auto whole = fatbin.part(0, *total);
    if (!whole) {
        return invalid(
            fmt::format("fat binary is truncated: {} of {} bytes", fatbin.size(), *total));
    }
    std::vector<FatbinEntry> entries;
    std::uint64_t at = *fatbin.read<std::uint16_t>(6);
    while (at < *total) {
        const auto header = whole->part(at, kEntryHeaderBytes);
        if (!header) {
            return invalid("fat binary ends inside an entry's header");
        }
        const std::uint32_t header_bytes = *header->read<std::uint32_t>(4);
        const std::uint64_t stored_bytes = *header->read<std::uint64_t>(8);
        const auto payload = whole->part(at + header_bytes, stored_bytes);
        if (header_bytes < kEntryHeaderBytes || !payload) {
            return invalid(fmt::format("fat binary entry claims {} + {} bytes, {} are left",
                                       header_bytes, stored_bytes, *total - at));
        }
        const std::uint16_t kind = *header->read<std::uint16_t>(0);
        if (kind == kKindPtx || kind == kKindElf) {
            auto entry = describe(*payload, *header);
            if (!entry) {
                return tl::make_unexpected(std::move(entry.error()));
            }
            entries.push_back(*entry);
        }
        at += header_bytes + stored_bytes;
    }
    return entries;
}

tl::expected<std::vector<std::byte>, ImageError> unpack(Packing packing, ByteView stored,
                                                        std::uint64_t plain_bytes) {
    try {
        if (packing == Packing::Plain) {
            return std::vector<std::byte>(stored.span().begin(), stored.span().end());
        }
        // Neither format packs tighter than about 1:255 (LZ4) or 1:65536 (zstd runs): a header that
        // claims more would only make us allocate for nothing.
        if (plain_bytes / 65536 > stored.size()) {
            return invalid(fmt::format("fat binary entry claims {} bytes out of {}", plain_bytes,
                                       stored.size()));
        }
        std::vector<std::byte> plain(plain_bytes);
        if (auto done = unpack_into(packing, stored, plain); !done) {
            return tl::make_unexpected(std::move(done.error()));
        }
        return plain;
    } catch (const std::bad_alloc&) {
        return tl::make_unexpected(
            ImageError{CUDA_ERROR_OUT_OF_MEMORY, "no host memory to unpack a fat binary"});
    }
}

}  // namespace libswap::simgpu::image
