// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <set>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/pools.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {
namespace {

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
    Gpu* gpu = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_gpu(device, gpu));
    SIMGPU_TRY(check_context_flags(flags));
    Context* context = create_context(*gpu, flags);
    push_current(context);
    *out = context->handle();
    return CUDA_SUCCESS;
}

CUresult create_with_parameters(CUcontext* out, const CUctxCreateParams* parameters, unsigned flags,
                                CUdevice device) {
    bool special = parameters != nullptr &&
                   (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr);
    if (special) return CUDA_ERROR_NOT_SUPPORTED;
    return create(out, flags, device);
}

CUresult destroy(CUcontext handle) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    Context* context = nullptr;
    SIMGPU_TRY(find_context(handle, context));
    // Primary contexts are released, not destroyed.
    if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    context->destroy();
    if (current_context_or_null() == context) pop_current();
    return CUDA_SUCCESS;
}

CUresult push(CUcontext handle) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    Context* context = nullptr;
    SIMGPU_TRY(find_context(handle, context));
    push_current(context);
    return CUDA_SUCCESS;
}

CUresult pop(CUcontext* out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    Context* context = pop_current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (out != nullptr) *out = context->handle();
    return CUDA_SUCCESS;
}

/// The context given, or the current one for NULL.
CUresult context_or_current(CUcontext handle, Context*& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return handle == nullptr ? current_context_even_failed(out) : find_context(handle, out);
}

CUresult get_device(CUdevice* device, CUcontext handle) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(context_or_current(handle, context));
    *device = context->gpu.ordinal;
    return CUDA_SUCCESS;
}

