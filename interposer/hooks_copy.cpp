// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

#include "interposer/copy_shapes.hpp"

#include <vector>

// Copies and fills.

namespace libswap {
namespace {

constexpr auto kHost = CopySide::Host;
constexpr auto kDevice = CopySide::Device;
constexpr auto kUnified = CopySide::Unified;
constexpr auto kArray = CopySide::Array;

/// A batch is one call with many copies, in no order among themselves.
CUresult batch(Engine& engine, const CUdeviceptr* dsts, const CUdeviceptr* srcs,
               const std::size_t* sizes, std::size_t count, CUstream stream, RealCall real) {
    if (!dsts || !srcs || !sizes) return real();
    std::vector<CopyRequest> requests;
    requests.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        requests.push_back(
            linear_copy(kUnified, dsts[i], kUnified, srcs[i], sizes[i], true, stream));
    return engine.copies(requests.data(), requests.size(), real);
}

CUresult batch_3d(Engine& engine, const CUDA_MEMCPY3D_BATCH_OP* ops, std::size_t count,
                  CUstream stream, RealCall real) {
    if (!ops) return real();
    std::vector<CopyRequest> requests;
    requests.reserve(count);
    for (std::size_t i = 0; i < count; ++i) requests.push_back(copy_3d_batched(ops[i], stream));
    return engine.copies(requests.data(), requests.size(), real);
}

}  // namespace
}  // namespace libswap

LIBSWAP_HOOK_TWINS(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
                   (dst, src, bytes),
                   return engine.copy(linear_copy(kUnified, dst, kUnified, src, bytes, false,
                                                  default_stream),
                                      real);)

LIBSWAP_HOOK_TWINS(
    cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
    (dst, src, bytes, stream),
    return engine.copy(linear_copy(kUnified, dst, kUnified, src, bytes, true, on(stream)), real);)

LIBSWAP_HOOK_TWINS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void* src, size_t bytes),
                   (dst, src, bytes),
                   return engine.copy(linear_copy(kDevice, dst, kHost, address_of(src), bytes,
                                                  false, default_stream),
                                      real);)

LIBSWAP_HOOK_TWINS(cuMemcpyHtoDAsync_v2, _ptsz,
                   (CUdeviceptr dst, const void* src, size_t bytes, CUstream stream),
                   (dst, src, bytes, stream),
                   return engine.copy(linear_copy(kDevice, dst, kHost, address_of(src), bytes, true,
                                                  on(stream)),
                                      real);)

LIBSWAP_HOOK_TWINS(cuMemcpyDtoH_v2, _ptds, (void* dst, CUdeviceptr src, size_t bytes),
                   (dst, src, bytes),
                   return engine.copy(linear_copy(kHost, address_of(dst), kDevice, src, bytes,
                                                  false, default_stream),
                                      real);)

LIBSWAP_HOOK_TWINS(cuMemcpyDtoHAsync_v2, _ptsz,
                   (void* dst, CUdeviceptr src, size_t bytes, CUstream stream),
                   (dst, src, bytes, stream),
                   return engine.copy(linear_copy(kHost, address_of(dst), kDevice, src, bytes, true,
                                                  on(stream)),
                                      real);)

LIBSWAP_HOOK_TWINS(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
                   (dst, src, bytes),
                   return engine.copy(linear_copy(kDevice, dst, kDevice, src, bytes, false,
                                                  default_stream),
                                      real);)

LIBSWAP_HOOK_TWINS(
    cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
    (dst, src, bytes, stream),
    return engine.copy(linear_copy(kDevice, dst, kDevice, src, bytes, true, on(stream)), real);)

LIBSWAP_HOOK_TWINS(
    cuMemcpyPeer, _ptds,
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes),
    (dst, dst_context, src, src_context, bytes),
    return engine.copy(linear_copy(kDevice, dst, kDevice, src, bytes, false, default_stream),
                       real);)

