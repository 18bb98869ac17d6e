// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Arrays, what is made of them, and calls that take many ranges at once.

#include <numeric>
#include <vector>

#include "check.cuh"

namespace {

constexpr int kWidth = 24, kHeight = 10;

void check_array() {
    std::vector<float> in(kWidth * kHeight), out(in.size());
    std::iota(in.begin(), in.end(), 1.0F);
    const cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaArray_t array = nullptr;
    CUDA(cudaMallocArray(&array, &channel, kWidth, kHeight));
    const size_t row = kWidth * sizeof(float);
    CUDA(cudaMemcpy2DToArray(array, 0, 0, in.data(), row, row, kHeight, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy2DFromArray(out.data(), row, array, 0, 0, row, kHeight, cudaMemcpyDeviceToHost));
    EXPECT(in == out);
    cudaExtent extent{};
    cudaChannelFormatDesc told{};
    CUDA(cudaArrayGetInfo(&told, &extent, nullptr, array));
    EXPECT(told.x == 32 && told.f == cudaChannelFormatKindFloat);
    EXPECT(extent.width == kWidth && extent.height == kHeight);

    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how{};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModePoint;
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    CUDA(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    cudaTextureDesc how_told{};
    CUDA(cudaGetTextureObjectTextureDesc(&how_told, texture));
    EXPECT(how_told.addressMode[1] == cudaAddressModeClamp);
    EXPECT(how_told.readMode == cudaReadModeElementType);
    cudaResourceDesc resource_told{};
    CUDA(cudaGetTextureObjectResourceDesc(&resource_told, texture));
    EXPECT(resource_told.res.array.array == array);
    CUDA(cudaDestroyTextureObject(texture));
    CUDA(cudaFreeArray(array));
}

void check_mipmapped() {
    const cudaChannelFormatDesc channel = cudaCreateChannelDesc<int>();
    cudaMipmappedArray_t mipmapped = nullptr;
    CUDA(cudaMallocMipmappedArray(&mipmapped, &channel, make_cudaExtent(32, 32, 0), 4));
    cudaArray_t level = nullptr;
    CUDA(cudaGetMipmappedArrayLevel(&level, mipmapped, 3));
    cudaExtent extent{};
    CUDA(cudaArrayGetInfo(nullptr, &extent, nullptr, level));
    EXPECT(extent.width == 4 && extent.height == 4);
    CUDA(cudaFreeMipmappedArray(mipmapped));
}

void check_batch() {
    constexpr int kCopies = 3;
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    int values[kCopies] = {5, 6, 7};
    int back[kCopies] = {};
    int* device = nullptr;
    CUDA(cudaMalloc(&device, sizeof values));
    void* to[kCopies];
    const void* from[kCopies];
    size_t sizes[kCopies];
    for (int i = 0; i < kCopies; ++i) {
        to[i] = device + i;
        from[i] = values + i;
        sizes[i] = sizeof(int);
    }
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    CUDA(cudaMemcpyBatchAsync(to, from, sizes, kCopies, &attributes, &first, 1, stream));
    CUDA(cudaMemcpyAsync(back, device, sizeof back, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT(back[0] == 5 && back[1] == 6 && back[2] == 7);
    CUDA(cudaFree(device));
    CUDA(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
    check_array();
    check_mipmapped();
    check_batch();
    std::puts("ok");
    return 0;
}
