// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/program_ranges.hpp"

#include <iterator>
#include <map>
#include <set>
#include <shared_mutex>

#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {
namespace {

struct Allocation {
    std::uint64_t bytes = 0;
    bool live = false;
};

/// What allocators round addresses to, at least: others lie inside a tensor.
constexpr std::uint64_t kOperandAlignment = 256;

struct Noted {
    std::shared_mutex mutex;
    std::map<std::uint64_t, Allocation> by_base;
    std::set<std::uint64_t> operands;

    /// Under the lock: of what lies in [base, base + bytes) nothing is known any more.
    void forget(std::uint64_t base, std::uint64_t bytes) {
        auto it = by_base.upper_bound(base);
        if (it != by_base.begin() && std::prev(it)->first + std::prev(it)->second.bytes > base)
            --it;
        while (it != by_base.end() && it->first < base + bytes) it = by_base.erase(it);
        operands.erase(operands.lower_bound(base), operands.lower_bound(base + bytes));
    }
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
        noted().forget(base, bytes);
        noted().by_base[base] = {bytes, true};
    } else if (const auto it = noted().by_base.find(base); it != noted().by_base.end()) {
        it->second.live = false;
    }
}

void forget_program_ranges(std::uint64_t base, std::uint64_t bytes) {
    const std::lock_guard lock(noted().mutex);
    noted().forget(base, bytes);
}

std::optional<ProgramRange> program_range(std::uint64_t va, int device) {
    if (!in_window(va)) return std::nullopt;
    const PointerInfo info = machine().memory().find(va, device);
    const bool mapped = info.kind == PointerKind::Device || info.kind == PointerKind::Vmm;
    if (!mapped || va - info.base >= info.bytes) return std::nullopt;
    const std::shared_lock lock(noted().mutex);
    auto after = noted().by_base.upper_bound(va);
    if (after != noted().by_base.begin()) {
        const auto& [base, allocation] = *--after;
        if (va - base < allocation.bytes && !allocation.live) return std::nullopt;
        if (va - base < allocation.bytes) return ProgramRange{base, allocation.bytes};
    }
    return ProgramRange{info.base, info.bytes};
}

void note_operand(std::uint64_t va) {
    if (va % kOperandAlignment != 0) return;
    {
        const std::shared_lock lock(noted().mutex);
        if (noted().operands.contains(va)) return;
    }
    const std::lock_guard lock(noted().mutex);
    noted().operands.insert(va);
}

std::uint64_t end_of_operand(std::uint64_t va, std::uint64_t end) {
    const std::shared_lock lock(noted().mutex);
    const auto next = noted().operands.upper_bound(va);
    return next != noted().operands.end() && *next < end ? *next : end;
}

}  // namespace simgpu::driver
