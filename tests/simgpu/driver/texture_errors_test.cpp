// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What kernels end with that read through textures, or write to surfaces, where something is not
// there. On a GPU each would end the process's use of it.

#include "texture_fixture.hpp"

using TextureErrors = TextureObjects;

TEST_F(TextureErrors, SurfacesStopKernelsAtTheirEdge) {
    const CUarray array = array_of(16, 16, CUDA_ARRAY3D_SURFACE_LDST);
    const CUDA_RESOURCE_DESC resource = of(array);
    CUsurfObject surface = 0;
    ASSERT_CU(cuSurfObjectCreate(&surface, &resource));
    EXPECT_CU(CUDA_SUCCESS, store(surface, 64, 1));
    EXPECT_CU(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
}

TEST_F(TextureErrors, OfFreedMemoryFault) {
    CUdeviceptr freed = 0;
    ASSERT_CU(cuMemAlloc(&freed, kPage));
    const CUtexObject made = texture(linear(freed, 400));
    ASSERT_CU(cuMemFree(freed));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

TEST_F(TextureErrors, OfADestroyedArrayFault) {
    const CUarray array = array_of(1024, 1024);  // pages of its own
    const CUtexObject made = texture(of(array));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    ASSERT_CU(cuArrayDestroy(array));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

TEST_F(TextureErrors, ThatAreGoneFailTheKernel) {
    const CUtexObject made = texture(linear(memory, 400));
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
}

TEST_F(TextureErrors, AreTheirContextsOwn) {
    CUcontext second_context = nullptr;
    ASSERT_CU(cuCtxCreate(&second_context, nullptr, 0, device));
    CUdeviceptr there = 0;
    ASSERT_CU(cuMemAlloc(&there, 400));
    const CUtexObject made = texture(linear(there, 400));
    ASSERT_CU(cuCtxSetCurrent(context));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
    ASSERT_CU(cuCtxDestroy(second_context));
    EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(made));
}

using TexturesOfMappedMemory = VmmGpu;

// As memory that was evicted without the host copy being mapped in its place.
TEST_F(TexturesOfMappedMemory, FaultWhereItIsNotMappedAnyMore) {
    CUmodule kernels = nullptr;
    CUfunction fetch = nullptr;
    ASSERT_CU(cuModuleLoadData(&kernels, kTextureKernels));
    ASSERT_CU(cuModuleGetFunction(&fetch, kernels, "fetch"));
    const CUdeviceptr va = reserve(2 * kPage);
    const CUmemGenericAllocationHandle handles[] = {create(kPage), create(kPage)};
    ASSERT_CU(cuMemMap(va, kPage, 0, handles[0], 0));
    ASSERT_CU(cuMemMap(va + kPage, kPage, 0, handles[1], 0));
    ASSERT_CU(grant(va, 2 * kPage));
    ASSERT_CU(cuMemsetD32(va, 5, 2 * kPage / 4));
    CUdeviceptr out = 0;
    ASSERT_CU(cuMemAlloc(&out, 4));
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {va, CU_AD_FORMAT_UNSIGNED_INT32, 1, 2 * kPage};
    const CUDA_TEXTURE_DESC how{};
    CUtexObject texture = 0;
    ASSERT_CU(cuTexObjectCreate(&texture, &resource, &how, nullptr));
    const auto code = [&](unsigned texel) {
        void* arguments[] = {&texture, &out, &texel};
        EXPECT_CU(CUDA_SUCCESS,
                  cuLaunchKernel(fetch, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
        return cuCtxSynchronize();
    };
    EXPECT_CU(CUDA_SUCCESS, code(kPage / 4));
    EXPECT_EQ(5u, word_at(out));
    ASSERT_CU(cuMemUnmap(va + kPage, kPage));
    EXPECT_CU(CUDA_SUCCESS, code(kPage / 4 - 1));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, code(kPage / 4));
    for (const auto handle : handles) static_cast<void>(cuMemRelease(handle));
}
