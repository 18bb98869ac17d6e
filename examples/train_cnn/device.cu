// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace train_cnn {

void fail(const char* call, const char* reason) {
    std::fflush(stdout);
    std::fprintf(stderr, "train_cnn: %s: %s\n", call, reason);
    std::exit(1);
}

MemoryUse& memory_use() {
    static MemoryUse use;
    return use;
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    const cudaError_t status = cudaMalloc(&data_, bytes);
    if (status != cudaSuccess) {
        char call[64];
        std::snprintf(call, sizeof(call), "cudaMalloc of %zu bytes", bytes);
        fail(call, cudaGetErrorString(status));
    }
    MemoryUse& use = memory_use();
    use.bytes += bytes;
    use.peak_bytes = std::max(use.peak_bytes, use.bytes);
}

DeviceBuffer DeviceBuffer::part(std::size_t offset, std::size_t bytes) const {
    DeviceBuffer inside;
    inside.data_ = static_cast<char*>(data_) + offset;
    inside.bytes_ = bytes;
    inside.owns_ = false;
    return inside;
}

void DeviceBuffer::reset() {
    if (!owns_) {
        data_ = nullptr;
        bytes_ = 0;
        owns_ = true;
    } else if (data_ != nullptr) {
        // Fails only after an error that has been said already, or while the process ends.
        static_cast<void>(cudaFree(data_));
        memory_use().bytes -= bytes_;
        data_ = nullptr;
        bytes_ = 0;
    }
}

void DeviceBuffer::ensure(std::size_t bytes) {
    if (data_ == nullptr) {
        *this = DeviceBuffer(bytes);
    }
}

}  // namespace train_cnn
