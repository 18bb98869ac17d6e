// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/context.hpp"

#include <bit>
#include <vector>

#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/handle_table.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/teardown.hpp"
#include "simgpu/per_thread.hpp"

namespace simgpu::driver {

namespace {

HandleTable<Context>& contexts() {
    static auto* table =
        new HandleTable<Context>;  // leaked: calls may come after static destructors
    return *table;
}

std::vector<Context*>& stack() { return per_thread<std::vector<Context*>>(); }

std::uint64_t next_context_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

void reset_limits(Context& context) {
    constexpr std::size_t kMiB = std::size_t{1} << 20;
    context.limits[CU_LIMIT_STACK_SIZE] = 1024;
    context.limits[CU_LIMIT_PRINTF_FIFO_SIZE] = kMiB;
    context.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * kMiB;
    context.limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    context.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    context.limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128;
}

}  // namespace

Context::Context(Gpu& gpu_of, bool is_primary, unsigned with_flags)
    : gpu(gpu_of), primary(is_primary), id(next_context_id()) {
    revive(with_flags);
}

void Context::revive(unsigned with_flags) {
    flags = with_flags;
    cache_config = CU_FUNC_CACHE_PREFER_NONE;
    reset_limits(*this);
    device_ = machine().create_context(gpu.ordinal).release();
    said_error_ = false;
    alive = true;
}

void Context::destroy() {
    alive = false;
    // Its result is the past's: destroying a failed context succeeds.
    static_cast<void>(device().synchronize());
    release_everything_of(*this);
}

CUresult find_context(CUcontext handle, Context*& out) {
    auto found = contexts().find(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    out = found.get();
    return out->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult current_context_even_failed(Context*& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = current_context_or_null();
    if (out == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return out->alive.load(std::memory_order_relaxed) ? CUDA_SUCCESS
                                                      : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult current_context(Context*& out) {
    SIMGPU_TRY(current_context_even_failed(out));
    return out->sticky_error();
}

CUresult Context::sticky_error() {
    const CUresult status = device().sticky_error();
    if (status == CUDA_SUCCESS || status == CUDA_ERROR_DEINITIALIZED) return status;
    if (const std::string reason = device().fault_detail();
        !reason.empty() && !said_error_.exchange(true))
        say("{}", reason);
    return status;
}

Context* current_context_or_null() { return stack().empty() ? nullptr : stack().back(); }

void push_current(Context* context) { stack().push_back(context); }

Context* pop_current() {
    if (stack().empty()) return nullptr;
    Context* top = stack().back();
    stack().pop_back();
    return top;
}

void set_current(Context* context) {
    pop_current();
    if (context != nullptr) push_current(context);
}

Context* create_context(Gpu& gpu, unsigned flags) {
    auto context = std::make_shared<Context>(gpu, false, flags);
    contexts().add(context);
    return context.get();
}

CUresult check_context_flags(unsigned flags) {
    if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (std::popcount(flags & CU_CTX_SCHED_MASK) > 1) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

Context& PrimaryContext::retain() {
    std::lock_guard lock(mutex_);
    if (context_ == nullptr) {
        auto context = std::make_shared<Context>(gpu_, true, flags_);
        contexts().add(context);
        context_ = context.get();
    }
    if (!context_->alive) context_->revive(flags_);
    ++references_;
    return *context_;
}

CUresult PrimaryContext::release() {
    std::lock_guard lock(mutex_);
    if (references_ == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--references_ == 0) context_->destroy();
    return CUDA_SUCCESS;
}

void PrimaryContext::reset() {
    std::lock_guard lock(mutex_);
    if (context_ != nullptr && context_->alive) context_->destroy();
    references_ = 0;
}

CUresult PrimaryContext::set_flags(unsigned flags) {
    SIMGPU_TRY(check_context_flags(flags));
    std::lock_guard lock(mutex_);
    flags_ = flags;
    if (context_ != nullptr && context_->alive) context_->flags = flags;
    return CUDA_SUCCESS;
}

void PrimaryContext::state(unsigned& flags, int& active) {
    std::lock_guard lock(mutex_);
    flags = flags_;
    active = context_ != nullptr && context_->alive ? 1 : 0;
}

Context* PrimaryContext::active() {
    std::lock_guard lock(mutex_);
    return context_ != nullptr && context_->alive ? context_ : nullptr;
}

}  // namespace simgpu::driver
