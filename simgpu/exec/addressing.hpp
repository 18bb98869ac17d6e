// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstring>

#include "simgpu/exec/lanes.hpp"

/// From the addresses of a memory instruction's lanes to host memory.
namespace simgpu::exec::SIMGPU_ISA {

/// Bytes between consecutive words of a thread's local memory in the host's.
inline constexpr std::size_t kLocalStride = kLanes * sizeof(std::uint32_t);

/// The lanes' addresses and what they have in common. Lanes that are off repeat the first that is
/// on, so that loads may treat all lanes alike.
struct Addresses {
    alignas(64) std::uint64_t at[kLanes];
    int first = 0;
    bool contiguous = false;
    bool uniform = false;
    /// All in one page (or one window), whose first byte is at `base` here; else null.
    std::byte* base = nullptr;
    std::uint64_t base_address = 0;
    bool local = false;
    bool global = false;
};

/// Where one lane's bytes are. In local memory consecutive words are `kLocalStride` apart.
struct Place {
    std::byte* bytes = nullptr;
    bool local = false;
};

template <class T>
SIMGPU_INLINE std::byte* element_place(Place place, std::size_t k) {
    const std::size_t offset = k * sizeof(T);
    return place.bytes + (place.local ? (offset / 4) * kLocalStride + offset % 4 : offset);
}

template <class T>
SIMGPU_INLINE T read_element(Place place, std::size_t k) {
    const std::byte* from = element_place<T>(place, k);
    T value;
    if (sizeof(T) == 8 && place.local) {
        std::memcpy(&value, from, 4);
        std::memcpy(reinterpret_cast<std::byte*>(&value) + 4, from + kLocalStride, sizeof(T) - 4);
    } else {
        std::memcpy(&value, from, sizeof(T));
    }
    return value;
}

template <class T>
SIMGPU_INLINE void write_element(Place place, std::size_t k, T value) {
    std::byte* to = element_place<T>(place, k);
    if (sizeof(T) == 8 && place.local) {
        std::memcpy(to, &value, 4);
        std::memcpy(to + kLocalStride, reinterpret_cast<const std::byte*>(&value) + 4,
                    sizeof(T) - 4);
    } else {
        std::memcpy(to, &value, sizeof(T));
    }
}

/// Fills `a.at`; false (and a fault) if a lane's address is not a multiple of `bytes`.
SIMGPU_INLINE bool gather_addresses(Warp& w, const Inst& i, Addresses& a, std::uint64_t bytes) {
    if (i.addr32) {
        const auto* from = source<std::uint32_t>(w, i.addr);
        for (int l = 0; l < kLanes; ++l)
            a.at[l] = static_cast<std::uint32_t>(from[l] + static_cast<std::uint32_t>(i.imm));
    } else {
        const auto* from = source<std::uint64_t>(w, i.addr);
        for (int l = 0; l < kLanes; ++l) a.at[l] = from[l] + static_cast<std::uint64_t>(i.imm);
    }
    a.first = __builtin_ctz(w.exec);
    if (w.exec != kAllLanes) {
        const std::uint64_t fill = a.at[a.first];
        for (int l = 0; l < kLanes; ++l) a.at[l] = ((w.exec >> l) & 1U) != 0 ? a.at[l] : fill;
    }
    std::uint64_t all = 0;
    for (int l = 0; l < kLanes; ++l) all |= a.at[l];
    if ((all & (bytes - 1)) == 0) return true;
    each_lane(w.exec, [&](int l) {
        if ((a.at[l] & (bytes - 1)) != 0) w.fault(RunStatus::MisalignedAddress, a.at[l]);
    });
    return false;
}

/// Finds the common case: all lanes in one page or window.
SIMGPU_INLINE void find_base(Warp& w, Space space, Addresses& a, std::uint64_t bytes, bool write) {
    std::uint64_t differing = 0;
    std::uint64_t uneven = 0;
    std::uint64_t all = 0;
    std::uint64_t highest = 0;
    for (int l = 0; l < kLanes; ++l) {
        differing |= a.at[l] ^ a.at[0];
        uneven |= a.at[l] ^ (a.at[0] + static_cast<std::uint64_t>(l) * bytes);
        all |= a.at[l];
        highest = a.at[l] > highest ? a.at[l] : highest;
    }
    a.uniform = differing == 0;
    a.contiguous = uneven == 0 && w.exec == kAllLanes;
    std::uint64_t window = 0;
    if (space == Space::Generic && (differing & kWindowMask) == 0) {
        window = a.at[0] & kWindowMask;
        if (window == kSharedWindow) space = Space::Shared;
        if (window == kLocalWindow) space = Space::Local;
        if (window == kParamWindow) space = Space::Param;
    }
    a.base_address = window;
    const std::uint64_t last = highest - window + bytes;
    switch (space) {
        case Space::Shared:
            if (highest - window < w.shared_bytes && last <= w.shared_bytes) a.base = w.shared;
            return;
        case Space::Local:
            a.local = true;
            return;
        case Space::Param:
            if (!write && highest - window < w.launch->params.size() &&
                last <= w.launch->params.size())
                a.base = w.launch->params.data();
            return;
        default:
            break;
    }
    a.global = (all & kWindowMask) == 0;
    if (!a.global || differing >= kPageBytes) return;
    a.base_address = a.at[0] & ~(kPageBytes - 1);
    a.base = w.launch->host(a.base_address, write);
}

/// One lane's place, the long way; null bytes (and a fault) if it may not go there.
inline Place lane_place(Warp& w, int lane, Space space, std::uint64_t address, std::uint64_t bytes,
                        bool write, bool& global) {
    std::uint64_t offset = address;
    if (space == Space::Generic) {
        const std::uint64_t window = address & kWindowMask;
        if (window == kSharedWindow) space = Space::Shared;
        if (window == kLocalWindow) space = Space::Local;
        if (window == kParamWindow) space = Space::Param;
        if (space != Space::Generic) offset = address - window;
    }
    Place place;
    switch (space) {
        case Space::Shared:
            if (offset < w.shared_bytes && offset + bytes <= w.shared_bytes)
                place.bytes = w.shared + offset;
            break;
        case Space::Local:
            if (offset < w.local_bytes && offset + bytes <= w.local_bytes) {
                place.bytes =
                    reinterpret_cast<std::byte*>(w.local.data() + (offset / 4) * kLanes + lane) +
                    offset % 4;
                place.local = true;
            }
            break;
        case Space::Param:
            if (!write && offset < w.launch->params.size() &&
                offset + bytes <= w.launch->params.size())
                place.bytes = w.launch->params.data() + offset;
            break;
        default:
            place.bytes = w.launch->host(address, write);
            global = true;
            break;
    }
    if (place.bytes == nullptr) w.fault(RunStatus::IllegalAddress, address);
    return place;
}

/// All lanes' places, before anything is done at any of them.
inline bool find_places(Warp& w, Space space, const Addresses& a, std::uint64_t bytes, bool write,
                        Place* places, std::uint32_t& global_lanes) {
    for (int l = 0; l < kLanes; ++l) {
        if (((w.exec >> l) & 1U) == 0) continue;
        bool global = false;
        places[l] = lane_place(w, l, space, a.at[l], bytes, write, global);
        if (places[l].bytes == nullptr) return false;
        global_lanes += global ? 1 : 0;
    }
    return true;
}

}  // namespace simgpu::exec::SIMGPU_ISA
