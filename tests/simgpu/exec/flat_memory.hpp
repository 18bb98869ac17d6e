// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "simgpu/exec/run.hpp"

namespace simgpu::exec {

/// Device memory for tests: every buffer begins a page of its own, all else faults.
class FlatMemory final : public Memory {
  public:
    std::uint64_t allocate(std::size_t bytes) {
        const std::uint64_t va = next_;
        for (std::uint64_t at = 0; at < std::max<std::size_t>(bytes, 1); at += kPageBytes) {
            pages_[next_].assign(kPageBytes, std::byte{0xA5});
            next_ += kPageBytes;
        }
        next_ += kPageBytes;
        return va;
    }

    template <class T>
    std::uint64_t upload(const std::vector<T>& values) {
        const std::uint64_t va = allocate(values.size() * sizeof(T));
        write(va, values.data(), values.size() * sizeof(T));
        return va;
    }

    template <class T>
    std::vector<T> download(std::uint64_t va, std::size_t count) {
        std::vector<T> values(count);
        auto* to = reinterpret_cast<std::byte*>(values.data());
        for (std::size_t k = 0; k < count * sizeof(T); ++k) to[k] = byte(va + k);
        return values;
    }

    void write(std::uint64_t va, const void* from, std::size_t bytes) {
        for (std::size_t k = 0; k < bytes; ++k)
            byte(va + k) = static_cast<const std::byte*>(from)[k];
    }

    void protect(std::uint64_t va) { read_only_ = va / kPageBytes * kPageBytes; }

    std::byte* page(std::uint64_t va, bool write) override {
        const auto found = pages_.find(va / kPageBytes * kPageBytes);
        if (found == pages_.end() || (write && found->first == read_only_)) return nullptr;
        return found->second.data();
    }

  private:
    std::byte& byte(std::uint64_t va) {
        return pages_.at(va / kPageBytes * kPageBytes)[va % kPageBytes];
    }

    std::map<std::uint64_t, std::vector<std::byte>> pages_;
    std::uint64_t next_ = 0x7f0000000000;
    std::uint64_t read_only_ = 1;
};

/// Builds a kernel's parameter block, each value at its natural alignment.
class Params {
  public:
    template <class T>
    Params& add(T value) {
        bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T));
        const auto* from = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), from, from + sizeof(T));
        return *this;
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

template <class... T>
Params params(T... values) {
    Params all;
    (all.add(values), ...);
    return all;
}

/// Places a module's variables in `memory`.
inline ptx::SymbolAddresses place_globals(const ptx::Module& module, FlatMemory& memory) {
    ptx::SymbolAddresses addresses;
    for (const ptx::Global& global : module.globals)
        addresses[global.name] = memory.allocate(global.bytes);
    for (const ptx::Global& global : module.globals) {
        const auto bytes = ptx::initial_bytes(module, global, addresses);
        if (bytes) memory.write(addresses[global.name], bytes->data(), bytes->size());
    }
    return addresses;
}

}  // namespace simgpu::exec
