// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <numeric>

#include "graph_fixture.hpp"

/// fetch(texture, out, texel): one word; store(surface, value): at 4 bytes of row 1.
inline constexpr const char* kTextureKernels = R"(
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

/// Words 1000, 1001, ... in `memory`, and the kernels above. What they fetch goes to `second`.
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
