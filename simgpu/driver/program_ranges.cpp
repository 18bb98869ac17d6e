// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/program_ranges.hpp"

#include <map>
#include <shared_mutex>

#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {
namespace {

struct Noted {
    std::shared_mutex mutex;
    std::map<std::uint64_t, std::uint64_t> bytes_by_base;
};

Noted& noted() {
    static auto* instance = new Noted;  // leaked: programs free memory while they exit
    return *instance;
}

bool in_window(std::uint64_t va) {
    const Memory& memory = machine().memory();
    return va - memory.window_base() < memory.window_bytes();
}

}  // namespace

void note_program_range(std::uint64_t base, std::uint64_t bytes) {
    const std::lock_guard lock(noted().mutex);
    if (bytes != 0) {
        noted().bytes_by_base[base] = bytes;
    } else {
        noted().bytes_by_base.erase(base);
    }
}

std::optional<ProgramRange> program_range(std::uint64_t va, int device) {
    if (!in_window(va)) return std::nullopt;
    const PointerInfo info = machine().memory().find(va, device);
    const bool mapped = info.kind == PointerKind::Device || info.kind == PointerKind::Vmm;
    if (!mapped || va - info.base >= info.bytes) return std::nullopt;
    const std::shared_lock lock(noted().mutex);
    auto after = noted().bytes_by_base.upper_bound(va);
    if (after != noted().bytes_by_base.begin()) {
        const auto& [base, bytes] = *--after;
        if (va - base < bytes) return ProgramRange{base, bytes};
    }
    return ProgramRange{info.base, info.bytes};
}

}  // namespace simgpu::driver
