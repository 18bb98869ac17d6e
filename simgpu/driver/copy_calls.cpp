// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/copies.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {
namespace {

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CUresult copy_1d(std::uint64_t dst, Side dst_side, std::uint64_t src, Side src_side,
                 std::size_t bytes, CUstream stream, DefaultStream default_stream, Wait wait) {
    CopyRequest request;
    request.dst = dst;
    request.src = src;
    request.width = bytes;
    return submit_copy(request, dst_side, src_side, stream, default_stream, wait);
}

template <typename Copy>
CUresult copy_rectangle(const Copy* copy, CUstream stream, DefaultStream default_stream,
                        Wait wait) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return submit_copy(widen(*copy), stream, default_stream, wait);
}

CUresult check_peers(CUcontext dst, CUcontext src) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(find_context(dst, context));
    return find_context(src, context);
}

/// Why a batch is refused as a whole: what is wrong with the call itself.
CUresult check_batch(const CUdeviceptr* dsts, const CUdeviceptr* srcs, const std::size_t* sizes,
                     std::size_t count, const CUmemcpyAttributes* attributes,
                     const std::size_t* indices, std::size_t attribute_count, CUstream stream) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (dsts == nullptr || srcs == nullptr || sizes == nullptr || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute_count > count) return CUDA_ERROR_INVALID_VALUE;
    if (attribute_count != 0 && (attributes == nullptr || indices == nullptr || indices[0] != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // A batch may not go to the default streams.
    if (stream == nullptr || stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult copy_batch(const CUdeviceptr* dsts, const CUdeviceptr* srcs, const std::size_t* sizes,
                    std::size_t count, std::size_t* failed_index, CUstream stream,
                    DefaultStream default_stream) {
    for (std::size_t i = 0; i < count; ++i) {
        CUresult status = copy_1d(dsts[i], Side::Any, srcs[i], Side::Any, sizes[i], stream,
                                  default_stream, Wait::Never);
        if (status != CUDA_SUCCESS) {
            if (failed_index != nullptr) *failed_index = i;
            return status;
        }
    }
    return CUDA_SUCCESS;
}

CUresult copy_batch_3d(std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations,
                       std::size_t* failed_index, unsigned long long flags, CUstream stream,
                       DefaultStream default_stream) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (count == 0 || operations == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream == nullptr || stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
        CUDA_MEMCPY3D words{};
        CUresult status = widen(operations[i], words);
        if (status == CUDA_SUCCESS)
            status = submit_copy(words, stream, default_stream, Wait::Never);
        if (status != CUDA_SUCCESS) {
            if (failed_index != nullptr) *failed_index = i;
            return status;
        }
    }
    return CUDA_SUCCESS;
}

CUresult set_1d(CUdeviceptr dst, std::uint32_t value, unsigned element_bytes, std::size_t count,
                CUstream stream, DefaultStream default_stream, Wait wait) {
    MemsetRequest request;
    request.dst = dst;
    request.value = value;
    request.element_bytes = element_bytes;
    request.width = count;
    return submit_memset(request, stream, default_stream, wait);
}

CUresult set_2d(CUdeviceptr dst, std::size_t pitch, std::uint32_t value, unsigned element_bytes,
                std::size_t width, std::size_t height, CUstream stream,
                DefaultStream default_stream, Wait wait) {
    MemsetRequest request;
    request.dst = dst;
    request.value = value;
    request.element_bytes = element_bytes;
    request.width = width;
    request.height = height;
    request.pitch = pitch;
    return submit_memset(request, stream, default_stream, wait);
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL_PTDS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), {
    using namespace driver;
    return copy_1d(dst, Side::Any, src, Side::Any, bytes, nullptr, default_stream, Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), {
    using namespace driver;
    return copy_1d(dst, Side::Any, src, Side::Any, bytes, stream, default_stream, Wait::Never);
})
SIMGPU_CALL_PTDS(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void* src, size_t bytes), {
    using namespace driver;
    return copy_1d(dst, Side::Device, address(src), Side::Host, bytes, nullptr, default_stream,
                   Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpyHtoDAsync_v2,
                 (CUdeviceptr dst, const void* src, size_t bytes, CUstream stream), {
                     using namespace driver;
                     return copy_1d(dst, Side::Device, address(src), Side::Host, bytes, stream,
                                    default_stream, Wait::Never);
                 })
SIMGPU_CALL_PTDS(cuMemcpyDtoH_v2, (void* dst, CUdeviceptr src, size_t bytes), {
    using namespace driver;
    return copy_1d(address(dst), Side::Host, src, Side::Device, bytes, nullptr, default_stream,
                   Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpyDtoHAsync_v2, (void* dst, CUdeviceptr src, size_t bytes, CUstream stream),
                 {
                     using namespace driver;
                     return copy_1d(address(dst), Side::Host, src, Side::Device, bytes, stream,
                                    default_stream, Wait::Never);
                 })
SIMGPU_CALL_PTDS(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), {
    using namespace driver;
    return copy_1d(dst, Side::Device, src, Side::Device, bytes, nullptr, default_stream,
                   Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpyDtoDAsync_v2,
                 (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), {
                     using namespace driver;
                     return copy_1d(dst, Side::Device, src, Side::Device, bytes, stream,
                                    default_stream, Wait::Never);
                 })
SIMGPU_CALL_PTDS(cuMemcpyPeer,
                 (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                  size_t bytes),
                 {
                     using namespace driver;
                     SIMGPU_TRY(check_peers(dst_context, src_context));
                     return copy_1d(dst, Side::Device, src, Side::Device, bytes, nullptr,
                                    default_stream, Wait::UntilDone);
                 })
SIMGPU_CALL_PTSZ(cuMemcpyPeerAsync,
                 (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                  size_t bytes, CUstream stream),
                 {
                     using namespace driver;
                     SIMGPU_TRY(check_peers(dst_context, src_context));
                     return copy_1d(dst, Side::Device, src, Side::Device, bytes, stream,
                                    default_stream, Wait::Never);
                 })

SIMGPU_CALL_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* copy), {
    return driver::copy_rectangle(copy, nullptr, default_stream, driver::Wait::UntilDone);
})
SIMGPU_CALL_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* copy), {
    return driver::copy_rectangle(copy, nullptr, default_stream, driver::Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* copy, CUstream stream), {
    return driver::copy_rectangle(copy, stream, default_stream, driver::Wait::Never);
})
SIMGPU_CALL_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* copy), {
    return driver::copy_rectangle(copy, nullptr, default_stream, driver::Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* copy, CUstream stream), {
    return driver::copy_rectangle(copy, stream, default_stream, driver::Wait::Never);
})
SIMGPU_CALL_PTDS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* copy), {
    return driver::copy_rectangle(copy, nullptr, default_stream, driver::Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* copy, CUstream stream), {
    return driver::copy_rectangle(copy, stream, default_stream, driver::Wait::Never);
})

SIMGPU_CALL_PTSZ(cuMemcpyBatchAsync,
                 (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                  CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                  size_t* failed_index, CUstream stream),
                 {
                     if (failed_index != nullptr) *failed_index = SIZE_MAX;
                     SIMGPU_TRY(driver::check_batch(dsts, srcs, sizes, count, attributes, indices,
                                                    attribute_count, stream));
                     return driver::copy_batch(dsts, srcs, sizes, count, failed_index, stream,
                                               default_stream);
                 })
SIMGPU_CALL_PTSZ(cuMemcpyBatchAsync_v2,
                 (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                  CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                  CUstream stream),
                 {
                     SIMGPU_TRY(driver::check_batch(dsts, srcs, sizes, count, attributes, indices,
                                                    attribute_count, stream));
                     return driver::copy_batch(dsts, srcs, sizes, count, nullptr, stream,
                                               default_stream);
                 })
SIMGPU_CALL_PTSZ(cuMemcpy3DBatchAsync,
                 (size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, size_t* failed_index,
                  unsigned long long flags, CUstream stream),
                 {
                     return driver::copy_batch_3d(count, operations, failed_index, flags, stream,
                                                  default_stream);
                 })
SIMGPU_CALL_PTSZ(
    cuMemcpy3DBatchAsync_v2,
    (size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, unsigned long long flags, CUstream stream),
    { return driver::copy_batch_3d(count, operations, nullptr, flags, stream, default_stream); })

// Memsets, by bytes of an element: (name, type of the value, bytes).
#define SIMGPU_MEMSETS(name, type, element_bytes)                                        \
    SIMGPU_CALL_PTDS(cuMemset##name##_v2, (CUdeviceptr dst, type value, size_t count), { \
        return driver::set_1d(dst, value, element_bytes, count, nullptr, default_stream, \
                              driver::Wait::UntilDone);                                  \
    })                                                                                   \
    SIMGPU_CALL_PTSZ(cuMemset##name##Async,                                              \
                     (CUdeviceptr dst, type value, size_t count, CUstream stream), {     \
                         return driver::set_1d(dst, value, element_bytes, count, stream, \
                                               default_stream, driver::Wait::Never);     \
                     })
#define SIMGPU_MEMSETS_2D(name, type, element_bytes)                                               \
    SIMGPU_CALL_PTDS(cuMemsetD2##name##_v2,                                                        \
                     (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height), {   \
                         return driver::set_2d(dst, pitch, value, element_bytes, width, height,    \
                                               nullptr, default_stream, driver::Wait::UntilDone);  \
                     })                                                                            \
    SIMGPU_CALL_PTSZ(                                                                              \
        cuMemsetD2##name##Async,                                                                   \
        (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream stream), \
        {                                                                                          \
            return driver::set_2d(dst, pitch, value, element_bytes, width, height, stream,         \
                                  default_stream, driver::Wait::Never);                            \
        })

SIMGPU_MEMSETS(D8, unsigned char, 1)
SIMGPU_MEMSETS(D16, unsigned short, 2)
SIMGPU_MEMSETS(D32, unsigned int, 4)
SIMGPU_MEMSETS_2D(D8, unsigned char, 1)
SIMGPU_MEMSETS_2D(D16, unsigned short, 2)
SIMGPU_MEMSETS_2D(D32, unsigned int, 4)
#undef SIMGPU_MEMSETS
#undef SIMGPU_MEMSETS_2D
