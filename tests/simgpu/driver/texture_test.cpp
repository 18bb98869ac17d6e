// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Texture and surface objects: what they refuse to be made of, how long they live, and what their
// use does when something is gone.

#include <array>
#include <numeric>

#include "graph_fixture.hpp"

namespace {

/// fetch(texture, out, texel): one word; store(surface, value): at 4 bytes of row 1.
constexpr const char* kTextureKernels = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry fetch(.param .u64 texture, .param .u64 out, .param .u32 texel)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [texture];
    ld.param.u64 %rd2, [out];
    ld.param.u32 %r1, [texel];
    tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {%r1}];
    st.global.u32 [%rd2], %r2;
    ret;
}

.visible .entry fetch_level(.param .u64 texture, .param .u64 out, .param .u32 level)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [texture];
    ld.param.u64 %rd2, [out];
    ld.param.u32 %r1, [level];
    cvt.rn.f32.u32 %f1, %r1;
    mov.f32 %f2, 0f00000000;
    tex.level.2d.v4.u32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {%f2, %f2}], %f1;
    st.global.u32 [%rd2], %r2;
    ret;
}

.visible .entry store(.param .u64 surface, .param .u32 at, .param .u32 value)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [surface];
    ld.param.u32 %r1, [at];
    ld.param.u32 %r2, [value];
    mov.u32 %r3, 1;
    sust.b.2d.b32.trap [%rd1, {%r1, %r3}], {%r2};
    ret;
}
)";

class TextureObjects : public GraphGpu {
  protected:
    void SetUp() override {
        GraphGpu::SetUp();
        ASSERT_CU(cuModuleLoadData(&kernels, kTextureKernels));
        std::iota(words.begin(), words.end(), 1000U);
        ASSERT_CU(cuMemcpyHtoD(memory, words.data(), sizeof words));
    }

    static CUDA_RESOURCE_DESC linear(CUdeviceptr at, std::size_t bytes) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = CU_RESOURCE_TYPE_LINEAR;
        resource.res.linear = {at, CU_AD_FORMAT_UNSIGNED_INT32, 1, bytes};
        return resource;
    }

    static CUDA_RESOURCE_DESC pitched(CUdeviceptr at) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = CU_RESOURCE_TYPE_PITCH2D;
        resource.res.pitch2D = {at, CU_AD_FORMAT_UNSIGNED_INT32, 1, 60, 16, 256};
        return resource;
    }

    static CUDA_RESOURCE_DESC of(CUarray array) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = CU_RESOURCE_TYPE_ARRAY;
        resource.res.array.hArray = array;
        return resource;
    }

    static CUarray array_of(std::size_t width, std::size_t height, unsigned flags = 0) {
        CUDA_ARRAY3D_DESCRIPTOR shape{width, height, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, flags};
        CUarray array = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuArray3DCreate(&array, &shape));
        return array;
    }

    static CUtexObject texture(const CUDA_RESOURCE_DESC& resource) {
        CUtexObject made = 0;
        const CUDA_TEXTURE_DESC how{};
        EXPECT_CU(CUDA_SUCCESS, cuTexObjectCreate(&made, &resource, &how, nullptr));
        return made;
    }

    CUresult launch(const char* name, void** arguments) {
        CUfunction found = nullptr;
        EXPECT_CU(CUDA_SUCCESS, cuModuleGetFunction(&found, kernels, name));
        return cuLaunchKernel(found, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
    }

    CUresult fetch(CUtexObject from, unsigned texel) {
        void* arguments[] = {&from, &second, &texel};
        return launch("fetch", arguments);
    }

    CUresult fetch_level(CUtexObject from, unsigned level) {
        void* arguments[] = {&from, &second, &level};
        return launch("fetch_level", arguments);
    }

    CUresult store(CUsurfObject to, unsigned at, unsigned value) {
        void* arguments[] = {&to, &at, &value};
        return launch("store", arguments);
    }

    unsigned fetched() {
        EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
        return word_at(second);
    }

    CUmodule kernels = nullptr;
    std::array<unsigned, kWords> words{};
};

}  // namespace

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
    wrong = linear(memory, std::size_t{4} << 28);
    EXPECT_CU(CUDA_SUCCESS, code(wrong));  // as many texels as there may be, whatever lies there
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
    wrong.res.linear.sizeInBytes += 4;
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

TEST_F(TextureObjects, SurfacesStopKernelsAtTheirEdge) {
    const CUarray array = array_of(16, 16, CUDA_ARRAY3D_SURFACE_LDST);
    const CUDA_RESOURCE_DESC resource = of(array);
    CUsurfObject surface = 0;
    ASSERT_CU(cuSurfObjectCreate(&surface, &resource));
    EXPECT_CU(CUDA_SUCCESS, store(surface, 64, 1));
    EXPECT_CU(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
}

TEST_F(TextureObjects, OfFreedMemoryFault) {
    CUdeviceptr freed = 0;
    ASSERT_CU(cuMemAlloc(&freed, kPage));
    const CUtexObject made = texture(linear(freed, 400));
    ASSERT_CU(cuMemFree(freed));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

TEST_F(TextureObjects, OfADestroyedArrayFault) {
    const CUarray array = array_of(1024, 1024);  // pages of its own
    const CUtexObject made = texture(of(array));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_SUCCESS, cuStreamSynchronize(stream));
    ASSERT_CU(cuArrayDestroy(array));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

TEST_F(TextureObjects, ThatAreGoneFailTheKernel) {
    const CUtexObject made = texture(linear(memory, 400));
    EXPECT_CU(CUDA_SUCCESS, cuTexObjectDestroy(made));
    EXPECT_CU(CUDA_SUCCESS, fetch(made, 0));
    EXPECT_CU(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
}

TEST_F(TextureObjects, AreTheirContextsOwn) {
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
