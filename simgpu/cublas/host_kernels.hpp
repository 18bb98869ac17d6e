// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/driver/host_kernel.h"

namespace libswap::simgpu::cublas {

/// The work of one launch of each kernel; the parameter block is the struct of kernels.hpp.
void host_gemm(const SimgpuHostLaunch* launch);
void host_complex_gemm(const SimgpuHostLaunch* launch);
void host_matrix(const SimgpuHostLaunch* launch);
void host_vector(const SimgpuHostLaunch* launch);

}  // namespace libswap::simgpu::cublas
