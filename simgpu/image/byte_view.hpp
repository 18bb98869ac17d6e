// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace libswap::simgpu::image {

/// Bytes that belong to somebody else; every read is checked against their end.
class ByteView {
  public:
    ByteView() = default;
    explicit ByteView(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::size_t size() const { return bytes_.size(); }
    const std::byte* data() const { return bytes_.data(); }
    std::span<const std::byte> span() const { return bytes_; }

    /// The value at `offset` (any alignment), or nothing if it does not fit.
    template <typename T>
    std::optional<T> read(std::uint64_t offset) const {
        if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) {
            return std::nullopt;
        }
        T value;
        std::memcpy(&value, bytes_.data() + offset, sizeof(T));
        return value;
    }

    /// `bytes` bytes from `offset`, or nothing if they do not fit.
    std::optional<ByteView> part(std::uint64_t offset, std::uint64_t bytes) const {
        if (offset > bytes_.size() || bytes_.size() - offset < bytes) {
            return std::nullopt;
        }
        return ByteView(bytes_.subspan(offset, bytes));
    }

    /// The NUL-terminated string at `offset`; empty if it starts or ends outside.
    std::string_view text(std::uint64_t offset) const {
        if (offset >= bytes_.size()) {
            return {};
        }
        const char* start = reinterpret_cast<const char*>(bytes_.data() + offset);
        const void* end = std::memchr(start, 0, bytes_.size() - offset);
        if (end == nullptr) {
            return {};
        }
        return {start, static_cast<std::size_t>(static_cast<const char*>(end) - start)};
    }

  private:
    std::span<const std::byte> bytes_;
};

/// Copies from memory that may turn out not to be there: nothing, instead of a fault, if any byte
/// of the range cannot be read (a header promised more than the program's buffer holds).
/// @thread any
std::optional<std::vector<std::byte>> copy_readable(const void* source, std::size_t bytes);

}  // namespace libswap::simgpu::image
