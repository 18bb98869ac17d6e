// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace train_cnn {

/// Says which call failed and how, and ends the program with status 1.
[[noreturn]] void fail(const char* call, const char* reason);

inline void check(cudaError_t status, const char* call) {
    if (status != cudaSuccess) {
        fail(call, cudaGetErrorString(status));
    }
}

inline void check(cublasStatus_t status, const char* call) {
    if (status != CUBLAS_STATUS_SUCCESS) {
        fail(call, cublasGetStatusString(status));
    }
}

#define TRAIN_CNN_CHECK(call) ::train_cnn::check(call, #call)

/// Bytes of device memory asked for, now and at the worst moment.
struct MemoryUse {
    std::uint64_t bytes = 0;
    std::uint64_t peak_bytes = 0;
};
MemoryUse& memory_use();

/// Device memory of one tensor: one cudaMalloc, counted, or a part of another buffer.
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    explicit DeviceBuffer(std::size_t bytes);
    ~DeviceBuffer() { reset(); }
    DeviceBuffer(DeviceBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)),
          owns_(std::exchange(other.owns_, true)) {}
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(owns_, other.owns_);
        return *this;
    }

    /// A tensor inside this buffer, which must outlive it.
    DeviceBuffer part(std::size_t offset, std::size_t bytes) const;

    void reset();
    /// Allocates if that has not happened.
    void ensure(std::size_t bytes);

    float* floats() const { return static_cast<float*>(data_); }
    std::int32_t* ints() const { return static_cast<std::int32_t*>(data_); }
    std::size_t bytes() const { return bytes_; }
    explicit operator bool() const { return data_ != nullptr; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool owns_ = true;
};

}  // namespace train_cnn