CUresult set_limit(CUlimit limit, std::size_t value) {
    Context* context = nullptr;
    SIMGPU_TRY(current_context(context));
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult get_limit(std::size_t* value, CUlimit limit) {
    Context* context = nullptr;
    SIMGPU_TRY(current_context(context));
    if (value == nullptr || limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

template <typename T, typename Get>
CUresult ask(T* out, Get&& get) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(current_context(context));
    *out = get(*context);
    return CUDA_SUCCESS;
}

/// Which context may use memory of which; the grants themselves are per device.
class PeerAccess {
  public:
    CUresult enable(Context& context, Context& peer) {
        if (&context.gpu == &peer.gpu) return CUDA_ERROR_INVALID_DEVICE;
        std::lock_guard lock(mutex_);
        if (!pairs_.insert({&context, &peer}).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
        machine().memory().set_peer_access(context.gpu.ordinal, peer.gpu.ordinal, true);
        return CUDA_SUCCESS;
    }

    CUresult disable(Context& context, Context& peer) {
        std::lock_guard lock(mutex_);
        if (pairs_.erase({&context, &peer}) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
        machine().memory().set_peer_access(context.gpu.ordinal, peer.gpu.ordinal, false);
        return CUDA_SUCCESS;
    }

  private:
    std::mutex mutex_;
    std::set<std::pair<Context*, Context*>> pairs_;
};

PeerAccess& peers() {
    static auto* access = new PeerAccess;  // leaked: calls may come after static destructors
    return *access;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuCtxCreate_v2, (CUcontext * out, unsigned flags, CUdevice device),
            { return driver::create(out, flags, device); })
SIMGPU_CALL(cuCtxCreate_v3,
            (CUcontext * out, CUexecAffinityParam*, int count, unsigned flags, CUdevice device), {
                if (count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
                return driver::create(out, flags, device);
            })
SIMGPU_CALL(cuCtxCreate_v4,
            (CUcontext * out, CUctxCreateParams* parameters, unsigned flags, CUdevice device),
            { return driver::create_with_parameters(out, parameters, flags, device); })
SIMGPU_CALL(cuCtxDestroy, (CUcontext context), { return driver::destroy(context); })
SIMGPU_CALL(cuCtxDestroy_v2, (CUcontext context), { return driver::destroy(context); })
SIMGPU_CALL(cuCtxPushCurrent, (CUcontext context), { return driver::push(context); })
SIMGPU_CALL(cuCtxPushCurrent_v2, (CUcontext context), { return driver::push(context); })
SIMGPU_CALL(cuCtxPopCurrent, (CUcontext * out), { return driver::pop(out); })
SIMGPU_CALL(cuCtxPopCurrent_v2, (CUcontext * out), { return driver::pop(out); })

SIMGPU_CALL(cuCtxSetCurrent, (CUcontext handle), {
    driver::Context* context = nullptr;
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (handle != nullptr) SIMGPU_TRY(driver::find_context(handle, context));
    driver::set_current(context);
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuCtxGetCurrent, (CUcontext * out), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    driver::Context* context = driver::current_context_or_null();
    *out = context != nullptr ? context->handle() : nullptr;
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuCtxGetDevice, (CUdevice * device), { return driver::get_device(device, nullptr); })
SIMGPU_CALL(cuCtxGetDevice_v2, (CUdevice * device, CUcontext context),
            { return driver::get_device(device, context); })

SIMGPU_CALL(cuCtxSynchronize, (), {
    driver::Context* context = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    SIMGPU_TRY(driver::check_context_wait(*context));
    SIMGPU_TRY(context->device().synchronize());
    driver::release_after_wait();
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuCtxSynchronize_v2, (CUcontext handle), {
    driver::Context* context = nullptr;
    SIMGPU_TRY(driver::context_or_current(handle, context));
    SIMGPU_TRY(driver::check_context_wait(*context));
    SIMGPU_TRY(context->device().synchronize());
    driver::release_after_wait();
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuCtxGetFlags, (unsigned* flags), {
    return driver::ask(flags, [](driver::Context& context) { return context.flags.load(); });
})
SIMGPU_CALL(cuCtxSetFlags, (unsigned flags), {
    driver::Context* context = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    SIMGPU_TRY(driver::check_context_flags(flags));
    context->flags = flags;
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuCtxGetId, (CUcontext handle, unsigned long long* id), {
    driver::Context* context = nullptr;
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::context_or_current(handle, context));
    *id = context->id;
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuCtxGetApiVersion, (CUcontext handle, unsigned* version), {
    constexpr unsigned kApiVersion = 3020;
    driver::Context* context = nullptr;
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::context_or_current(handle, context));
    *version = kApiVersion;
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuCtxSetLimit, (CUlimit limit, size_t value),
            { return driver::set_limit(limit, value); })
SIMGPU_CALL(cuCtxGetLimit, (size_t * value, CUlimit limit),
            { return driver::get_limit(value, limit); })

SIMGPU_CALL(cuCtxGetCacheConfig, (CUfunc_cache * out), {
    return driver::ask(out, [](driver::Context& context) { return context.cache_config.load(); });
})
SIMGPU_CALL(cuCtxSetCacheConfig, (CUfunc_cache config), {
    driver::Context* context = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    context->cache_config = config;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuCtxGetSharedMemConfig, (CUsharedconfig * out), {
    return driver::ask(out, [](driver::Context& context) { return context.shared_config.load(); });
})
SIMGPU_CALL(cuCtxSetSharedMemConfig, (CUsharedconfig config), {
    driver::Context* context = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    context->shared_config = config;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuCtxResetPersistingL2Cache, (), {
    driver::Context* context = nullptr;
    return driver::current_context(context);
})

SIMGPU_CALL(cuCtxEnablePeerAccess, (CUcontext handle, unsigned flags), {
    driver::Context* context = nullptr;
    driver::Context* peer = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::find_context(handle, peer));
    return driver::peers().enable(*context, *peer);
})
SIMGPU_CALL(cuCtxDisablePeerAccess, (CUcontext handle), {
    driver::Context* context = nullptr;
    driver::Context* peer = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    SIMGPU_TRY(driver::find_context(handle, peer));
    return driver::peers().disable(*context, *peer);
})
