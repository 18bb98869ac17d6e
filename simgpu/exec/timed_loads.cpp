// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/exec/timed_loads.hpp"

#include <array>
#include <atomic>
#include <utility>

#include "simgpu/exec/warp.hpp"

namespace simgpu::exec {

namespace {

std::atomic<bool> g_timed{false};

// One handler per type that loads have a handler for, so that each knows the one it stands before.
constexpr std::array kTypes{Type::S8, Type::S16, Type::U8, Type::U16, Type::U32, Type::U64};

template <std::size_t kIndex>
Handler untimed_load() {
    static const Handler handler = [] {
        OpKey key;
        key.op = Op::Ld;
        key.type = kTypes[kIndex];
        return find_untimed_handler(key);
    }();
    return handler;
}

Handler untimed_special() {
    static const Handler handler = [] {
        OpKey key;
        key.op = Op::Special;
        return find_untimed_handler(key);
    }();
    return handler;
}

/// The addresses of the lanes that load from device or host memory.
std::size_t outer_addresses(const Warp& w, const Inst& i, std::uint64_t* out) {
    const auto space = static_cast<Space>(i.mode);
    if (space != Space::Generic && space != Space::Global) return 0;
    std::size_t count = 0;
    for (int l = 0; l < kLanes; ++l) {
        if (((w.exec >> l) & 1U) == 0) continue;
        std::uint64_t address = 0;
        if (i.addr32) {
            address = reinterpret_cast<const std::uint32_t*>(w.regs + i.addr)[l] +
                      static_cast<std::uint32_t>(i.imm);
            address &= 0xffffffffU;
        } else {
            address = reinterpret_cast<const std::uint64_t*>(w.regs + i.addr)[l] +
                      static_cast<std::uint64_t>(i.imm);
        }
        if ((address & kWindowMask) == 0) out[count++] = address;
    }
    return count;
}

/// The warp waits for what it loads: its clock moves on by the load's latency.
void wait_for_load(Warp& w, const Inst& i) {
    const auto route = static_cast<LoadRoute>(i.mode2);
    auto* memory = dynamic_cast<TimedMemory*>(w.launch->memory);
    if (memory == nullptr || route == LoadRoute::Constant) return;
    std::uint64_t addresses[kLanes];
    const std::size_t count = outer_addresses(w, i, addresses);
    if (count == 0) return;
    const auto sm = static_cast<std::uint32_t>(w.cta->linear_id % w.launch->options->sm_count);
    w.launch->warp_instructions += memory->load_cycles({addresses, count}, route, sm);
}

template <std::size_t kIndex>
void timed_load(Warp& w, const Inst& i) {
    wait_for_load(w, i);
    untimed_load<kIndex>()(w, i);
}

template <class T>
void broadcast(Warp& w, std::uint32_t slot, std::uint64_t value) {
    auto* lanes = reinterpret_cast<T*>(w.regs + slot);
    for (int l = 0; l < kLanes; ++l) {
        if (((w.exec >> l) & 1U) != 0) lanes[l] = static_cast<T>(value);
    }
}

void timed_special(Warp& w, const Inst& i) {
    const auto which = static_cast<SpecialRegister>(i.mode);
    auto* memory = dynamic_cast<TimedMemory*>(w.launch->memory);
    const bool timer = which == SpecialRegister::GlobalTimer ||
                       which == SpecialRegister::GlobalTimerLo ||
                       which == SpecialRegister::GlobalTimerHi;
    if (!timer || memory == nullptr || i.op[0] == kNoSlot) return untimed_special()(w, i);
    constexpr std::uint64_t kLookCycles = 20;  // as the other clocks
    w.launch->warp_instructions += kLookCycles;
    std::uint64_t ns = memory->time_ns(w.launch->warp_instructions);
    if (which == SpecialRegister::GlobalTimerHi) ns >>= 32;
    if (i.mode2 == 8) return broadcast<std::uint64_t>(w, i.op[0], ns);
    broadcast<std::uint32_t>(w, i.op[0], ns);
}

template <std::size_t... kIndices>
Handler timed_load_of(Type type, std::index_sequence<kIndices...>) {
    Handler found = nullptr;
    (void)((kTypes[kIndices] == type ? (found = &timed_load<kIndices>, true) : false) || ...);
    return found;
}

/// The type of `kTypes` whose handler does the loads of `type`.
Type handled_as(Type type) {
    if (type == Type::S8 || type == Type::S16) return type;
    switch (type_bytes(type)) {
        case 1:
            return Type::U8;
        case 2:
            return Type::U16;
        case 4:
            return Type::U32;
        case 8:
            return Type::U64;
        default:
            return Type::None;
    }
}

}  // namespace

void set_timed_loads(bool on) noexcept { g_timed.store(on, std::memory_order_relaxed); }

Handler find_timed_handler(const OpKey& key) {
    if (!g_timed.load(std::memory_order_relaxed)) return nullptr;
    if (key.op == Op::Special) return &timed_special;
    if (key.op != Op::Ld) return nullptr;
    return timed_load_of(handled_as(key.type), std::make_index_sequence<kTypes.size()>{});
}

}  // namespace simgpu::exec
