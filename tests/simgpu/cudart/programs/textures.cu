// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Texture and surface objects over everything that they can be made of, as programs use them.

#include <cstring>
#include <numeric>
#include <vector>

#include "check.cuh"

namespace {

constexpr int kWidth = 24, kHeight = 10, kDepth = 6;

__global__ void read_linear(cudaTextureObject_t texture, float* out, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = tex1Dfetch<float>(texture, i) * 2;
}

__global__ void read_plane(cudaTextureObject_t texture, float* out, float shift) {
    const int x = threadIdx.x, y = blockIdx.x;
    out[y * blockDim.x + x] = tex2D<float>(texture, x + 0.5F + shift, y + 0.5F);
}

__global__ void read_volume(cudaTextureObject_t texture, float* out) {
    const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
    out[(z * gridDim.x + y) * blockDim.x + x] = tex3D<float>(texture, x + 0.5F, y + 0.5F, z + 0.5F);
}

__global__ void read_layers(cudaTextureObject_t texture, uchar4* out) {
    const int x = threadIdx.x, y = blockIdx.x, layer = blockIdx.y;
    out[(layer * gridDim.x + y) * blockDim.x + x] =
        tex2DLayered<uchar4>(texture, x + 0.5F, y + 0.5F, layer);
}

__global__ void read_level(cudaTextureObject_t texture, float* out, float level) {
    out[threadIdx.x] = tex2DLod<float>(texture, 0.5F, 0.5F, level);
}

__global__ void negate(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    const int x = threadIdx.x, y = blockIdx.x;
    surf2Dwrite(-surf2Dread<float>(from, x * 4, y), to, x * 4, y);
}

struct Scene {
    cudaTextureObject_t textures[2];
    float scale;
};

__global__ void read_scene(Scene scene, const Scene* same, float* out) {
    const int i = threadIdx.x;
    out[i] = (tex1Dfetch<float>(scene.textures[i % 2], i) +
              tex1Dfetch<float>(same->textures[1 - i % 2], i)) *
             scene.scale;
}

std::vector<float> numbers(size_t count, float first = 1) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
}

