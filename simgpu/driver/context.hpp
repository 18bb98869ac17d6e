// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "simgpu/device/machine.hpp"

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): an early return cannot be a function.
#define SIMGPU_TRY(expression)                                                      \
    do {                                                                            \
        if (CUresult simgpu_result_ = (expression); simgpu_result_ != CUDA_SUCCESS) \
            return simgpu_result_;                                                  \
    } while (false)

namespace simgpu::driver {

class Gpu;

/// What a CUcontext points at. Contexts are never freed, only marked as destroyed: threads may hold
/// them as current, and a primary context keeps its handle when it is reset and retained again.
struct Context {
    Context(Gpu& gpu_of, bool is_primary, unsigned with_flags);

    Gpu& gpu;
    const bool primary;
    const std::uint64_t id;
    std::atomic<bool> alive{false};
    std::atomic<unsigned> flags{0};
    std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};
    std::atomic<CUsharedconfig> shared_config{CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE};
    /// By CUlimit.
    std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> limits{};

    CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
    /// Streams and faults of what runs here. Valid while alive.
    simgpu::Context& device() { return *device_.load(std::memory_order_acquire); }
    /// What an operation left that failed, for all calls until a reset. Said once, with its reason.
    CUresult sticky_error();
    /// Makes the context usable, at first and after a reset.
    void revive(unsigned with_flags);
    /// Waits for the context's work and frees what belongs to it.
    void destroy();

  private:
    /// Never freed either: a thread may be inside a call when another destroys the context.
    std::atomic<simgpu::Context*> device_{nullptr};
    std::atomic<bool> said_error_{false};
};

/// A context that was made and not destroyed: CUDA_ERROR_INVALID_CONTEXT or
/// CUDA_ERROR_CONTEXT_IS_DESTROYED else.
CUresult find_context(CUcontext handle, Context*& out);

/// The calling thread's context, alive and without device error; what every call that needs one
/// starts with.
CUresult current_context(Context*& out);

/// The same, but a device error does not matter.
CUresult current_context_even_failed(Context*& out);

/// The top of the calling thread's stack, null if empty. Does not look whether it lives.
Context* current_context_or_null();
void push_current(Context* context);
Context* pop_current();
/// Replaces the top of the stack; null pops it.
void set_current(Context* context);

/// A new context on the device, alive, not current anywhere.
Context* create_context(Gpu& gpu, unsigned flags);

/// CUDA_ERROR_INVALID_VALUE for flags that cuCtxCreate does not know.
CUresult check_context_flags(unsigned flags);

/// One device's primary context and who holds it.
class PrimaryContext {
  public:
    explicit PrimaryContext(Gpu& gpu) : gpu_(gpu) {}
    Context& retain();
    CUresult release();
    void reset();
    CUresult set_flags(unsigned flags);
    void state(unsigned& flags, int& active);
    /// The context if it is active, else null.
    Context* active();

  private:
    Gpu& gpu_;
    std::mutex mutex_;
    Context* context_ = nullptr;
    int references_ = 0;
    unsigned flags_ = 0;
};

}  // namespace simgpu::driver
