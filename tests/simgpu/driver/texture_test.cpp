// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Texture and surface objects: what they are read for, what they refuse to be made of, and how long
// they live. What fails in their use is in texture_errors_test.cpp.

#include "texture_fixture.hpp"

TEST_F(TextureObjects, ReadWhatTheyAreOf) {
    const CUtexObject made = texture(linear(memory, 400));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 99));
    EXPECT_EQ(1099u, fetched());
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 100));
    EXPECT_EQ(0u, fetched());
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
}

TEST_F(TextureObjects, AreNotMadeOfWhatTheyCannotBe) {
    CUtexObject made = 0;
    const CUDA_TEXTURE_DESC how{};
    const auto code = [&](const CUDA_RESOURCE_DESC& resource) {
        return cuTexObjectCreate(&made, &resource, &how, nullptr);
    };
    CUDA_RESOURCE_DESC wrong = linear(memory, 400);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(nullptr, &wrong, &how, nullptr));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&made, nullptr, &how, nullptr));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&made, &wrong, nullptr, nullptr));
    wrong.flags = 1;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = linear(memory, 3);  // less than a texel
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = linear(memory, (std::size_t{4} << 28) + 4);  // one texel more than there may be
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = linear(memory, 400);
    wrong.res.linear.numChannels = 3;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = linear(memory + 256, 400);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = linear(0, 400);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = pitched(memory);
    EXPECT_CU(CUDA_SUCCESS, code(wrong));
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
    wrong.res.pitch2D.pitchInBytes = 240;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = pitched(memory);
    wrong.res.pitch2D.width = 65;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = pitched(memory);
    wrong.res.pitch2D.height = 65001;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong.resType = static_cast<CUresourcetype>(17);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
}

TEST_F(TextureObjects, AreNotSampledAsNothingIs) {
    CUtexObject made = 0;
    const CUDA_RESOURCE_DESC resource = linear(memory, 400);
    const auto code = [&](const CUDA_TEXTURE_DESC& how) {
        return cuTexObjectCreate(&made, &resource, &how, nullptr);
    };
    CUDA_TEXTURE_DESC wrong{};
    wrong.addressMode[2] = static_cast<CUaddress_mode>(4);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = {};
    wrong.filterMode = static_cast<CUfilter_mode>(2);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = {};
    wrong.mipmapFilterMode = static_cast<CUfilter_mode>(2);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
    wrong = {};
    wrong.flags = 0x80;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(wrong));
}

TEST_F(TextureObjects, ViewsChooseLevelsAndFormat) {
    CUDA_ARRAY3D_DESCRIPTOR shape{4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
    CUmipmappedArray mipmapped = nullptr;
    ASSERT_CU(cuMipmappedArrayCreate(&mipmapped, &shape, 3));
    for (unsigned level = 0; level < 3; ++level) {
        CUarray array = nullptr;
        ASSERT_CU(cuMipmappedArrayGetLevel(&array, mipmapped, level));
        const unsigned texel = 0x01010101U * (level + 1);
        ASSERT_CU(cuMemcpyHtoA(array, 0, &texel, sizeof texel));
    }
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmapped;
    CUDA_TEXTURE_DESC how{};
    how.flags = CU_TRSF_READ_AS_INTEGER;
    how.maxMipmapLevelClamp = 9;
    CUDA_RESOURCE_VIEW_DESC view{};
    view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
    view.width = view.height = 4;
    view.firstMipmapLevel = 1;
    view.lastMipmapLevel = 2;
    CUtexObject made = 0;
    ASSERT_CU(cuTexObjectCreate(&made, &resource, &how, &view));
    EXPECT_CU(CUDA_SUCCESS, fetch_level(made, 0));
    EXPECT_EQ(0x02020202u, fetched());
    EXPECT_CU(CUDA_SUCCESS, fetch_level(made, 7));
    EXPECT_EQ(0x03030303u, fetched());
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
    const auto code = [&](const CUDA_RESOURCE_VIEW_DESC& wrong) {
        return cuTexObjectCreate(&made, &resource, &how, &wrong);
    };
    view.lastMipmapLevel = 3;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(view));
    view.lastMipmapLevel = 0;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(view));
    view.lastMipmapLevel = 2;
    view.format = CU_RES_VIEW_FORMAT_UINT_2X32;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(view));
    view.format = CU_RES_VIEW_FORMAT_NONE;
    view.width = 8;
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, code(view));
    view.width = 4;
    EXPECT_CU(CUDA_SUCCESS, code(view));
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
    const CUDA_RESOURCE_DESC plain = linear(memory, 400);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&made, &plain, &how, &view));
    EXPECT_CU(CUDA_SUCCESS, cuMipmappedArrayDestroy(mipmapped));
}

TEST_F(TextureObjects, HandlesThatAreNoneAreRefused) {
    CUDA_RESOURCE_DESC shown{};
    const CUtexObject made = texture(linear(memory, 400));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(nullptr, made));
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(made));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(&shown, made));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(made));
    CUsurfObject surface = 0;
    const CUarray array = array_of(16, 16);
    CUDA_RESOURCE_DESC resource = of(array);
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
              cuSurfObjectCreate(&surface, &resource));  // not made for it
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
}

TEST_F(TextureObjects, MayBeDestroyedWhileKernelsUseThem) {
    const CUtexObject made = texture(linear(memory, 400));
    // The kernel cannot have begun when the object goes.
    EXPECT_CU(CUDA_SUCCESS, cuMemsetD32(second, 0, 8));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWaitValue32(stream, second + 16, 1, CU_STREAM_WAIT_VALUE_EQ));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 7));
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
    EXPECT_CU(CUDA_SUCCESS, cuStreamWriteValue32(other, second + 16, 1, 0));
    EXPECT_EQ(1007u, fetched());
}

TEST_F(TextureObjects, AreReadByGraphs) {
    const CUtexObject made = texture(linear(memory, 400));
    begin();
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 5));
    CUgraph graph = end();
    run_once(graph);
    EXPECT_EQ(1005u, word_at(second));
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
}

TEST_F(TextureObjects, SurfacesWrite) {
    const CUarray array = array_of(16, 16, CUDA_ARRAY3D_SURFACE_LDST);
    const CUDA_RESOURCE_DESC resource = of(array);
    CUsurfObject surface = 0;
    ASSERT_CU(cuSurfObjectCreate(&surface, &resource));
    EXPECT_CU(CUDA_SUCCESS, store(surface, 20, 77));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    unsigned row[16] = {};
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array;
    copy.srcY = 1;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = row;
    copy.WidthInBytes = sizeof row;
    copy.Height = 1;
    ASSERT_CU(cuMemcpy2D(&copy));
    EXPECT_EQ(77u, row[5]);
    EXPECT_CU(CUDA_SUCCESS, cuSurfObjectDestroy(surface));
    EXPECT_CU(CUDA_SUCCESS, cuArrayDestroy(array));
}