LIBSWAP_HOOK_TWINS(
    cuMemcpyPeerAsync, _ptsz,
    (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
     CUstream stream),
    (dst, dst_context, src, src_context, bytes, stream),
    return engine.copy(linear_copy(kDevice, dst, kDevice, src, bytes, true, on(stream)), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* shape), (shape),
                   if (!shape) return real();
                   return engine.copy(copy_2d(*shape, false, default_stream), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* shape), (shape),
                   if (!shape) return real();
                   return engine.copy(copy_2d(*shape, false, default_stream), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* shape, CUstream stream),
                   (shape, stream), if (!shape) return real();
                   return engine.copy(copy_2d(*shape, true, on(stream)), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* shape), (shape),
                   if (!shape) return real();
                   return engine.copy(copy_3d(*shape, false, default_stream), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* shape, CUstream stream),
                   (shape, stream), if (!shape) return real();
                   return engine.copy(copy_3d(*shape, true, on(stream)), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* shape), (shape),
                   if (!shape) return real();
                   return engine.copy(copy_3d_peer(*shape, false, default_stream), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER* shape, CUstream stream),
                   (shape, stream), if (!shape) return real();
                   return engine.copy(copy_3d_peer(*shape, true, on(stream)), real);)

LIBSWAP_HOOK_TWINS(
    cuMemcpyAtoD_v2, _ptds, (CUdeviceptr dst, CUarray src, size_t offset, size_t bytes),
    (dst, src, offset, bytes),
    return engine.copy(linear_copy(kDevice, dst, kArray, 0, bytes, false, default_stream), real);)

LIBSWAP_HOOK_TWINS(
    cuMemcpyDtoA_v2, _ptds, (CUarray dst, size_t offset, CUdeviceptr src, size_t bytes),
    (dst, offset, src, bytes),
    return engine.copy(linear_copy(kArray, 0, kDevice, src, bytes, false, default_stream), real);)

LIBSWAP_HOOK_TWINS(cuMemcpyBatchAsync, _ptsz,
                   (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                    CUmemcpyAttributes* attributes, size_t* attribute_indices,
                    size_t attribute_count, size_t* failed, CUstream stream),
                   (dsts, srcs, sizes, count, attributes, attribute_indices, attribute_count,
                    failed, stream),
                   return batch(engine, dsts, srcs, sizes, count, on(stream), real);)

LIBSWAP_HOOK_TWINS(cuMemcpyBatchAsync_v2, _ptsz,
                   (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                    CUmemcpyAttributes* attributes, size_t* attribute_indices,
                    size_t attribute_count, CUstream stream),
                   (dsts, srcs, sizes, count, attributes, attribute_indices, attribute_count,
                    stream),
                   return batch(engine, dsts, srcs, sizes, count, on(stream), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy3DBatchAsync, _ptsz,
                   (size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed,
                    unsigned long long flags, CUstream stream),
                   (count, ops, failed, flags, stream),
                   return batch_3d(engine, ops, count, on(stream), real);)

LIBSWAP_HOOK_TWINS(cuMemcpy3DBatchAsync_v2, _ptsz,
                   (size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long flags,
                    CUstream stream),
                   (count, ops, flags, stream),
                   return batch_3d(engine, ops, count, on(stream), real);)

#define LIBSWAP_FILL_HOOKS(bits, Value)                                                           \
    LIBSWAP_HOOK_TWINS(                                                                           \
        cuMemsetD##bits##_v2, _ptds, (CUdeviceptr dst, Value value, size_t count),                \
        (dst, value, count),                                                                      \
        return engine.memset(fill(dst, sizeof(Value), count, false, default_stream), real);)      \
    LIBSWAP_HOOK_TWINS(                                                                           \
        cuMemsetD##bits##Async, _ptsz,                                                            \
        (CUdeviceptr dst, Value value, size_t count, CUstream stream),                            \
        (dst, value, count, stream),                                                              \
        return engine.memset(fill(dst, sizeof(Value), count, true, on(stream)), real);)           \
    LIBSWAP_HOOK_TWINS(                                                                           \
        cuMemsetD2D##bits##_v2, _ptds,                                                            \
        (CUdeviceptr dst, size_t pitch, Value value, size_t width, size_t height),                \
        (dst, pitch, value, width, height),                                                       \
        return engine.memset(                                                                     \
            fill_2d(dst, pitch, sizeof(Value), width, height, false, default_stream), real);)     \
    LIBSWAP_HOOK_TWINS(                                                                           \
        cuMemsetD2D##bits##Async, _ptsz,                                                          \
        (CUdeviceptr dst, size_t pitch, Value value, size_t width, size_t height,                 \
         CUstream stream),                                                                        \
        (dst, pitch, value, width, height, stream),                                               \
        return engine.memset(fill_2d(dst, pitch, sizeof(Value), width, height, true, on(stream)), \
                             real);)

LIBSWAP_FILL_HOOKS(8, unsigned char)
LIBSWAP_FILL_HOOKS(16, unsigned short)
LIBSWAP_FILL_HOOKS(32, unsigned int)
