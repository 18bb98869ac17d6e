// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstddef>
#include <cstdint>

namespace libswap {

/// Memory that a copy or a fill touches on one side: rows of equal length, one behind the other in
/// slices. A plain range is one row. Distances are in bytes, and count where there are two rows or
/// slices.
struct Rows {
    std::uint64_t base = 0;  ///< first byte of the first row
    std::size_t row_bytes = 0;
    std::size_t rows = 1;  ///< in each slice
    std::size_t pitch = 0;
    std::size_t slices = 1;
    std::size_t slice_pitch = 0;

    static constexpr Rows range(std::uint64_t base, std::size_t bytes) noexcept {
        return {base, bytes, 1, 0, 1, 0};
    }

    constexpr std::size_t count() const noexcept { return rows * slices; }
    /// In all rows together; SIZE_MAX where that is more than there can be.
    constexpr std::size_t bytes() const noexcept {
        std::size_t all = 0;
        const bool too_much = __builtin_mul_overflow(rows, slices, &all) ||
                              __builtin_mul_overflow(all, row_bytes, &all);
        return too_much ? SIZE_MAX : all;
    }
    /// No two rows share a byte, as the driver wants it.
    constexpr bool are_apart() const noexcept {
        if (bytes() == 0) return true;
        return (rows == 1 || pitch >= row_bytes) && (slices == 1 || slice_pitch / rows >= pitch);
    }
    /// From the first byte to behind the last; 0 where nothing is touched.
    constexpr std::size_t span_bytes() const noexcept {
        if (bytes() == 0) return 0;
        return (slices - 1) * slice_pitch + (rows - 1) * pitch + row_bytes;
    }
    /// First byte of row number `i` of all.
    constexpr std::uint64_t row(std::size_t i) const noexcept {
        return base + i / rows * slice_pitch + i % rows * pitch;
    }

    /// Whether `bytes` at the address lie in one row, and then where they are among the bytes of
    /// all rows.
    constexpr bool find(std::uint64_t address, std::size_t bytes,
                        std::size_t* offset) const noexcept {
        std::uint64_t rest = address - base;
        if (rest >= span_bytes()) return false;
        const std::size_t slice = slices > 1 && slice_pitch ? rest / slice_pitch : 0;
        rest -= slice * slice_pitch;
        const std::size_t row = rows > 1 && pitch ? rest / pitch : 0;
        rest -= row * pitch;
        if (slice >= slices || row >= rows || rest + bytes > row_bytes) return false;
        *offset = (slice * rows + row) * row_bytes + rest;
        return true;
    }
    /// The inverse of find().
    constexpr std::uint64_t at(std::size_t offset) const noexcept {
        return row(offset / row_bytes) + offset % row_bytes;
    }
};

}  // namespace libswap
