// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the hooks of cuDNN have in common. cuDNN's headers are not needed: handles and descriptors
// are addresses to us, and enumerators ints, as the C ABI has them.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interposer/library_table.hpp"
#include "runtime/call_roles.hpp"

namespace libswap {

/// CUDNN_STATUS_NOT_INITIALIZED: what our hooks answer where there is no cuDNN behind them.
inline constexpr int kCudnnNotInitialized = 1001;

/// cuDNN's own function, once found remembered in `known`.
template <class Function>
Function* cudnn_function(std::atomic<void*>& known, const char* name) noexcept {
    void* function = known.load(std::memory_order_acquire);
    if (!function) {
        function = find_library_function(name);
        known.store(function, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(function);
}

inline CallOperand reads(const void* address) noexcept {
    return {reinterpret_cast<std::uint64_t>(address), false};
}
inline CallOperand writes(const void* address) noexcept {
    return {reinterpret_cast<std::uint64_t>(address), true};
}

}  // namespace libswap

/// Before a definition: exported, though all else is built hidden.
#define LIBSWAP_CUDNN_EXPORT extern "C" [[gnu::visibility("default")]]

/// A hook: name, parameters, arguments for the real call, and its operands: reads(x), writes(y).
#define LIBSWAP_CUDNN_HOOK(name, parameters, arguments, ...)                            \
    LIBSWAP_CUDNN_EXPORT int name parameters {                                          \
        using namespace libswap;                                                        \
        constinit static std::atomic<void*> known{nullptr};                             \
        auto* const real = cudnn_function<int parameters>(known, #name);                \
        if (!real) return kCudnnNotInitialized;                                         \
        const CallOperand operands[] = {__VA_ARGS__};                                   \
        const CallRoles roles(#name, operands, sizeof(operands) / sizeof(operands[0])); \
        return real arguments;                                                          \
    }
