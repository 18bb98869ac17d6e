// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// cuDNN's backend interface: its descriptors say what a plan writes, long before it is executed.

#include "interposer/cudnn_call.hpp"
#include "interposer/cudnn_graphs.hpp"

#include <algorithm>

namespace libswap {
namespace {

constexpr int kCudnnSuccess = 0;
constexpr int kTypeDescriptor = 15;  ///< CUDNN_TYPE_BACKEND_DESCRIPTOR

/// What is remembered is a hint: where there is no memory for it, it is left out.
template <class Note>
void note(const Note& body) noexcept {
    try {
        body(CudnnGraphs::get());
    } catch (...) {
    }
}

CudnnGraphs::Call call_of(void* plan, void* pack) noexcept {
    CudnnGraphs::Call call{"cudnnBackendExecute", {}};
    note([&](CudnnGraphs& graphs) { call = graphs.call(plan, pack); });
    return call;
}

}  // namespace
}  // namespace libswap

LIBSWAP_CUDNN_EXPORT int cudnnBackendSetAttribute(void* descriptor, int attribute, int type,
                                                  std::int64_t count, const void* elements) {
    using namespace libswap;
    constinit static std::atomic<void*> known{nullptr};
    auto* const real = cudnn_function<int(void*, int, int, std::int64_t, const void*)>(
        known, "cudnnBackendSetAttribute");
    if (!real) return kCudnnNotInitialized;
    const int status = real(descriptor, attribute, type, count, elements);
    if (status == kCudnnSuccess)
        note([&](CudnnGraphs& graphs) { graphs.was_set(descriptor, attribute, count, elements); });
    return status;
}

LIBSWAP_CUDNN_EXPORT int cudnnBackendGetAttribute(void* descriptor, int attribute, int type,
                                                  std::int64_t requested, std::int64_t* count,
                                                  void* elements) {
    using namespace libswap;
    constinit static std::atomic<void*> known{nullptr};
    auto* const real = cudnn_function<int(void*, int, int, std::int64_t, std::int64_t*, void*)>(
        known, "cudnnBackendGetAttribute");
    if (!real) return kCudnnNotInitialized;
    const int status = real(descriptor, attribute, type, requested, count, elements);
    if (status == kCudnnSuccess && type == kTypeDescriptor)
        note([&](CudnnGraphs& graphs) {
            graphs.was_read(descriptor, attribute, count ? std::min(requested, *count) : requested,
                            elements);
        });
    return status;
}

LIBSWAP_CUDNN_EXPORT int cudnnBackendDestroyDescriptor(void* descriptor) {
    using namespace libswap;
    constinit static std::atomic<void*> known{nullptr};
    auto* const real = cudnn_function<int(void*)>(known, "cudnnBackendDestroyDescriptor");
    if (!real) return kCudnnNotInitialized;
    note([&](CudnnGraphs& graphs) { graphs.was_destroyed(descriptor); });
    return real(descriptor);
}

LIBSWAP_CUDNN_EXPORT int cudnnBackendExecute(void* handle, void* plan, void* pack) {
    using namespace libswap;
    constinit static std::atomic<void*> known{nullptr};
    auto* const real = cudnn_function<int(void*, void*, void*)>(known, "cudnnBackendExecute");
    if (!real) return kCudnnNotInitialized;
    const CudnnGraphs::Call call = call_of(plan, pack);
    const CallRoles roles(call.name, call.operands.data(), call.operands.size());
    return real(handle, plan, pack);
}
