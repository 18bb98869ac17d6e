// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Rectangles: from the driver's structures to addresses and pitches, and back.

#include "simgpu/driver/arrays.hpp"
#include "simgpu/driver/copies.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {

namespace {

struct Operand {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    CUarray array;
    std::uint64_t x, y, z, pitch, height;
};

/// An array as the memory that it is; the rectangle must lie inside of it.
CUresult resolve_array(Operand& operand, std::uint64_t width, std::uint64_t height,
                       std::uint64_t depth) {
    std::shared_ptr<Array> array;
    SIMGPU_TRY(find_array(operand.array, array));
    const bool inside = operand.x + width <= array->row_bytes() &&
                        operand.y + height <= array->rows() && operand.z + depth <= array->slices();
    if (!inside) return CUDA_ERROR_INVALID_VALUE;
    operand.type = CU_MEMORYTYPE_DEVICE;
    operand.device = array->va;
    operand.pitch = array->row_bytes();
    operand.height = array->rows();
    return CUDA_SUCCESS;
}

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
        if (operand->type == CU_MEMORYTYPE_ARRAY) {
            const auto status = resolve_array(*operand, width, height, depth);
            if (status != CUDA_SUCCESS) return failed(status);
            continue;
        }
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

}  // namespace

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

CUDA_MEMCPY3D widen(const CUDA_MEMCPY2D& copy) {
    CUDA_MEMCPY3D wide{};
    wide.srcXInBytes = copy.srcXInBytes;
    wide.srcY = copy.srcY;
    wide.srcMemoryType = copy.srcMemoryType;
    wide.srcHost = copy.srcHost;
    wide.srcDevice = copy.srcDevice;
    wide.srcArray = copy.srcArray;
    wide.srcPitch = copy.srcPitch;
    wide.dstXInBytes = copy.dstXInBytes;
    wide.dstY = copy.dstY;
    wide.dstMemoryType = copy.dstMemoryType;
    wide.dstHost = copy.dstHost;
    wide.dstDevice = copy.dstDevice;
    wide.dstArray = copy.dstArray;
    wide.dstPitch = copy.dstPitch;
    wide.WidthInBytes = copy.WidthInBytes;
    wide.Height = copy.Height;
    wide.Depth = 1;
    return wide;
}

CUDA_MEMCPY3D widen(const CUDA_MEMCPY3D_PEER& copy) {
    CUDA_MEMCPY3D wide{};
    wide.srcXInBytes = copy.srcXInBytes;
    wide.srcY = copy.srcY;
    wide.srcZ = copy.srcZ;
    wide.srcLOD = copy.srcLOD;
    wide.srcMemoryType = copy.srcMemoryType;
    wide.srcHost = copy.srcHost;
    wide.srcDevice = copy.srcDevice;
    wide.srcArray = copy.srcArray;
    wide.srcPitch = copy.srcPitch;
    wide.srcHeight = copy.srcHeight;
    wide.dstXInBytes = copy.dstXInBytes;
    wide.dstY = copy.dstY;
    wide.dstZ = copy.dstZ;
    wide.dstLOD = copy.dstLOD;
    wide.dstMemoryType = copy.dstMemoryType;
    wide.dstHost = copy.dstHost;
    wide.dstDevice = copy.dstDevice;
    wide.dstArray = copy.dstArray;
    wide.dstPitch = copy.dstPitch;
    wide.dstHeight = copy.dstHeight;
    wide.WidthInBytes = copy.WidthInBytes;
    wide.Height = copy.Height;
    wide.Depth = copy.Depth;
    return wide;
}

namespace {

/// Bytes of what a batch's copy counts: the elements of an array that takes part, else bytes.
CUresult unit_of(const CUDA_MEMCPY3D_BATCH_OP& copy, std::uint64_t& out) {
    out = 1;
    for (const CUmemcpy3DOperand* side : {&copy.dst, &copy.src}) {
        if (side->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) continue;
        std::shared_ptr<Array> array;
        SIMGPU_TRY(find_array(side->op.array.array, array));
        out = array->element_bytes();
    }
    return CUDA_SUCCESS;
}

/// One side in a structure's fields, which differ in nothing but their names.
CUresult place(const CUmemcpy3DOperand& side, const CUextent3D& extent, std::uint64_t unit,
               Operand& out) {
    out = {};
    if (side.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        const auto& array = side.op.array;
        out.type = CU_MEMORYTYPE_ARRAY;
        out.array = array.array;
        out.x = array.offset.x * unit;
        out.y = array.offset.y;
        out.z = array.offset.z;
        return CUDA_SUCCESS;
    }
    if (side.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_ERROR_INVALID_VALUE;
    const auto& pointer = side.op.ptr;
    out.type = CU_MEMORYTYPE_UNIFIED;
    out.device = pointer.ptr;
    // 0 means without gaps.
    out.pitch = (pointer.rowLength != 0 ? pointer.rowLength : extent.width) * unit;
    out.height = pointer.layerHeight != 0 ? pointer.layerHeight : extent.height;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult widen(const CUDA_MEMCPY3D_BATCH_OP& copy, CUDA_MEMCPY3D& out) {
    std::uint64_t unit = 1;
    Operand dst{};
    Operand src{};
    SIMGPU_TRY(unit_of(copy, unit));
    SIMGPU_TRY(place(copy.dst, copy.extent, unit, dst));
    SIMGPU_TRY(place(copy.src, copy.extent, unit, src));
    out = {};
    out.dstMemoryType = dst.type;
    out.dstDevice = dst.device;
    out.dstArray = dst.array;
    out.dstXInBytes = dst.x;
    out.dstY = dst.y;
    out.dstZ = dst.z;
    out.dstPitch = dst.pitch;
    out.dstHeight = dst.height;
    out.srcMemoryType = src.type;
    out.srcDevice = src.device;
    out.srcArray = src.array;
    out.srcXInBytes = src.x;
    out.srcY = src.y;
    out.srcZ = src.z;
    out.srcPitch = src.pitch;
    out.srcHeight = src.height;
    out.WidthInBytes = copy.extent.width * unit;
    out.Height = copy.extent.height;
    out.Depth = copy.extent.depth;
    const bool empty = out.WidthInBytes == 0 || out.Height == 0 || out.Depth == 0;
    return empty ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

Result<CopyRequest> request_of(const CUDA_MEMCPY3D& copy) {
    if (copy.dstLOD != 0 || copy.srcLOD != 0) return failed(CUDA_ERROR_INVALID_VALUE);
    const Operand dst{copy.dstMemoryType, copy.dstHost,     copy.dstDevice,
                      copy.dstArray,      copy.dstXInBytes, copy.dstY,
                      copy.dstZ,          copy.dstPitch,    copy.dstHeight};
    const Operand src{copy.srcMemoryType, copy.srcHost,     copy.srcDevice,
                      copy.srcArray,      copy.srcXInBytes, copy.srcY,
                      copy.srcZ,          copy.srcPitch,    copy.srcHeight};
    return rectangle(dst, src, copy.WidthInBytes, copy.Height, copy.Depth);
}

}  // namespace simgpu::driver