template <class T>
T* upload(const std::vector<T>& values) {
    T* device = nullptr;
    CUDA(cudaMalloc(&device, values.size() * sizeof(T)));
    CUDA(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

template <class T>
T* room(size_t count) {
    T* device = nullptr;
    CUDA(cudaMalloc(&device, count * sizeof(T)));
    return device;
}

template <class T>
std::vector<T> take(T* device, size_t count) {
    std::vector<T> values(count);
    CUDA(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    CUDA(cudaFree(device));
    return values;
}

cudaResourceDesc linear(const void* device, size_t bytes, cudaChannelFormatDesc format) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<void*>(device);
    resource.res.linear.desc = format;
    resource.res.linear.sizeInBytes = bytes;
    return resource;
}

cudaResourceDesc of_array(cudaArray_t array) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

cudaTextureObject_t texture_of(const cudaResourceDesc& resource, const cudaTextureDesc& how = {}) {
    cudaTextureObject_t texture = 0;
    CUDA(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    EXPECT(texture != 0);
    return texture;
}

void check_linear() {
    constexpr int kCount = 5000;
    const auto in = numbers(kCount);
    float* texels = upload(in);
    float* out = room<float>(kCount + 7);
    const auto texture =
        texture_of(linear(texels, kCount * sizeof(float), cudaCreateChannelDesc<float>()));
    read_linear<<<20, 256>>>(texture, out, kCount + 7);
    CUDA(cudaGetLastError());
    const auto seen = take(out, kCount + 7);
    for (int i = 0; i < kCount; ++i) EXPECT(seen[i] == 2 * in[i]);
    for (int i = kCount; i < kCount + 7; ++i) EXPECT(seen[i] == 0);
    CUDA(cudaDestroyTextureObject(texture));
    CUDA(cudaFree(texels));
}

void check_pitched() {
    const auto in = numbers(kWidth * kHeight);
    float* texels = nullptr;
    size_t pitch = 0;
    CUDA(cudaMallocPitch(&texels, &pitch, kWidth * sizeof(float), kHeight));
    CUDA(cudaMemcpy2D(texels, pitch, in.data(), kWidth * sizeof(float), kWidth * sizeof(float),
                      kHeight, cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = texels;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = kWidth;
    resource.res.pitch2D.height = kHeight;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc how{};
    how.filterMode = cudaFilterModeLinear;
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    const auto texture = texture_of(resource, how);
    float* out = room<float>(kWidth * kHeight);
    read_plane<<<kHeight, kWidth>>>(texture, out, 0.25F);
    CUDA(cudaGetLastError());
    const auto seen = take(out, kWidth * kHeight);
    for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
            const float expected = in[y * kWidth + x] + (x + 1 < kWidth ? 0.25F : 0);
            EXPECT(seen[y * kWidth + x] == expected);
        }
    }
    CUDA(cudaDestroyTextureObject(texture));
    CUDA(cudaFree(texels));
}

void check_volume() {
    const auto in = numbers(kWidth * kHeight * kDepth);
    const cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaArray_t array = nullptr;
    CUDA(cudaMalloc3DArray(&array, &channel, make_cudaExtent(kWidth, kHeight, kDepth)));
    cudaMemcpy3DParms copy{};
    copy.srcPtr =
        make_cudaPitchedPtr(const_cast<float*>(in.data()), kWidth * sizeof(float), kWidth, kHeight);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(kWidth, kHeight, kDepth);
    copy.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&copy));
    const auto texture = texture_of(of_array(array));
    float* out = room<float>(in.size());
    read_volume<<<dim3(kHeight, kDepth), kWidth>>>(texture, out);
    CUDA(cudaGetLastError());
    EXPECT(take(out, in.size()) == in);
    CUDA(cudaDestroyTextureObject(texture));
    CUDA(cudaFreeArray(array));
}

void check_layers() {
    std::vector<uchar4> in(kWidth * kHeight * kDepth);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = make_uchar4(i % 7, i % 11, i % 13, static_cast<unsigned char>(i));
    const cudaChannelFormatDesc channel = cudaCreateChannelDesc<uchar4>();
    cudaArray_t array = nullptr;
    CUDA(cudaMalloc3DArray(&array, &channel, make_cudaExtent(kWidth, kHeight, kDepth),
                           cudaArrayLayered));
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(in.data(), kWidth * sizeof(uchar4), kWidth, kHeight);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(kWidth, kHeight, kDepth);
    copy.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&copy));
    const auto texture = texture_of(of_array(array));
    uchar4* out = room<uchar4>(in.size());
    read_layers<<<dim3(kHeight, kDepth), kWidth>>>(texture, out);
    CUDA(cudaGetLastError());
    const auto seen = take(out, in.size());
    EXPECT(std::memcmp(seen.data(), in.data(), in.size() * sizeof(uchar4)) == 0);
    CUDA(cudaDestroyTextureObject(texture));
    CUDA(cudaFreeArray(array));
}

void check_levels() {
    const cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmapped = nullptr;
    CUDA(cudaMallocMipmappedArray(&mipmapped, &channel, make_cudaExtent(16, 16, 0), 3));
    for (unsigned level = 0; level < 3; ++level) {
        cudaArray_t array = nullptr;
        CUDA(cudaGetMipmappedArrayLevel(&array, mipmapped, level));
        const size_t side = 16 >> level;
        const std::vector<float> texels(side * side, 100 * (level + 1.0F));
        CUDA(cudaMemcpy2DToArray(array, 0, 0, texels.data(), side * 4, side * 4, side,
                                 cudaMemcpyHostToDevice));
    }
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmapped;
    cudaTextureDesc how{};
    how.normalizedCoords = 1;
    how.filterMode = how.mipmapFilterMode = cudaFilterModeLinear;
    how.maxMipmapLevelClamp = 2;
    const auto texture = texture_of(resource, how);
    float* out = room<float>(3);
    read_level<<<1, 1>>>(texture, out, 1.0F);
    read_level<<<1, 1>>>(texture, out + 1, 0.5F);
    read_level<<<1, 1>>>(texture, out + 2, 7.0F);
    CUDA(cudaGetLastError());
    EXPECT(take(out, 3) == (std::vector<float>{200, 150, 300}));
    CUDA(cudaDestroyTextureObject(texture));
    CUDA(cudaFreeMipmappedArray(mipmapped));
}

