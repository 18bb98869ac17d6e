// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "interposer/cuda_abi.hpp"

#include "interposer/hook_time.hpp"
#include "interposer/process.hpp"
#include "interposer/real_driver.hpp"
#include "runtime/engine.hpp"

#include <new>

namespace libswap {

/// Marks the thread as being inside a hook for as long as it lives.
class HookScope {
  public:
    HookScope() noexcept { ++libswap_hook_depth; }
    ~HookScope() { --libswap_hook_depth; }
    HookScope(const HookScope&) = delete;
    HookScope& operator=(const HookScope&) = delete;

    static bool is_active() noexcept { return libswap_hook_depth != 0; }
};

/// Every hook: recursion test, then is there an engine, then the engine. No exception leaves it.
template <class Real, class Body>
CUresult run_hook(Hook hook, const Real& real, const Body& body) noexcept {
    if (HookScope::is_active()) return real();
    count_call(hook);
    const HookScope scope;
    Engine* const engine = active_engine();
    if (!engine) return real();
    const HookTimer timer;
    try {
        return body(*engine);
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

/// The stream that a call means by NULL.
inline CUstream default_stream_of(bool per_thread) noexcept {
    return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

}  // namespace libswap

/// A hook: exported name, parameters, arguments for the real call, and what the engine does: an
/// expression of `engine`, `real`, the parameters, `default_stream` and `on(stream)`, which never
/// gives a null stream.
#define LIBSWAP_HOOK(name, parameters, arguments, ...)                                            \
    extern "C" CUresult name parameters {                                                         \
        using namespace libswap;                                                                  \
        [[maybe_unused]] const CUstream default_stream = default_stream_of(is_per_thread(#name)); \
        [[maybe_unused]] const auto on = [=](CUstream stream) {                                   \
            return stream ? stream : default_stream;                                              \
        };                                                                                        \
        const auto real = [=]() noexcept {                                                        \
            const RealCallTimer timer;                                                            \
            return real_function<decltype(&::name)>(Hook::name) arguments;                        \
        };                                                                                        \
        return run_hook(Hook::name, real,                                                         \
                        [&]([[maybe_unused]] Engine& engine) -> CUresult { __VA_ARGS__ });        \
    }

/// The same for a call and its per-thread-default-stream twin.
#define LIBSWAP_HOOK_TWINS(name, suffix, parameters, arguments, ...) \
    LIBSWAP_HOOK(name, parameters, arguments, __VA_ARGS__)           \
    LIBSWAP_HOOK(name##suffix, parameters, arguments, __VA_ARGS__)
