// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace libswap {

/// One per exported driver symbol, in the order of hooks.def.
enum class Hook : unsigned {
#define HOOK(name, version, kind) name,
#define COUNTED(name, version) name,
#include "interposer/hooks.def"
#undef HOOK
#undef COUNTED
    kCount
};
inline constexpr std::size_t kHookCount = static_cast<std::size_t>(Hook::kCount);

/// What hooks.def says about a hook.
struct HookInfo {
    const char* name;  ///< exact exported symbol: "cuMemcpyHtoD_v2_ptds"
    int version;       ///< the CUDA version that introduced this signature
    bool is_reported;  ///< passed through in a way that the summary names
    void* address;     ///< our function
};

const HookInfo& hook_info(Hook hook) noexcept;

/// The hook of that exact name, or Hook::kCount.
Hook find_hook(std::string_view exported_name) noexcept;

/// All hooks of one base name ("cuMemcpyHtoD"), as indices; empty if there are none.
std::span<const std::uint16_t> find_family(std::string_view base) noexcept;

/// "cuMemcpyHtoD" of "cuMemcpyHtoD_v2_ptds": the name that cuGetProcAddress is asked for.
constexpr std::string_view base_name(std::string_view exported_name) noexcept;

/// Whether the name is a per-thread-default-stream variant (_ptsz, _ptds).
constexpr bool is_per_thread(std::string_view exported_name) noexcept;

/// Calls per hook, counted once each whatever route they came by. @thread any
void count_call(Hook hook) noexcept;
std::uint64_t call_count(Hook hook) noexcept;
void reset_call_counts() noexcept;

constexpr bool is_per_thread(std::string_view exported_name) noexcept {
    return exported_name.ends_with("_ptsz") || exported_name.ends_with("_ptds");
}

constexpr std::string_view base_name(std::string_view exported_name) noexcept {
    if (is_per_thread(exported_name)) exported_name.remove_suffix(5);
    const std::size_t size = exported_name.size();
    if (size > 3 && exported_name.substr(size - 3, 2) == "_v") exported_name.remove_suffix(3);
    return exported_name;
}

}  // namespace libswap
