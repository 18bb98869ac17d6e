// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/copies.hpp"

#include <atomic>

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/log.hpp"

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

struct Operand {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    std::uint64_t x, y, z, pitch, height;
};

CUresult address_of(const Operand& operand, std::uint64_t& out) {
    std::uint64_t base = 0;
    switch (operand.type) {
        case CU_MEMORYTYPE_HOST:
            base = reinterpret_cast<std::uint64_t>(operand.host);
            break;
        case CU_MEMORYTYPE_DEVICE:
        case CU_MEMORYTYPE_UNIFIED:
            base = operand.device;
            break;
        case CU_MEMORYTYPE_ARRAY: {
            static std::atomic<bool> said{false};
            if (!said.exchange(true)) say("copies of CUDA arrays are not built");
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (base == 0) return CUDA_ERROR_INVALID_VALUE;
    out = base + operand.x + operand.pitch * (operand.y + operand.height * operand.z);
    return CUDA_SUCCESS;
}

Result<CopyRequest> rectangle(Operand dst, Operand src, std::uint64_t width, std::uint64_t height,
                              std::uint64_t depth) {
    CopyRequest request;
    request.width = width;
    request.height = height;
    request.depth = depth;
    for (Operand* operand : {&dst, &src}) {
        bool rows = height > 1 || depth > 1;
        if (operand->pitch == 0 && !rows) operand->pitch = operand->x + width;
        if (operand->height == 0) operand->height = height;
        if (rows && operand->pitch < operand->x + width) return failed(CUDA_ERROR_INVALID_VALUE);
        if (depth > 1 && operand->height < operand->y + height)
            return failed(CUDA_ERROR_INVALID_VALUE);
    }
    if (auto status = address_of(dst, request.dst); status != CUDA_SUCCESS) return failed(status);
    if (auto status = address_of(src, request.src); status != CUDA_SUCCESS) return failed(status);
    request.dst_pitch = dst.pitch;
    request.src_pitch = src.pitch;
    request.dst_slice_pitch = dst.pitch * dst.height;
    request.src_slice_pitch = src.pitch * src.height;
    return request;
}

/// The 3D structures share their names for these.
template <typename Copy>
Result<CopyRequest> rectangle_3d(const Copy& copy) {
    if (copy.dstLOD != 0 || copy.srcLOD != 0) return failed(CUDA_ERROR_INVALID_VALUE);
    Operand dst{copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes,
                copy.dstY,          copy.dstZ,    copy.dstPitch,  copy.dstHeight};
    Operand src{copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes,
                copy.srcY,          copy.srcZ,    copy.srcPitch,  copy.srcHeight};
    return rectangle(dst, src, copy.WidthInBytes, copy.Height, copy.Depth);
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

CUresult submit_copy(const CopyRequest& request, Side dst, Side src, CUstream stream,
                     DefaultStream default_stream, Wait wait) {
    StreamRef ref;
    if (wait == Wait::UntilDone) {
        SIMGPU_TRY(find_stream_for_wait(stream, default_stream, ref));
    } else {
        SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    }
    if (request.bytes() == 0) return CUDA_SUCCESS;
    SIMGPU_TRY(check_copy(request, dst, src, ref.context->gpu.ordinal));
    if (ref.capture != nullptr)
        return capture_task(ref, CopyTask{describe(request, dst, src), request, ref.context});
    if (wait == Wait::Never) return ref->copy_async(request);
    SIMGPU_TRY(ref->copy(request));
    if (wants_sync(request.dst) || wants_sync(request.src)) return ref->synchronize();
    return CUDA_SUCCESS;
}

Side side_of(CUmemorytype type) {
    return type == CU_MEMORYTYPE_HOST     ? Side::Host
           : type == CU_MEMORYTYPE_DEVICE ? Side::Device
                                          : Side::Any;
}

CUDA_MEMCPY3D describe(const CopyRequest& request, Side dst, Side src) {
    CUDA_MEMCPY3D copy{};
    const auto on_host = [](Side side, std::uint64_t va) {
        if (side != Side::Any) return side == Side::Host;
        const PointerKind kind = machine().memory().find(va).kind;
        return kind != PointerKind::Device && kind != PointerKind::Vmm &&
               kind != PointerKind::Reserved;
    };
    if (on_host(dst, request.dst)) {
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = reinterpret_cast<void*>(request.dst);
    } else {
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = request.dst;
    }
    if (on_host(src, request.src)) {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = reinterpret_cast<const void*>(request.src);
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = request.src;
    }
    copy.dstPitch = request.dst_pitch;
    copy.srcPitch = request.src_pitch;
    copy.dstHeight = request.dst_pitch != 0 ? request.dst_slice_pitch / request.dst_pitch : 0;
    copy.srcHeight = request.src_pitch != 0 ? request.src_slice_pitch / request.src_pitch : 0;
    copy.WidthInBytes = request.width;
    copy.Height = request.height;
    copy.Depth = request.depth;
    return copy;
}

Result<CopyRequest> request_of(const CUDA_MEMCPY2D& copy) {
    Operand dst{copy.dstMemoryType, copy.dstHost,
                copy.dstDevice,     copy.dstXInBytes,
                copy.dstY,          0,
                copy.dstPitch,      0};
    Operand src{copy.srcMemoryType, copy.srcHost,
                copy.srcDevice,     copy.srcXInBytes,
                copy.srcY,          0,
                copy.srcPitch,      0};
    return rectangle(dst, src, copy.WidthInBytes, copy.Height, 1);
}

Result<CopyRequest> request_of(const CUDA_MEMCPY3D& copy) { return rectangle_3d(copy); }

Result<CopyRequest> request_of(const CUDA_MEMCPY3D_PEER& copy) { return rectangle_3d(copy); }

Result<CopyRequest> request_of(const CUDA_MEMCPY3D_BATCH_OP& copy) {
    if (copy.dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
        copy.src.type != CU_MEMCPY_OPERAND_TYPE_POINTER) {
        return failed(CUDA_ERROR_NOT_SUPPORTED);
    }
    // Lengths are in bytes for pointers; 0 means tight.
    auto operand = [&](const CUmemcpy3DOperand& side) {
        const auto& pointer = side.op.ptr;
        return Operand{CU_MEMORYTYPE_UNIFIED,
                       nullptr,
                       pointer.ptr,
                       0,
                       0,
                       0,
                       pointer.rowLength != 0 ? pointer.rowLength : copy.extent.width,
                       pointer.layerHeight};
    };
    return rectangle(operand(copy.dst), operand(copy.src), copy.extent.width, copy.extent.height,
                     copy.extent.depth);
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
