// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/copy_shapes.hpp"

namespace libswap {
namespace {

/// One side of a 2D or 3D copy as the driver describes it.
struct Side {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    std::size_t x, y, z, pitch, height;
};

struct Extent {
    std::size_t width, height, depth;
};

CopySide side_of(CUmemorytype type) noexcept {
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            return CopySide::Host;
        case CU_MEMORYTYPE_DEVICE:
            return CopySide::Device;
        case CU_MEMORYTYPE_ARRAY:
            return CopySide::Array;
        default:
            return CopySide::Unified;
    }
}

Rows rows_of(const Side& side, const Extent& extent) noexcept {
    const std::size_t pitch = side.pitch ? side.pitch : extent.width;
    const std::size_t slice = pitch * (side.height ? side.height : extent.height);
    const std::uint64_t base =
        side.type == CU_MEMORYTYPE_HOST ? address_of(side.host) : side.device;
    return {base + side.x + side.y * pitch + side.z * slice,
            extent.width,
            extent.height,
            pitch,
            extent.depth,
            slice};
}

CopyRequest describe(const Side& dst, const Side& src, const Extent& extent, bool async,
                     CUstream stream) noexcept {
    CopyRequest request;
    request.dst_side = side_of(dst.type);
    request.src_side = side_of(src.type);
    request.dst = rows_of(dst, extent);
    request.src = rows_of(src, extent);
    request.async = async;
    request.stream = stream;
    return request;
}

template <class Shape>
CopyRequest describe_3d(const Shape& s, bool async, CUstream stream) noexcept {
    return describe({s.dstMemoryType, s.dstHost, s.dstDevice, s.dstXInBytes, s.dstY, s.dstZ,
                     s.dstPitch, s.dstHeight},
                    {s.srcMemoryType, s.srcHost, s.srcDevice, s.srcXInBytes, s.srcY, s.srcZ,
                     s.srcPitch, s.srcHeight},
                    {s.WidthInBytes, s.Height, s.Depth}, async, stream);
}

}  // namespace

CopyRequest copy_2d(const CUDA_MEMCPY2D& s, bool async, CUstream stream) noexcept {
    return describe(
        {s.dstMemoryType, s.dstHost, s.dstDevice, s.dstXInBytes, s.dstY, 0, s.dstPitch, 0},
        {s.srcMemoryType, s.srcHost, s.srcDevice, s.srcXInBytes, s.srcY, 0, s.srcPitch, 0},
        {s.WidthInBytes, s.Height, 1}, async, stream);
}

CopyRequest copy_3d(const CUDA_MEMCPY3D& shape, bool async, CUstream stream) noexcept {
    return describe_3d(shape, async, stream);
}

CopyRequest copy_3d_batched(const CUDA_MEMCPY3D_BATCH_OP& op, CUstream stream) noexcept {
    const auto side = [](const CUmemcpy3DOperand& operand) {
        if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER)
            return Side{CU_MEMORYTYPE_ARRAY, nullptr, 0, 0, 0, 0, 0, 0};
        const auto& pointer = operand.op.ptr;
        return Side{CU_MEMORYTYPE_UNIFIED, nullptr, pointer.ptr, 0, 0, 0, pointer.rowLength,
                    pointer.layerHeight};
    };
    return describe(side(op.dst), side(op.src),
                    {op.extent.width, op.extent.height, op.extent.depth}, true, stream);
}

CopyRequest copy_3d_peer(const CUDA_MEMCPY3D_PEER& shape, bool async, CUstream stream) noexcept {
    return describe_3d(shape, async, stream);
}

}  // namespace libswap
