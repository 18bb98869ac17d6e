// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The helpers that copy vectors and matrices between host and device.

#include "simgpu/cublas/api.hpp"
#include "simgpu/cublas/driver.hpp"
#include "simgpu/cublas/handle.hpp"

namespace libswap::simgpu::cublas {
namespace {

/// `rows` bytes of each of `columns` columns, whose pitches are in bytes.
cublasStatus_t copy(bool to_device, std::int64_t rows, std::int64_t columns, const void* from,
                    std::int64_t from_pitch, void* to, std::int64_t to_pitch, CUstream stream,
                    bool wait) {
    if (rows == 0 || columns == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (driver() == nullptr) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    const Driver& d = *driver();
    CUresult result = CUDA_SUCCESS;
    if (columns == 1 || (from_pitch == rows && to_pitch == rows)) {
        const auto bytes = static_cast<std::size_t>(rows * columns);
        result =
            to_device
                ? d.cuMemcpyHtoDAsync_fn(reinterpret_cast<CUdeviceptr>(to), from, bytes, stream)
                : d.cuMemcpyDtoHAsync_fn(to, reinterpret_cast<CUdeviceptr>(from), bytes, stream);
    } else {
        CUDA_MEMCPY2D shape{};
        shape.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        shape.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        shape.srcHost = from;
        shape.srcDevice = reinterpret_cast<CUdeviceptr>(from);
        shape.dstHost = to;
        shape.dstDevice = reinterpret_cast<CUdeviceptr>(to);
        shape.srcPitch = static_cast<std::size_t>(from_pitch);
        shape.dstPitch = static_cast<std::size_t>(to_pitch);
        shape.WidthInBytes = static_cast<std::size_t>(rows);
        shape.Height = static_cast<std::size_t>(columns);
        result = d.cuMemcpy2DAsync_fn(&shape, stream);
    }
    if (result == CUDA_SUCCESS && wait) {
        result = d.cuStreamSynchronize_fn(stream);
    }
    return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t matrix(bool to_device, std::int64_t rows, std::int64_t columns, std::int64_t element,
                      const void* from, std::int64_t from_ld, void* to, std::int64_t to_ld,
                      CUstream stream, bool wait) {
    if (rows < 0 || columns < 0 || element <= 0 || from_ld <= 0 || to_ld <= 0 || from_ld < rows ||
        to_ld < rows) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return copy(to_device, rows * element, columns, from, from_ld * element, to, to_ld * element,
                stream, wait);
}

/// A vector is a matrix of one row, its increment the leading dimension.
cublasStatus_t vector(bool to_device, std::int64_t n, std::int64_t element, const void* from,
                      std::int64_t from_increment, void* to, std::int64_t to_increment,
                      CUstream stream, bool wait) {
    if (n < 0 || element <= 0 || from_increment <= 0 || to_increment <= 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return copy(to_device, element, n, from, from_increment * element, to, to_increment * element,
                stream, wait);
}

}  // namespace
}  // namespace libswap::simgpu::cublas

using namespace libswap::simgpu::cublas;  // NOLINT: the C ABI's bodies below are one-liners

#define SIMGPU_CUBLAS_TRANSFER(Set, to_device, suffix, Int)                                       \
    cublasStatus_t cublas##Set##Vector##suffix(Int n, Int element, const void* x, Int incx,       \
                                               void* y, Int incy) {                               \
        return vector(to_device, n, element, x, incx, y, incy, nullptr, true);                    \
    }                                                                                             \
    cublasStatus_t cublas##Set##VectorAsync##suffix(Int n, Int element, const void* x, Int incx,  \
                                                    void* y, Int incy, cudaStream_t stream) {     \
        return vector(to_device, n, element, x, incx, y, incy, stream, false);                    \
    }                                                                                             \
    cublasStatus_t cublas##Set##Matrix##suffix(Int rows, Int columns, Int element, const void* a, \
                                               Int lda, void* b, Int ldb) {                       \
        return matrix(to_device, rows, columns, element, a, lda, b, ldb, nullptr, true);          \
    }                                                                                             \
    cublasStatus_t cublas##Set##MatrixAsync##suffix(Int rows, Int columns, Int element,           \
                                                    const void* a, Int lda, void* b, Int ldb,     \
                                                    cudaStream_t stream) {                        \
        return matrix(to_device, rows, columns, element, a, lda, b, ldb, stream, false);          \
    }

extern "C" {
SIMGPU_CUBLAS_TRANSFER(Set, true, , int)
SIMGPU_CUBLAS_TRANSFER(Set, true, _64, std::int64_t)
SIMGPU_CUBLAS_TRANSFER(Get, false, , int)
SIMGPU_CUBLAS_TRANSFER(Get, false, _64, std::int64_t)
}
