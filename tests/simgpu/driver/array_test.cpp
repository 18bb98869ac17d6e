// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Arrays, what is made of them, and copies in and out.

#include <cstring>
#include <numeric>

#include "graph_fixture.hpp"

namespace {

class Arrays : public GraphGpu {
  protected:
    static CUarray make(std::size_t width, std::size_t height, std::size_t depth,
                        unsigned flags = 0, CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT32,
                        unsigned channels = 1) {
        CUDA_ARRAY3D_DESCRIPTOR descriptor{width, height, depth, format, channels, flags};
        CUarray array = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuArray3DCreate(&array, &descriptor));
        return array;
    }

    static CUDA_MEMCPY3D into(CUarray array, const void* host, std::size_t width,
                              std::size_t height, std::size_t depth) {
        CUDA_MEMCPY3D copy{};
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = host;
        copy.srcPitch = width;
        copy.srcHeight = height;
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = array;
        copy.WidthInBytes = width;
        copy.Height = height;
        copy.Depth = depth;
        return copy;
    }

    static CUDA_MEMCPY3D out_of(CUarray array, void* host, std::size_t width, std::size_t height,
                                std::size_t depth) {
        CUDA_MEMCPY3D copy{};
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = array;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = host;
        copy.dstPitch = width;
        copy.dstHeight = height;
        copy.WidthInBytes = width;
        copy.Height = height;
        copy.Depth = depth;
        return copy;
    }
};

}  // namespace

TEST_F(Arrays, KeepWhatIsCopiedIn) {
    constexpr std::size_t kWidth = 37, kHeight = 5, kDepth = 3;
    std::vector<unsigned> in(kWidth * kHeight * kDepth);
    std::vector<unsigned> out(in.size());
    std::iota(in.begin(), in.end(), 100);
    CUarray array = make(kWidth, kHeight, kDepth);
    CUDA_MEMCPY3D copy = into(array, in.data(), kWidth * 4, kHeight, kDepth);
    ASSERT_CU(cuMemcpy3D(&copy));
    copy = out_of(array, out.data(), kWidth * 4, kHeight, kDepth);
    ASSERT_CU(cuMemcpy3D(&copy));
    EXPECT_EQ(in, out);
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
    EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
}

TEST_F(Arrays, PartsAreCopiedByPlace) {
    std::vector<unsigned> in(64 * 8);
    std::iota(in.begin(), in.end(), 0);
    CUarray array = make(64, 8, 0);
    CUDA_MEMCPY3D copy = into(array, in.data(), 64 * 4, 8, 1);
    ASSERT_CU(cuMemcpy3D(&copy));
    unsigned part[2][3] = {};
    CUDA_MEMCPY2D piece{};
    piece.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    piece.srcArray = array;
    piece.srcXInBytes = 10 * 4;
    piece.srcY = 4;
    piece.dstMemoryType = CU_MEMORYTYPE_HOST;
    piece.dstHost = part;
    piece.dstPitch = sizeof part[0];
    piece.WidthInBytes = sizeof part[0];
    piece.Height = 2;
    ASSERT_CU(cuMemcpy2D(&piece));
    EXPECT_EQ(4u * 64 + 10, part[0][0]);
    EXPECT_EQ(5u * 64 + 12, part[1][2]);
    piece.srcXInBytes = 62 * 4;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&piece));
    piece.srcXInBytes = 0;
    piece.srcY = 7;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&piece));
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
}

TEST_F(Arrays, OfOneDimensionAreCopiedAtAnOffset) {
    const unsigned in[4] = {1, 2, 3, 4};
    unsigned out[2] = {};
    CUarray array = make(16, 0, 0);
    CUarray twin = make(16, 0, 0);
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyHtoA(array, 8, in, sizeof in));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyAtoH(out, array, 12, sizeof out));
    EXPECT_EQ(2u, out[0]);
    EXPECT_EQ(3u, out[1]);
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyAtoD(memory, array, 8, 8));
    EXPECT_EQ(1u, word_at(memory));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyAtoA(twin, 0, array, 8, 16));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyDtoA(twin, 0, memory + 4, 4));
    // Copies within the device return before they are done.
    EXPECT_CU(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyAtoHAsync(out, twin, 0, 8, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(2u, out[0]);
    EXPECT_EQ(2u, out[1]);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(array, 60, in, 8));
}

TEST_F(Arrays, TellTheirShape) {
    CUarray array = make(32, 16, 4, CUDA_ARRAY3D_LAYERED, CU_AD_FORMAT_HALF, 2);
    CUDA_ARRAY3D_DESCRIPTOR shown{};
    EXPECT_CU(CUDA_SUCCESS, cuArray3DGetDescriptor(&shown, array));
    EXPECT_EQ(32u, shown.Width);
    EXPECT_EQ(4u, shown.Depth);
    EXPECT_EQ(CU_AD_FORMAT_HALF, shown.Format);
    EXPECT_EQ(2u, shown.NumChannels);
    CUDA_ARRAY_DESCRIPTOR flat{};
    EXPECT_CU(CUDA_SUCCESS, cuArrayGetDescriptor(&flat, array));
    EXPECT_EQ(16u, flat.Height);
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
    CUDA_ARRAY3D_DESCRIPTOR wrong{32, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &wrong));
    wrong = {32, 16, 0, CU_AD_FORMAT_FLOAT, 3, 0};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &wrong));
    wrong = {0, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &wrong));
    wrong = {32, 16, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &wrong));
}

