// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "tests/simgpu/image/compose.hpp"

#include <lz4.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace libswap::simgpu::image::test {
namespace {

template <typename T>
void put(Bytes& bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

Bytes pack(const EntrySpec& entry) {
    const char* source = reinterpret_cast<const char*>(entry.plain.data());
    Bytes packed;
    if (entry.packing == Packing::Lz4) {
        packed.resize(
            static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(entry.plain.size()))));
        const int bytes = LZ4_compress_default(source, reinterpret_cast<char*>(packed.data()),
                                               static_cast<int>(entry.plain.size()),
                                               static_cast<int>(packed.size()));
        packed.resize(static_cast<std::size_t>(bytes));
    } else if (entry.packing == Packing::Zstd) {
        packed.resize(ZSTD_compressBound(entry.plain.size()));
        packed.resize(ZSTD_compress(packed.data(), packed.size(), source, entry.plain.size(), 3));
    } else {
        packed = entry.plain;
    }
    return packed;
}

Bytes compose_entry(const EntrySpec& entry) {
    constexpr std::uint32_t kHeaderBytes = 64;
    Bytes payload = pack(entry);
    const std::size_t packed_bytes = payload.size();
    payload.resize((payload.size() + 7) / 8 * 8);
    Bytes bytes(kHeaderBytes);
    put<std::uint16_t>(bytes, 0, entry.kind);
    put<std::uint16_t>(bytes, 2, 0x0101);
    put<std::uint32_t>(bytes, 4, kHeaderBytes);
    put<std::uint64_t>(bytes, 8, payload.size());
    put<std::uint32_t>(bytes, 28, entry.architecture);
    std::uint64_t flags = 0x11;
    if (entry.packing != Packing::Plain) {
        put<std::uint32_t>(bytes, 16,
                           entry.claimed_stored_bytes != 0
                               ? entry.claimed_stored_bytes
                               : static_cast<std::uint32_t>(packed_bytes));
        put<std::uint64_t>(
            bytes, 56,
            entry.claimed_plain_bytes != 0 ? entry.claimed_plain_bytes : entry.plain.size());
        flags |= entry.packing == Packing::Zstd ? 1U << 15 : 1U << 13;
    }
    put<std::uint64_t>(bytes, 40, flags);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
}

}  // namespace

Bytes to_bytes(std::string_view text) {
    const auto* start = reinterpret_cast<const std::byte*>(text.data());
    return {start, start + text.size()};
}

Bytes read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    return to_bytes(text);
}

Bytes compose(const std::vector<EntrySpec>& entries) {
    Bytes bytes(kFatbinHeaderBytes);
    for (const EntrySpec& entry : entries) {
        const Bytes part = compose_entry(entry);
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    put<std::uint32_t>(bytes, 0, kFatbinMagic);
    put<std::uint16_t>(bytes, 4, 1);
    put<std::uint16_t>(bytes, 6, kFatbinHeaderBytes);
    put<std::uint64_t>(bytes, 8, bytes.size() - kFatbinHeaderBytes);
    return bytes;
}

std::string small_ptx(std::string_view name, unsigned architecture) {
    return ".version 8.0\n.target sm_" + std::to_string(architecture) +
           "\n.address_size 64\n.visible .entry " + std::string(name) + "(.param .u64 " +
           std::string(name) + "_p)\n{\nret;\n}\n";
}

GuardedBytes::GuardedBytes(const Bytes& bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t readable = (bytes.size() + page - 1) / page * page;
    mapped_bytes_ = readable + page;
    mapping_ =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) {
        std::abort();
    }
    auto* base = static_cast<std::byte*>(mapping_);
    std::memcpy(base + readable - bytes.size(), bytes.data(), bytes.size());
    mprotect(base + readable, page, PROT_NONE);
    start_ = base + readable - bytes.size();
}

GuardedBytes::~GuardedBytes() { munmap(mapping_, mapped_bytes_); }

std::string data_folder() {
    const char* folder = std::getenv("LIBSWAP_TEST_DATA");
    return folder == nullptr ? "." : folder;
}

}  // namespace libswap::simgpu::image::test
