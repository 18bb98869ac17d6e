// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "simgpu/image/byte_view.hpp"
#include "simgpu/image/image.hpp"

namespace libswap::simgpu::image {

inline constexpr std::uint32_t kWrapperMagic = 0x466243B1;
inline constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
inline constexpr std::size_t kFatbinHeaderBytes = 16;
/// No image of any size we have seen comes near; more is a mangled header.
inline constexpr std::uint64_t kLargestImageBytes = std::uint64_t{2} << 30;

enum class Packing { Plain, Zstd, Lz4 };

/// One entry of a fat binary, as its header says; `stored` points into the fat binary.
struct FatbinEntry {
    Form form;
    std::uint32_t architecture;
    Packing packing;
    ByteView stored;
    std::uint64_t plain_bytes;
};

/// Size of the whole fat binary (header and body), from its first 16 bytes.
tl::expected<std::uint64_t, ImageError> fatbin_bytes(ByteView header);

/// PTX and ELF entries of a whole fat binary; other kinds are passed over.
tl::expected<std::vector<FatbinEntry>, ImageError> fatbin_entries(ByteView fatbin);

/// The entry's plain bytes. Never more than what its header says.
tl::expected<std::vector<std::byte>, ImageError> unpack(Packing packing, ByteView stored,
                                                        std::uint64_t plain_bytes);

}  // namespace libswap::simgpu::image
