// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

cudaError_t set_1d(void* to, int value, size_t bytes, const cudaStream_t* stream, bool per_thread) {
    return on_context([&] {
        const auto byte = static_cast<unsigned char>(value);
        if (bytes == 0) {
            return cudaSuccess;
        }
        return stream == nullptr ? call(CUDART_DRIVER_ON(per_thread, cuMemsetD8, 3020, 7000),
                                        device_pointer(to), byte, bytes)
                                 : call(CUDART_DRIVER_ON(per_thread, cuMemsetD8Async, 3020, 7000),
                                        device_pointer(to), byte, bytes, *stream);
    });
}

cudaError_t set_rows(void* to, size_t pitch, int value, size_t width, size_t height,
                     const cudaStream_t* stream, bool per_thread) {
    const auto byte = static_cast<unsigned char>(value);
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    if (height > 1 && width > pitch) {
        return cudaErrorInvalidPitchValue;
    }
    return stream == nullptr ? call(CUDART_DRIVER_ON(per_thread, cuMemsetD2D8, 3020, 7000),
                                    device_pointer(to), pitch, byte, width, height)
                             : call(CUDART_DRIVER_ON(per_thread, cuMemsetD2D8Async, 3020, 7000),
                                    device_pointer(to), pitch, byte, width, height, *stream);
}

cudaError_t set_2d(void* to, size_t pitch, int value, size_t width, size_t height,
                   const cudaStream_t* stream, bool per_thread) {
    return on_context(
        [&] { return set_rows(to, pitch, value, width, height, stream, per_thread); });
}

cudaError_t set_3d(cudaPitchedPtr to, int value, cudaExtent extent, const cudaStream_t* stream,
                   bool per_thread) {
    return on_context([&] {
        if (extent.height == to.ysize) {
            // Whole slices lie one after the other: one call does them all.
            return set_rows(to.ptr, to.pitch, value, extent.width, extent.height * extent.depth,
                            stream, per_thread);
        }
        for (size_t slice = 0; slice < extent.depth; ++slice) {
            void* start = static_cast<char*>(to.ptr) + slice * to.pitch * to.ysize;
            const cudaError_t error =
                set_rows(start, to.pitch, value, extent.width, extent.height, stream, per_thread);
            if (error != cudaSuccess) {
                return error;
            }
        }
        return cudaSuccess;
    });
}

}  // namespace

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    return set_1d(to, value, bytes, nullptr, false);
}

cudaError_t cudaMemset_ptds(void* to, int value, size_t bytes) {
    return set_1d(to, value, bytes, nullptr, true);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    return set_1d(to, value, bytes, &stream, false);
}

cudaError_t cudaMemsetAsync_ptsz(void* to, int value, size_t bytes, cudaStream_t stream) {
    return set_1d(to, value, bytes, &stream, true);
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
    return set_2d(to, pitch, value, width, height, nullptr, false);
}

cudaError_t cudaMemset2D_ptds(void* to, size_t pitch, int value, size_t width, size_t height) {
    return set_2d(to, pitch, value, width, height, nullptr, true);
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
    return set_2d(to, pitch, value, width, height, &stream, false);
}

cudaError_t cudaMemset2DAsync_ptsz(void* to, size_t pitch, int value, size_t width, size_t height,
                                   cudaStream_t stream) {
    return set_2d(to, pitch, value, width, height, &stream, true);
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
    return set_3d(to, value, extent, nullptr, false);
}

cudaError_t cudaMemset3D_ptds(cudaPitchedPtr to, int value, cudaExtent extent) {
    return set_3d(to, value, extent, nullptr, true);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                              cudaStream_t stream) {
    return set_3d(to, value, extent, &stream, false);
}

cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr to, int value, cudaExtent extent,
                                   cudaStream_t stream) {
    return set_3d(to, value, extent, &stream, true);
}
