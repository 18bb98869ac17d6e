// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

#include "simgpu/cublas/api.hpp"

namespace libswap::simgpu::cublas {

/// True for what a program may pass as an operation: plain, transposed, or conjugate transposed.
inline bool is_operation(cublasOperation_t operation) {
    return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

/// A device address, which cuBLAS's interface passes as a pointer.
inline std::uint64_t address(const void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace libswap::simgpu::cublas
