// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

#include <tl/expected.hpp>

#include "simgpu/image/byte_view.hpp"
#include "simgpu/image/image.hpp"

namespace libswap::simgpu::image {

inline constexpr std::uint32_t kElfMagic = 0x464C457F;
inline constexpr std::size_t kElfHeaderBytes = 64;

/// Size of a cubin as its own header tells it, from its first 64 bytes: the ends of both header
/// tables. Sections may reach further; cubin_extent() needs the section headers for that.
tl::expected<std::uint64_t, ImageError> cubin_table_end(ByteView header);

/// Size of a cubin with all its sections; `tables` holds at least cubin_table_end() bytes.
tl::expected<std::uint64_t, ImageError> cubin_extent(ByteView tables);

/// Architecture in the ELF header's flags: 80 for sm_80.
std::uint32_t cubin_architecture(ByteView cubin);

/// Kernels and variables of a cubin.
tl::expected<Contents, ImageError> read_cubin(ByteView cubin);

}  // namespace libswap::simgpu::image
