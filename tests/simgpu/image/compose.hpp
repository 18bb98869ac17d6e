// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/image/fatbin.hpp"

namespace libswap::simgpu::image::test {

using Bytes = std::vector<std::byte>;

/// What to put into one entry of a fat binary.
struct EntrySpec {
    std::uint16_t kind = 1;
    std::uint32_t architecture = 80;
    Bytes plain;
    Packing packing = Packing::Plain;
    /// Where not 0: what the header claims instead of the truth.
    std::uint64_t claimed_plain_bytes = 0;
    std::uint32_t claimed_stored_bytes = 0;
};

Bytes to_bytes(std::string_view text);
Bytes read_file(const std::string& path);

/// A whole fat binary of these entries.
Bytes compose(const std::vector<EntrySpec>& entries);

/// A kernel `name` that takes one pointer and does nothing, as PTX for `architecture`.
std::string small_ptx(std::string_view name, unsigned architecture);

/// Bytes whose last one is the last before a page that cannot be read.
class GuardedBytes {
  public:
    explicit GuardedBytes(const Bytes& bytes);
    ~GuardedBytes();
    GuardedBytes(const GuardedBytes&) = delete;
    GuardedBytes& operator=(const GuardedBytes&) = delete;
    const void* data() const { return start_; }

  private:
    void* mapping_;
    std::size_t mapped_bytes_;
    const void* start_;
};

/// Folder with what nvcc made of the data files.
std::string data_folder();

}  // namespace libswap::simgpu::image::test
