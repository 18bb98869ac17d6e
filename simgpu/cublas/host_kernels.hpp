// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

#include "simgpu/driver/host_kernel.h"

namespace libswap::simgpu::cublas {

/// Elements from the first of a matrix to its last, in columns `ld` apart.
inline std::int64_t extent(std::int64_t rows, std::int64_t columns, std::int64_t ld) {
    return rows <= 0 || columns <= 0 ? 0 : (columns - 1) * ld + rows;
}

/// The work of one launch of each kernel; the parameter block is the struct of kernels.hpp.
void host_gemm(const SimgpuHostLaunch* launch);
void host_complex_gemm(const SimgpuHostLaunch* launch);
void host_matrix(const SimgpuHostLaunch* launch);
void host_vector(const SimgpuHostLaunch* launch);

}  // namespace libswap::simgpu::cublas
