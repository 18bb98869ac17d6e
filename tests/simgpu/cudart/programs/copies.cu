// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory of every kind, copies and memsets of every shape.

#include <cstdint>
#include <cstring>
#include <vector>

#include "check.cuh"

namespace {

__global__ void negate(int* values, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = -values[i];
    }
}

void check_linear() {
    std::vector<int> from(1000), to(1000);
    for (int i = 0; i < 1000; ++i) {
        from[static_cast<size_t>(i)] = i * 3;
    }
    int *a = nullptr, *b = nullptr;
    CUDA(cudaMalloc(&a, 4000));
    CUDA(cudaMalloc(&b, 4000));
    CUDA(cudaMemcpy(a, from.data(), 4000, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(b, a, 4000, cudaMemcpyDeviceToDevice));
    CUDA(cudaMemcpy(to.data(), b, 4000, cudaMemcpyDeviceToHost));
    EXPECT(from == to);
    CUDA(cudaMemset(b, 0x11, 2000));
    CUDA(cudaMemcpy(to.data(), b, 4000, cudaMemcpyDefault));
    EXPECT(to[0] == 0x11111111 && to[499] == 0x11111111 && to[500] == 1500);
    CUDA(cudaMemcpy(b, from.data(), 4000, cudaMemcpyDefault));
    CUDA(cudaMemcpyPeer(a, 0, b, 0, 4000));
    std::vector<int> host_copy(1000);
    CUDA(cudaMemcpy(host_copy.data(), from.data(), 4000, cudaMemcpyHostToHost));
    EXPECT(host_copy == from);
    CUDA(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
    EXPECT_CODE(cudaErrorInvalidMemcpyDirection,
                cudaMemcpy(a, b, 4, static_cast<cudaMemcpyKind>(9)));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFree(nullptr));
    void* none = &a;
    CUDA(cudaMalloc(&none, 0));
    EXPECT(none == nullptr);
}

void check_pinned() {
    int* pinned = nullptr;
    CUDA(cudaMallocHost(&pinned, 4096));
    for (int i = 0; i < 1024; ++i) {
        pinned[i] = i;
    }
    void* device_view = nullptr;
    CUDA(cudaHostGetDevicePointer(&device_view, pinned, 0));
    negate<<<4, 256>>>(static_cast<int*>(device_view), 1024);
    CUDA(cudaDeviceSynchronize());
    EXPECT(pinned[1] == -1 && pinned[1023] == -1023);
    cudaPointerAttributes attributes;
    CUDA(cudaPointerGetAttributes(&attributes, pinned));
    EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
    CUDA(cudaFreeHost(pinned));

    std::vector<int> pageable(4096, 5);
    CUDA(cudaPointerGetAttributes(&attributes, pageable.data()));
    EXPECT(attributes.type == cudaMemoryTypeUnregistered);
    CUDA(cudaHostRegister(pageable.data(), 4096 * 4, cudaHostRegisterDefault));
    CUDA(cudaHostGetDevicePointer(&device_view, pageable.data(), 0));
    negate<<<16, 256>>>(static_cast<int*>(device_view), 4096);
    CUDA(cudaDeviceSynchronize());
    EXPECT(pageable[0] == -5 && pageable[4095] == -5);
    CUDA(cudaHostUnregister(pageable.data()));
    EXPECT_CODE(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(pageable.data()));
    EXPECT(cudaGetLastError() == cudaErrorHostMemoryNotRegistered);

    int* managed = nullptr;
    CUDA(cudaMallocManaged(&managed, 4096));
    for (int i = 0; i < 1024; ++i) {
        managed[i] = i;
    }
    negate<<<4, 256>>>(managed, 1024);
    CUDA(cudaDeviceSynchronize());
    EXPECT(managed[1023] == -1023);
    CUDA(cudaPointerGetAttributes(&attributes, managed));
    EXPECT(attributes.type == cudaMemoryTypeManaged);
    CUDA(cudaFree(managed));

    int* device = nullptr;
    CUDA(cudaMalloc(&device, 64));
    CUDA(cudaPointerGetAttributes(&attributes, device));
    EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 &&
           attributes.devicePointer == device);
    CUDA(cudaFree(device));
}

