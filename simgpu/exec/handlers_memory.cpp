// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/addressing.hpp"

namespace simgpu::exec::SIMGPU_ISA {

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// What turns an address of the lanes into one of the host. No pointer: it may lie anywhere.
SIMGPU_INLINE U64 shift(const Addresses& a) {
    return reinterpret_cast<U64>(a.base) - a.base_address;
}

/// All lanes read from one page: side by side, from one place, or anywhere in it.
template <class T>
SIMGPU_INLINE void load_from_base(Warp& w, const Inst& i, const Addresses& a) {
    const U64 base = shift(a);
    for (U32 k = 0; k < i.count; ++k) {
        if (i.op[k] == kNoSlot) continue;
        auto* d = result<T>(w, i.op[k]);
        if (a.contiguous && i.count == 1) {
            const T* from = reinterpret_cast<const T*>(base + a.at[0]);
            for (int l = 0; l < kLanes; ++l) d[l] = stored<T>(from[l]);
        } else if (a.uniform) {
            const auto value =
                stored<T>(*reinterpret_cast<const T*>(base + a.at[0] + k * sizeof(T)));
            for (int l = 0; l < kLanes; ++l) d[l] = value;
        } else {
            const U64 from = base + k * sizeof(T);
            for (int l = 0; l < kLanes; ++l)
                d[l] = stored<T>(*reinterpret_cast<const T*>(from + a.at[l]));
        }
        finish<T>(w, i.op[k]);
    }
}

/// The same local address in all lanes: the lanes' words lie side by side.
template <class T>
SIMGPU_INLINE void load_uniform_local(Warp& w, const Inst& i, U64 offset) {
    const Place first{
        reinterpret_cast<std::byte*>(w.local.data() + (offset / 4) * kLanes) + offset % 4, true};
    for (U32 k = 0; k < i.count; ++k) {
        if (i.op[k] == kNoSlot) continue;
        auto* d = result<T>(w, i.op[k]);
        for (int l = 0; l < kLanes; ++l)
            d[l] = stored<T>(read_element<T>({first.bytes + l * 4, true}, k));
        finish<T>(w, i.op[k]);
    }
}

template <class T>
void load(Warp& w, const Inst& i) {
    const U64 bytes = i.count * sizeof(T);
    const Space space = static_cast<Space>(i.mode);
    Addresses a;
    if (!gather_addresses(w, i, a, bytes)) return;
    find_base(w, space, a, bytes, false);
    if (a.base != nullptr) {
        if (a.global)
            w.launch->counters.global_bytes_loaded +=
                bytes * static_cast<U64>(__builtin_popcount(w.exec));
        return load_from_base<T>(w, i, a);
    }
    if (a.local && a.uniform && a.at[0] - a.base_address + bytes <= w.local_bytes) {
        return load_uniform_local<T>(w, i, a.at[0] - a.base_address);
    }
    Place places[kLanes];
    U32 global_lanes = 0;
    if (!find_places(w, space, a, bytes, false, places, global_lanes)) return;
    w.launch->counters.global_bytes_loaded += bytes * global_lanes;
    for (U32 k = 0; k < i.count; ++k) {
        if (i.op[k] == kNoSlot) continue;
        auto* d = reinterpret_cast<Stored<T>*>(w.regs + i.op[k]);
        each_lane(w.exec, [&](int l) { d[l] = stored<T>(read_element<T>(places[l], k)); });
    }
}

template <class T>
SIMGPU_INLINE void store_to_base(Warp& w, const Inst& i, const Addresses& a) {
    const U64 base = shift(a);
    if (a.contiguous && i.count == 1) {
        const auto* s = source<T>(w, i.op[0]);
        T* to = reinterpret_cast<T*>(base + a.at[0]);
        for (int l = 0; l < kLanes; ++l) to[l] = static_cast<T>(s[l]);
        return;
    }
    for (U32 k = 0; k < i.count; ++k) {
        const auto* s = source<T>(w, i.op[k]);
        const U64 to = base + k * sizeof(T);
        if (w.exec == kAllLanes) {
            for (int l = 0; l < kLanes; ++l)
                *reinterpret_cast<T*>(to + a.at[l]) = static_cast<T>(s[l]);
        } else {
            each_lane(w.exec,
                      [&](int l) { *reinterpret_cast<T*>(to + a.at[l]) = static_cast<T>(s[l]); });
        }
    }
}

template <class T>
void store(Warp& w, const Inst& i) {
    const U64 bytes = i.count * sizeof(T);
    const Space space = static_cast<Space>(i.mode);
    Addresses a;
    if (!gather_addresses(w, i, a, bytes)) return;
    find_base(w, space, a, bytes, true);
    if (a.base != nullptr) {
        if (a.global)
            w.launch->counters.global_bytes_stored +=
                bytes * static_cast<U64>(__builtin_popcount(w.exec));
        return store_to_base<T>(w, i, a);
    }
    Place places[kLanes];
    U32 global_lanes = 0;
    if (!find_places(w, space, a, bytes, true, places, global_lanes)) return;
    w.launch->counters.global_bytes_stored += bytes * global_lanes;
    for (U32 k = 0; k < i.count; ++k) {
        const auto* s = source<T>(w, i.op[k]);
        each_lane(w.exec, [&](int l) { write_element<T>(places[l], k, static_cast<T>(s[l])); });
    }
}

/// A kernel parameter at a fixed place: the same for all lanes.
template <class T>
void load_param(Warp& w, const Inst& i) {
    for (U32 k = 0; k < i.count; ++k) {
        if (i.op[k] == kNoSlot) continue;
        T value;
        std::memcpy(&value, w.launch->params.data() + i.imm + k * sizeof(T), sizeof(T));
        auto* d = result<T>(w, i.op[k]);
        for (int l = 0; l < kLanes; ++l) d[l] = stored<T>(value);
        finish<T>(w, i.op[k]);
    }
}

template <class T>
Handler pick(Op op) {
    if (op == Op::Ld) return &load<T>;
    if (op == Op::St) return &store<T>;
    return &load_param<T>;
}

}  // namespace

Handler find_memory(const OpKey& key) {
    if (key.op != Op::Ld && key.op != Op::St && key.op != Op::LdParam) return nullptr;
    switch (key.type) {
        case Type::S8:
            return pick<std::int8_t>(key.op);
        case Type::S16:
            return pick<std::int16_t>(key.op);
        default:
            break;
    }
    switch (type_bytes(key.type)) {
        case 1:
            return pick<std::uint8_t>(key.op);
        case 2:
            return pick<std::uint16_t>(key.op);
        case 4:
            return pick<U32>(key.op);
        case 8:
            return pick<U64>(key.op);
        default:
            return nullptr;
    }
}

}  // namespace simgpu::exec::SIMGPU_ISA