void check_surfaces() {
    const auto in = numbers(kWidth * kHeight);
    const cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    const size_t row = kWidth * sizeof(float);
    cudaArray_t arrays[2] = {};
    cudaSurfaceObject_t surfaces[2] = {};
    for (int i = 0; i < 2; ++i) {
        CUDA(cudaMallocArray(&arrays[i], &channel, kWidth, kHeight, cudaArraySurfaceLoadStore));
        const cudaResourceDesc resource = of_array(arrays[i]);
        CUDA(cudaCreateSurfaceObject(&surfaces[i], &resource));
    }
    CUDA(
        cudaMemcpy2DToArray(arrays[0], 0, 0, in.data(), row, row, kHeight, cudaMemcpyHostToDevice));
    negate<<<kHeight, kWidth>>>(surfaces[0], surfaces[1]);
    CUDA(cudaGetLastError());
    // What a surface has written, a texture of the same array reads.
    const auto texture = texture_of(of_array(arrays[1]));
    float* out = room<float>(in.size());
    read_plane<<<kHeight, kWidth>>>(texture, out, 0);
    std::vector<float> copied(in.size());
    CUDA(cudaMemcpy2DFromArray(copied.data(), row, arrays[1], 0, 0, row, kHeight,
                               cudaMemcpyDeviceToHost));
    const auto seen = take(out, in.size());
    for (size_t i = 0; i < in.size(); ++i) EXPECT(copied[i] == -in[i] && seen[i] == -in[i]);
    CUDA(cudaDestroyTextureObject(texture));
    for (int i = 0; i < 2; ++i) {
        CUDA(cudaDestroySurfaceObject(surfaces[i]));
        CUDA(cudaFreeArray(arrays[i]));
    }
}

/// Objects in structures, by value and in device memory; and in a graph's kernel.
void check_structures_and_graphs() {
    constexpr int kCount = 32;
    const auto a = numbers(kCount, 1), b = numbers(kCount, 1000);
    float* texels[2] = {upload(a), upload(b)};
    Scene scene{{}, 3};
    for (int i = 0; i < 2; ++i)
        scene.textures[i] =
            texture_of(linear(texels[i], kCount * sizeof(float), cudaCreateChannelDesc<float>()));
    Scene* same = upload(std::vector<Scene>{scene});
    float* out = room<float>(kCount);
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    read_scene<<<1, kCount, 0, stream>>>(scene, same, out);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int round = 0; round < 3; ++round) {
        CUDA(cudaMemset(out, 0, kCount * sizeof(float)));
        CUDA(cudaGraphLaunch(executable, stream));
        CUDA(cudaStreamSynchronize(stream));
        std::vector<float> seen(kCount);
        CUDA(cudaMemcpy(seen.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
        for (int i = 0; i < kCount; ++i) EXPECT(seen[i] == 3 * (a[i] + b[i]));
    }
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    for (int i = 0; i < 2; ++i) {
        CUDA(cudaDestroyTextureObject(scene.textures[i]));
        CUDA(cudaFree(texels[i]));
    }
    CUDA(cudaFree(same));
    CUDA(cudaFree(out));
}

void check_errors() {
    float* texels = room<float>(256);
    int* words = room<int>(256);
    cudaTextureObject_t texture = 0;
    cudaTextureDesc how{};
    cudaResourceDesc resource = linear(texels, 1024, cudaCreateChannelDesc<float>());
    EXPECT_CODE(cudaErrorInvalidValue, cudaCreateTextureObject(&texture, nullptr, &how, nullptr));
    EXPECT_CODE(cudaErrorInvalidValue,
                cudaCreateTextureObject(&texture, &resource, nullptr, nullptr));
    resource.res.linear.sizeInBytes = 0;
    EXPECT_CODE(cudaErrorInvalidValue, cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    // What no texture unit does: parts of one from 32-bit integers, means of integers.
    resource = linear(words, 1024, cudaCreateChannelDesc<int>());
    how.readMode = cudaReadModeNormalizedFloat;
    EXPECT_CODE(cudaErrorInvalidNormSetting,
                cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    how.readMode = cudaReadModeElementType;
    how.filterMode = cudaFilterModeLinear;
    EXPECT_CODE(cudaErrorInvalidFilterSetting,
                cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    cudaSurfaceObject_t surface = 0;
    EXPECT_CODE(cudaErrorInvalidValue, cudaCreateSurfaceObject(&surface, &resource));
    EXPECT_CODE(cudaErrorInvalidValue, cudaDestroyTextureObject(987654));
    EXPECT_CODE(cudaErrorInvalidValue, cudaDestroySurfaceObject(987654));
    CUDA(cudaFree(texels));
    CUDA(cudaFree(words));
}

}  // namespace

int main() {
    check_linear();
    check_pitched();
    check_volume();
    check_layers();
    check_levels();
    check_surfaces();
    check_structures_and_graphs();
    check_errors();
    std::puts("ok");
    return 0;
}
