// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Tensor map descriptors: 128 bytes that hold what they were made of, the address of the tensor in
// the first eight as on the device. No instruction here reads them.

#include <cstring>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {
namespace {

constexpr cuuint32_t kMaxRank = 5, kMinSlicedRank = 3, kMaxBox = 256, kMaxElementStride = 8,
                     kMaxChannels = 256, kMaxPixels = 1024;
constexpr cuuint64_t kMaxDimension = std::uint64_t{1} << 32, kMaxStride = std::uint64_t{1} << 40,
                     kAlignment = 16, kWideAlignment = 32;
/// In the second word: these bytes are a descriptor.
constexpr std::uint64_t kMark = 0x70616D20726F736E;

/// What all forms have in common.
struct Tensor {
    CUtensorMapDataType type;
    cuuint32_t rank;
    void* address;
    const cuuint64_t* dimensions;
    const cuuint64_t* strides;
    const cuuint32_t* element_strides;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

bool packed_apart(CUtensorMapDataType type) {
    return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ||
           type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

/// 0 for packed types, whose elements are parts of bytes, and for no type at all.
unsigned element_bytes(CUtensorMapDataType type) {
    switch (type) {
        case CU_TENSOR_MAP_DATA_TYPE_UINT8:
            return 1;
        case CU_TENSOR_MAP_DATA_TYPE_UINT16:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
            return 2;
        case CU_TENSOR_MAP_DATA_TYPE_UINT32:
        case CU_TENSOR_MAP_DATA_TYPE_INT32:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
        case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
        case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
            return 4;
        case CU_TENSOR_MAP_DATA_TYPE_UINT64:
        case CU_TENSOR_MAP_DATA_TYPE_INT64:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
            return 8;
        default:
            return 0;
    }
}

bool is_float(CUtensorMapDataType type) {
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

bool valid_enums(const Tensor& tensor) {
    return tensor.type >= CU_TENSOR_MAP_DATA_TYPE_UINT8 &&
           tensor.type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B &&
           tensor.interleave >= CU_TENSOR_MAP_INTERLEAVE_NONE &&
           tensor.interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
           tensor.swizzle >= CU_TENSOR_MAP_SWIZZLE_NONE &&
           tensor.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
           tensor.promotion >= CU_TENSOR_MAP_L2_PROMOTION_NONE &&
           tensor.promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
           tensor.fill >= CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE &&
           tensor.fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA &&
           (tensor.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || is_float(tensor.type));
}

cuuint64_t alignment_of(const Tensor& tensor) {
    const bool wide =
        tensor.interleave == CU_TENSOR_MAP_INTERLEAVE_32B || packed_apart(tensor.type);
    return wide ? kWideAlignment : kAlignment;
}

bool valid_shape(const Tensor& tensor) {
    const cuuint64_t alignment = alignment_of(tensor);
    for (cuuint32_t i = 0; i < tensor.rank; ++i) {
        if (tensor.dimensions[i] == 0 || tensor.dimensions[i] > kMaxDimension) return false;
        const cuuint32_t step = tensor.element_strides[i];
        // Without interleaving nothing looks at the first.
        const bool counts = i != 0 || tensor.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
        if (counts && (step == 0 || step > kMaxElementStride)) return false;
        if (i + 1 == tensor.rank) break;
        if (tensor.strides[i] % alignment != 0 || tensor.strides[i] >= kMaxStride) return false;
    }
    return true;
}

bool valid_packing(const Tensor& tensor) {
    constexpr cuuint64_t kPackedRow = 128;
    if (packed_apart(tensor.type) && tensor.dimensions[0] % kPackedRow != 0) return false;
    return tensor.type != CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B || tensor.dimensions[0] % 2 == 0;
}

CUresult check(const Tensor& tensor, cuuint32_t least_rank) {
    if (tensor.dimensions == nullptr || tensor.element_strides == nullptr ||
        (tensor.rank > 1 && tensor.strides == nullptr) || !valid_enums(tensor)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool sliced = tensor.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
    const cuuint32_t least = sliced ? kMinSlicedRank : least_rank;
    if (tensor.rank < least || tensor.rank > kMaxRank) return CUDA_ERROR_INVALID_VALUE;
    const auto address = reinterpret_cast<std::uint64_t>(tensor.address);
    if (address == 0 || address % alignment_of(tensor) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (tensor.interleave == CU_TENSOR_MAP_INTERLEAVE_32B &&
        tensor.swizzle != CU_TENSOR_MAP_SWIZZLE_32B) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return valid_shape(tensor) && valid_packing(tensor) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// Longest inner row of a box, in bytes.
unsigned swizzle_span(CUtensorMapSwizzle swizzle) {
    switch (swizzle) {
        case CU_TENSOR_MAP_SWIZZLE_32B:
            return 32;
        case CU_TENSOR_MAP_SWIZZLE_64B:
            return 64;
        default:
            return 128;
    }
}

CUresult check_inner(const Tensor& tensor, cuuint32_t elements) {
    if (tensor.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return CUDA_SUCCESS;
    if (packed_apart(tensor.type)) return elements == 128 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    const unsigned bytes =
        element_bytes(tensor.type) != 0 ? elements * element_bytes(tensor.type) : elements / 2;
    if (bytes % kAlignment != 0) return CUDA_ERROR_INVALID_VALUE;
    const bool swizzled = tensor.swizzle != CU_TENSOR_MAP_SWIZZLE_NONE;
    return swizzled && bytes > swizzle_span(tensor.swizzle) ? CUDA_ERROR_INVALID_VALUE
                                                            : CUDA_SUCCESS;
}

/// 0: the address; 1: the mark; 2: the small fields; 3 and on: dimensions and strides.
void write(CUtensorMap* out, const Tensor& tensor) {
    *out = {};
    cuuint64_t* words = out->opaque;
    words[0] = reinterpret_cast<std::uint64_t>(tensor.address);
    words[1] = kMark;
    words[2] = std::uint64_t{tensor.rank} | static_cast<std::uint64_t>(tensor.type) << 8 |
               static_cast<std::uint64_t>(tensor.interleave) << 16 |
               static_cast<std::uint64_t>(tensor.swizzle) << 24 |
               static_cast<std::uint64_t>(tensor.promotion) << 32 |
               static_cast<std::uint64_t>(tensor.fill) << 40;
    std::memcpy(words + 3, tensor.dimensions, tensor.rank * sizeof(cuuint64_t));
    std::memcpy(words + 3 + kMaxRank, tensor.strides, (tensor.rank - 1) * sizeof(cuuint64_t));
}

CUresult encode_tiled(CUtensorMap* out, const Tensor& tensor, const cuuint32_t* box) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || box == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check(tensor, 1));
    for (cuuint32_t i = 0; i < tensor.rank; ++i) {
        if (box[i] == 0 || box[i] > kMaxBox) return CUDA_ERROR_INVALID_VALUE;
    }
    SIMGPU_TRY(check_inner(tensor, box[0]));
    write(out, tensor);
    return CUDA_SUCCESS;
}

CUresult encode_im2col(CUtensorMap* out, const Tensor& tensor, bool corners, cuuint32_t channels,
                       cuuint32_t pixels) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || !corners) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check(tensor, kMinSlicedRank));
    if (channels == 0 || channels > kMaxChannels || pixels == 0 || pixels > kMaxPixels)
        return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check_inner(tensor, channels));
    write(out, tensor);
    return CUDA_SUCCESS;
}

CUresult replace_address(CUtensorMap* map, void* address) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    const auto va = reinterpret_cast<std::uint64_t>(address);
    if (map == nullptr || map->opaque[1] != kMark || va == 0 || va % kAlignment != 0)
        return CUDA_ERROR_INVALID_VALUE;
    map->opaque[0] = va;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuTensorMapEncodeTiled,
            (CUtensorMap * out, CUtensorMapDataType type, cuuint32_t rank, void* address,
             const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
             const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
             CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
             CUtensorMapFloatOOBfill fill),
            {
                return driver::encode_tiled(out,
                                            {type, rank, address, dimensions, strides,
                                             element_strides, interleave, swizzle, promotion, fill},
                                            box);
            })
SIMGPU_CALL(cuTensorMapEncodeIm2col,
            (CUtensorMap * out, CUtensorMapDataType type, cuuint32_t rank, void* address,
             const cuuint64_t* dimensions, const cuuint64_t* strides, const int* lower,
             const int* upper, cuuint32_t channels, cuuint32_t pixels,
             const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
             CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
             CUtensorMapFloatOOBfill fill),
            {
                return driver::encode_im2col(
                    out,
                    {type, rank, address, dimensions, strides, element_strides, interleave, swizzle,
                     promotion, fill},
                    lower != nullptr && upper != nullptr, channels, pixels);
            })
SIMGPU_CALL(cuTensorMapEncodeIm2colWide,
            (CUtensorMap * out, CUtensorMapDataType type, cuuint32_t rank, void* address,
             const cuuint64_t* dimensions, const cuuint64_t* strides, int, int, cuuint32_t channels,
             cuuint32_t pixels, const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
             CUtensorMapIm2ColWideMode, CUtensorMapSwizzle swizzle,
             CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
            {
                return driver::encode_im2col(
                    out,
                    {type, rank, address, dimensions, strides, element_strides, interleave, swizzle,
                     promotion, fill},
                    true, channels, pixels);
            })
SIMGPU_CALL(cuTensorMapReplaceAddress, (CUtensorMap * map, void* address),
            { return driver::replace_address(map, address); })