void check_2d() {
    constexpr size_t kWidth = 37, kHeight = 11;
    std::vector<unsigned char> from(kWidth * kHeight), to(kWidth * kHeight, 0);
    for (size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<unsigned char>(i);
    }
    void* device = nullptr;
    size_t pitch = 0;
    CUDA(cudaMallocPitch(&device, &pitch, kWidth, kHeight));
    EXPECT(pitch >= kWidth && pitch % 32 == 0);
    CUDA(cudaMemcpy2D(device, pitch, from.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
    CUDA(cudaMemset2D(static_cast<char*>(device) + 3, pitch, 0xEE, 5, 2));
    CUDA(cudaMemcpy2DAsync(to.data(), kWidth, device, pitch, kWidth, kHeight,
                           cudaMemcpyDeviceToHost, nullptr));
    CUDA(cudaStreamSynchronize(nullptr));
    for (size_t y = 0; y < kHeight; ++y) {
        for (size_t x = 0; x < kWidth; ++x) {
            const bool set = y < 2 && x >= 3 && x < 8;
            EXPECT(to[y * kWidth + x] == (set ? 0xEE : from[y * kWidth + x]));
        }
    }
    EXPECT_CODE(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 8, from.data(), kWidth, kWidth,
                                                         kHeight, cudaMemcpyHostToDevice));
    cudaGetLastError();
    CUDA(cudaFree(device));
}

void check_3d() {
    const cudaExtent extent = make_cudaExtent(20, 6, 4);
    std::vector<unsigned char> from(20 * 6 * 4), to(20 * 6 * 4, 0);
    for (size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<unsigned char>(i * 7);
    }
    cudaPitchedPtr device;
    CUDA(cudaMalloc3D(&device, extent));
    cudaMemcpy3DParms up = {};
    up.srcPtr = make_cudaPitchedPtr(from.data(), 20, 20, 6);
    up.dstPtr = device;
    up.extent = extent;
    up.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&up));
    // One byte column of the inner rows of every slice: the region is smaller than a slice.
    cudaPitchedPtr inner = device;
    inner.ptr = static_cast<char*>(device.ptr) + device.pitch;
    CUDA(cudaMemset3D(inner, 0x55, make_cudaExtent(2, 3, 4)));
    cudaMemcpy3DParms down = {};
    down.srcPtr = device;
    down.dstPtr = make_cudaPitchedPtr(to.data(), 20, 20, 6);
    down.extent = extent;
    down.kind = cudaMemcpyDeviceToHost;
    CUDA(cudaMemcpy3DAsync(&down, nullptr));
    CUDA(cudaDeviceSynchronize());
    for (size_t z = 0; z < 4; ++z) {
        for (size_t y = 0; y < 6; ++y) {
            for (size_t x = 0; x < 20; ++x) {
                const bool set = x < 2 && y >= 1 && y < 4;
                const size_t at = (z * 6 + y) * 20 + x;
                EXPECT(to[at] == (set ? 0x55 : from[at]));
            }
        }
    }
    // A part, with positions on both sides.
    std::vector<unsigned char> part(3 * 2 * 2, 0);
    cudaMemcpy3DParms cut = {};
    cut.srcPtr = device;
    cut.srcPos = make_cudaPos(5, 2, 1);
    cut.dstPtr = make_cudaPitchedPtr(part.data(), 3, 3, 2);
    cut.extent = make_cudaExtent(3, 2, 2);
    cut.kind = cudaMemcpyDeviceToHost;
    CUDA(cudaMemcpy3D(&cut));
    EXPECT(part[0] == from[(1 * 6 + 2) * 20 + 5] && part[11] == from[(2 * 6 + 3) * 20 + 7]);
    CUDA(cudaFree(device.ptr));
}

void check_info() {
    size_t free_before = 0, free_after = 0, total = 0;
    CUDA(cudaMemGetInfo(&free_before, &total));
    void* device = nullptr;
    CUDA(cudaMalloc(&device, size_t{8} << 20));
    CUDA(cudaMemGetInfo(&free_after, &total));
    EXPECT(free_before - free_after >= size_t{8} << 20 && free_before <= total);
    CUDA(cudaFree(device));
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    int* pooled = nullptr;
    CUDA(cudaMallocAsync(&pooled, 4096, stream));
    CUDA(cudaMemsetAsync(pooled, 1, 4096, stream));
    int first = 0;
    CUDA(cudaMemcpyAsync(&first, pooled, 4, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaFreeAsync(pooled, stream));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT(first == 0x01010101);
    CUDA(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
    check_linear();
    check_pinned();
    check_2d();
    check_3d();
    check_info();
    std::puts("ok");
    return 0;
}
