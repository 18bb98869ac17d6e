// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Copies from and to arrays of one dimension: bytes at an offset.

#include "simgpu/driver/copies.hpp"
#include "simgpu/driver/entry.hpp"

namespace simgpu::driver {
namespace {

/// A line of bytes between two places that the rest fills in.
CUDA_MEMCPY3D line(std::size_t bytes) {
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
}

void to_array(CUDA_MEMCPY3D& copy, CUarray array, std::size_t offset) {
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.dstXInBytes = offset;
}

void from_array(CUDA_MEMCPY3D& copy, CUarray array, std::size_t offset) {
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array;
    copy.srcXInBytes = offset;
}

CUDA_MEMCPY3D host_to_array(CUarray array, std::size_t offset, const void* src, std::size_t bytes) {
    CUDA_MEMCPY3D copy = line(bytes);
    to_array(copy, array, offset);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = src;
    return copy;
}

CUDA_MEMCPY3D array_to_host(void* dst, CUarray array, std::size_t offset, std::size_t bytes) {
    CUDA_MEMCPY3D copy = line(bytes);
    from_array(copy, array, offset);
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = dst;
    return copy;
}

CUDA_MEMCPY3D device_to_array(CUarray array, std::size_t offset, CUdeviceptr src,
                              std::size_t bytes) {
    CUDA_MEMCPY3D copy = line(bytes);
    to_array(copy, array, offset);
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = src;
    return copy;
}

CUDA_MEMCPY3D array_to_device(CUdeviceptr dst, CUarray array, std::size_t offset,
                              std::size_t bytes) {
    CUDA_MEMCPY3D copy = line(bytes);
    from_array(copy, array, offset);
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = dst;
    return copy;
}

CUDA_MEMCPY3D array_to_array(CUarray dst, std::size_t dst_offset, CUarray src,
                             std::size_t src_offset, std::size_t bytes) {
    CUDA_MEMCPY3D copy = line(bytes);
    to_array(copy, dst, dst_offset);
    from_array(copy, src, src_offset);
    return copy;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL_PTDS(cuMemcpyHtoA_v2, (CUarray array, size_t offset, const void* src, size_t bytes), {
    return driver::submit_copy(driver::host_to_array(array, offset, src, bytes), nullptr,
                               default_stream, driver::Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpyHtoAAsync_v2,
                 (CUarray array, size_t offset, const void* src, size_t bytes, CUstream stream), {
                     return driver::submit_copy(driver::host_to_array(array, offset, src, bytes),
                                                stream, default_stream, driver::Wait::Never);
                 })
SIMGPU_CALL_PTDS(cuMemcpyAtoH_v2, (void* dst, CUarray array, size_t offset, size_t bytes), {
    return driver::submit_copy(driver::array_to_host(dst, array, offset, bytes), nullptr,
                               default_stream, driver::Wait::UntilDone);
})
SIMGPU_CALL_PTSZ(cuMemcpyAtoHAsync_v2,
                 (void* dst, CUarray array, size_t offset, size_t bytes, CUstream stream), {
                     return driver::submit_copy(driver::array_to_host(dst, array, offset, bytes),
                                                stream, default_stream, driver::Wait::Never);
                 })
SIMGPU_CALL_PTDS(cuMemcpyDtoA_v2, (CUarray array, size_t offset, CUdeviceptr src, size_t bytes), {
    return driver::submit_copy(driver::device_to_array(array, offset, src, bytes), nullptr,
                               default_stream, driver::Wait::UntilDone);
})
SIMGPU_CALL_PTDS(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray array, size_t offset, size_t bytes), {
    return driver::submit_copy(driver::array_to_device(dst, array, offset, bytes), nullptr,
                               default_stream, driver::Wait::UntilDone);
})
SIMGPU_CALL_PTDS(cuMemcpyAtoA_v2,
                 (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes), {
                     return driver::submit_copy(
                         driver::array_to_array(dst, dst_offset, src, src_offset, bytes), nullptr,
                         default_stream, driver::Wait::UntilDone);
                 })