TEST_F(Arrays, TakeMemoryOfTheDevice) {
    std::size_t before = 0;
    std::size_t during = 0;
    std::size_t after = 0;
    ASSERT_CU(cuMemGetInfo(&before, nullptr));
    CUarray array = make(1024, 2048, 0);
    ASSERT_CU(cuMemGetInfo(&during, nullptr));
    EXPECT_LE(during + 8 * kMiB, before);
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
    ASSERT_CU(cuMemGetInfo(&after, nullptr));
    EXPECT_EQ(before, after);
}

TEST_F(Arrays, MipmappedOnesHaveLevels) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{64, 32, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
    CUmipmappedArray mipmapped = nullptr;
    ASSERT_CU(cuMipmappedArrayCreate(&mipmapped, &descriptor, 3));
    CUarray level = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR shown{};
    ASSERT_CU(cuMipmappedArrayGetLevel(&level, mipmapped, 2));
    ASSERT_CU(cuArray3DGetDescriptor(&shown, level));
    EXPECT_EQ(16u, shown.Width);
    EXPECT_EQ(8u, shown.Height);
    std::vector<unsigned> in(16 * 8, 3);
    std::vector<unsigned> out(in.size());
    CUDA_MEMCPY3D copy = into(level, in.data(), 64, 8, 1);
    EXPECT_CU(CUDA_SUCCESS, cuMemcpy3D(&copy));
    copy = out_of(level, out.data(), 64, 8, 1);
    EXPECT_CU(CUDA_SUCCESS, cuMemcpy3D(&copy));
    EXPECT_EQ(in, out);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, mipmapped, 3));
    EXPECT_CU(CUDA_SUCCESS, cuMipmappedArrayDestroy(mipmapped));
}

TEST_F(Arrays, CopiesAreCaptured) {
    CUarray array = make(16, 0, 0);
    const unsigned in[4] = {5, 6, 7, 8};
    begin();
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyHtoAAsync(array, 0, in, sizeof in, stream));
    CUgraph graph = end();
    CUDA_MEMCPY3D shown{};
    ASSERT_CU(cuGraphMemcpyNodeGetParams(nodes_of(graph)[0], &shown));
    EXPECT_EQ(CU_MEMORYTYPE_ARRAY, shown.dstMemoryType);
    EXPECT_EQ(array, shown.dstArray);
    run_once(graph);
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyAtoD(memory, array, 4, 4));
    EXPECT_EQ(6u, word_at(memory));
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
}

TEST_F(Arrays, BatchesOfCopiesMayNameThem) {
    CUarray array = make(16, 4, 0);
    ASSERT_CU(cuMemsetD32(memory, 9, 64));
    CUDA_MEMCPY3D_BATCH_OP copies[2] = {};
    copies[0].src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    copies[0].src.op.ptr.ptr = memory;
    copies[0].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    copies[0].dst.op.array.array = array;
    copies[0].extent = {16, 4, 1};
    copies[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    EXPECT_CU(CUDA_SUCCESS, cuMemcpy3DBatchAsync(1, copies, 0, stream));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_CU(CUDA_SUCCESS, cuMemcpyAtoD(second, array, 60, 4));
    EXPECT_EQ(9u, word_at(second));
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
}

TEST_F(Arrays, TexturesAndSurfacesTellWhatTheyAreOf) {
    CUarray array = make(16, 16, 0, CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC how{};
    how.filterMode = CU_TR_FILTER_MODE_POINT;
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    ASSERT_CU(cuTexObjectCreate(&texture, &resource, &how, nullptr));
    ASSERT_CU(cuSurfObjectCreate(&surface, &resource));
    CUDA_RESOURCE_DESC shown{};
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectGetResourceDesc(&shown, texture));
    EXPECT_EQ(array, shown.res.array.hArray);
    EXPECT_CU(CUDA_SUCCESS, cuSurfObjectGetResourceDesc(&shown, surface));
    EXPECT_EQ(array, shown.res.array.hArray);
    CUDA_TEXTURE_DESC how_shown{};
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectGetTextureDesc(&how_shown, texture));
    EXPECT_EQ(CU_TR_FILTER_MODE_POINT, how_shown.filterMode);
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(texture));
    EXPECT_CU(CUDA_SUCCESS, cuSurfObjectDestroy(surface));
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {memory, CU_AD_FORMAT_FLOAT, 1, kWords * 4};
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectCreate(&texture, &resource, &how, nullptr));
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(texture));
    resource.res.linear.devPtr = memory + 4;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how, nullptr));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surface, &resource));
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
}

using TensorMaps = GraphGpu;

TEST_F(TensorMaps, HoldTheirTensorsAddress) {
    CUtensorMap map{};
    const cuuint64_t dimensions[2] = {64, 16};
    const cuuint64_t strides[1] = {256};
    const cuuint32_t box[2] = {16, 8};
    const cuuint32_t steps[2] = {1, 1};
    const auto encode = [&](CUdeviceptr at, const cuuint32_t* boxes) {
        return cuTensorMapEncodeTiled(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(at), dimensions,
            strides, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    ASSERT_CU(encode(memory, box));
    EXPECT_EQ(memory, map.opaque[0]);
    EXPECT_CU(CUDA_SUCCESS, cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(second)));
    EXPECT_EQ(second, map.opaque[0]);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(memory + 4, box));
    const cuuint32_t wide[2] = {32, 8};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(memory, wide));
    const cuuint32_t huge[2] = {16, 512};
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(memory, huge));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(0, box));
}
