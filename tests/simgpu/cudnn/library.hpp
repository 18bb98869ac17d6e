// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A test of the library on the stand-in driver: a handle, and memory of the device.
#pragma once

#include <cuda.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

class Cudnn : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
        ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    }

    void TearDown() override {
        EXPECT_EQ(cudnnDestroy(handle_), CUDNN_STATUS_SUCCESS);
        for (CUdeviceptr address : allocated_) {
            EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
        }
        cuDevicePrimaryCtxRelease(0);
    }

    void* allocate(std::size_t bytes) {
        CUdeviceptr address = 0;
        EXPECT_EQ(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
        allocated_.push_back(address);
        return reinterpret_cast<void*>(address);
    }

    template <typename T>
    T* on_device(const std::vector<T>& values) {
        void* memory = allocate(values.size() * sizeof(T));
        EXPECT_EQ(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(memory), values.data(),
                               values.size() * sizeof(T)),
                  CUDA_SUCCESS);
        return static_cast<T*>(memory);
    }

    template <typename T>
    std::vector<T> on_host(const T* values, std::size_t count) {
        std::vector<T> copy(count);
        EXPECT_EQ(
            cuMemcpyDtoH(copy.data(), reinterpret_cast<CUdeviceptr>(values), count * sizeof(T)),
            CUDA_SUCCESS);
        return copy;
    }

    CUcontext context_ = nullptr;
    cudnnHandle_t handle_ = nullptr;
    std::vector<CUdeviceptr> allocated_;
};

/// Numbers within -1 and 1, the same every time.
inline std::vector<float> some_numbers(std::size_t count, unsigned seed) {
    std::vector<float> values(count);
    for (float& value : values) {
        seed = seed * 1664525U + 1013904223U;
        value = static_cast<float>(seed >> 20) / 2048.0F - 1.0F;
    }
    return values;
}

inline void expect_close(const std::vector<float>& got, const std::vector<float>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], wanted[i], 1e-4F) << "at " << i;
    }
}
