// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/cuda_abi.hpp"

#include "interposer/hook_table.hpp"

#include "interposer/counted_thunks.hpp"

#include <algorithm>
#include <array>

namespace libswap {
namespace {

// Plain addresses of our own functions: the library is linked with -Bsymbolic-functions, so that
// neither a copy in the program nor another preloaded library can take their place here.
#define Followed false
#define Reported true
const HookInfo kHooks[kHookCount] = {
#define HOOK(name, version, kind) {#name, version, kind, reinterpret_cast<void*>(&::name)},
#define COUNTED(name, version) {#name, version, true, reinterpret_cast<void*>(&::name)},
#include "interposer/hooks.def"
#undef HOOK
#undef COUNTED
};
#undef Followed
#undef Reported

constexpr std::array<std::string_view, kHookCount> kNames = {
#define HOOK(name, version, kind) #name,
#define COUNTED(name, version) #name,
#include "interposer/hooks.def"
#undef HOOK
#undef COUNTED
};

/// Indices of all hooks in the order that `less` gives.
template <class Less>
constexpr std::array<std::uint16_t, kHookCount> sorted_indices(Less less) {
    std::array<std::uint16_t, kHookCount> order{};
    for (std::size_t i = 0; i < kHookCount; ++i) order[i] = static_cast<std::uint16_t>(i);
    std::sort(order.begin(), order.end(), less);
    return order;
}

struct BaseLess {
    static constexpr std::string_view key(std::uint16_t index) { return base_name(kNames[index]); }
    static constexpr std::string_view key(std::string_view base) { return base; }
    template <class A, class B>
    constexpr bool operator()(const A& a, const B& b) const {
        return key(a) < key(b);
    }
};

constexpr auto kByName =
    sorted_indices([](std::uint16_t a, std::uint16_t b) { return kNames[a] < kNames[b]; });
constexpr auto kByBase = sorted_indices(BaseLess{});

}  // namespace

const HookInfo& hook_info(Hook hook) noexcept { return kHooks[static_cast<std::size_t>(hook)]; }

Hook find_hook(std::string_view exported_name) noexcept {
    const auto found = std::lower_bound(
        kByName.begin(), kByName.end(), exported_name,
        [](std::uint16_t index, std::string_view name) { return kNames[index] < name; });
    if (found == kByName.end() || kNames[*found] != exported_name) return Hook::kCount;
    return static_cast<Hook>(*found);
}

std::span<const std::uint16_t> find_family(std::string_view base) noexcept {
    const auto [first, last] = std::equal_range(kByBase.begin(), kByBase.end(), base, BaseLess{});
    return {first, last};
}

void count_call(Hook hook) noexcept {
    std::atomic_ref(libswap_hook_calls[static_cast<std::size_t>(hook)])
        .fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t call_count(Hook hook) noexcept {
    return std::atomic_ref(libswap_hook_calls[static_cast<std::size_t>(hook)])
        .load(std::memory_order_relaxed);
}

void reset_call_counts() noexcept {
    for (std::uint64_t& count : libswap_hook_calls)
        std::atomic_ref(count).store(0, std::memory_order_relaxed);
}

}  // namespace libswap
