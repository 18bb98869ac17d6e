// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/copies.hpp"

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"

namespace simgpu::driver {

namespace {

/// Bytes from the first to the last that a rectangle touches.
std::uint64_t extent(std::uint64_t width, std::uint64_t height, std::uint64_t depth,
                     std::uint64_t pitch, std::uint64_t slice_pitch) {
    return width + (height - 1) * pitch + (depth - 1) * slice_pitch;
}

CUresult check_side(std::uint64_t va, std::uint64_t bytes, Side side, int device) {
    if (va == 0) return CUDA_ERROR_INVALID_VALUE;
    if (side == Side::Host) return CUDA_SUCCESS;
    PointerInfo info = machine().memory().find(va, device);
    switch (info.kind) {
        case PointerKind::None:
            return side == Side::Device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
        case PointerKind::Device:
            return bytes <= info.bytes - (va - info.base) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        default:
            return CUDA_SUCCESS;
    }
}

bool wants_sync(std::uint64_t va) {
    auto allocation = allocations().containing(va);
    return allocation && allocation->sync_memops;
}

}  // namespace

CUresult check_copy(const CopyRequest& request, Side dst, Side src, int device) {
    std::uint64_t dst_bytes = extent(request.width, request.height, request.depth,
                                     request.dst_pitch, request.dst_slice_pitch);
    std::uint64_t src_bytes = extent(request.width, request.height, request.depth,
                                     request.src_pitch, request.src_slice_pitch);
    SIMGPU_TRY(check_side(request.dst, dst_bytes, dst, device));
    return check_side(request.src, src_bytes, src, device);
}

namespace {

/// `words`: as the program described it; null where that was only two addresses.
CUresult submit(const CopyRequest& request, Side dst, Side src, const CUDA_MEMCPY3D* words,
                CUstream stream, DefaultStream default_stream, Wait wait) {
    StreamRef ref;
    if (wait == Wait::UntilDone) {
        SIMGPU_TRY(find_stream_for_wait(stream, default_stream, ref));
    } else {
        SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    }
    if (request.bytes() == 0) return CUDA_SUCCESS;
    SIMGPU_TRY(check_copy(request, dst, src, ref.context->gpu.ordinal));
    if (ref.capture != nullptr) {
        const CUDA_MEMCPY3D described = words != nullptr ? *words : describe(request, dst, src);
        return capture_task(ref, CopyTask{described, request, ref.context});
    }
    if (wait == Wait::Never) return ref->copy_async(request);
    SIMGPU_TRY(ref->copy(request));
    if (wants_sync(request.dst) || wants_sync(request.src)) return ref->synchronize();
    return CUDA_SUCCESS;
}

}  // namespace

CUresult submit_copy(const CopyRequest& request, Side dst, Side src, CUstream stream,
                     DefaultStream default_stream, Wait wait) {
    return submit(request, dst, src, nullptr, stream, default_stream, wait);
}

CUresult submit_copy(const CUDA_MEMCPY3D& words, CUstream stream, DefaultStream default_stream,
                     Wait wait) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    const auto request = request_of(words);
    if (!request) return request.error();
    return submit(*request, side_of(words.dstMemoryType), side_of(words.srcMemoryType), &words,
                  stream, default_stream, wait);
}

CUresult check_memset(const MemsetRequest& request, int device) {
    const std::uint64_t row_bytes = request.width * request.element_bytes;
    if (request.dst % request.element_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
    if (row_bytes == 0 || request.height == 0) return CUDA_SUCCESS;
    if (request.height > 1 && request.pitch < row_bytes) return CUDA_ERROR_INVALID_VALUE;
    return check_side(request.dst, extent(row_bytes, request.height, 1, request.pitch, 0),
                      Side::Device, device);
}

CUresult submit_memset(const MemsetRequest& request, CUstream stream, DefaultStream default_stream,
                       Wait wait) {
    StreamRef ref;
    if (wait == Wait::UntilDone) {
        SIMGPU_TRY(find_stream_for_wait(stream, default_stream, ref));
    } else {
        SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    }
    SIMGPU_TRY(check_memset(request, ref.context->gpu.ordinal));
    if (request.width * request.height == 0) return CUDA_SUCCESS;
    if (ref.capture != nullptr) return capture_task(ref, MemsetTask{request, ref.context});
    return wait == Wait::Never ? ref->memset_async(request) : ref->memset(request);
}

}  // namespace simgpu::driver
