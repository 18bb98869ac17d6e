// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The kernels of the stand-in. One struct is a kernel's only parameter. Device addresses come
// first, each in an 8-byte word of its own, where whoever reads parameters finds them, as in the
// vendor's kernels; a word has the same role in all launches of a kernel.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "simgpu/driver/host_kernel.h"

namespace libswap::simgpu::cudnn {

enum class Kernel : std::uint8_t {
#define SIMGPU_CUDNN_KERNEL(name, Params) name,
#include "simgpu/cudnn/kernels.def"
#undef SIMGPU_CUDNN_KERNEL
    Count
};

// The work of one launch of each kernel; the parameter block is the struct that kernels.def names.
#define SIMGPU_CUDNN_KERNEL(name, Params) void host_##name(const SimgpuHostLaunch* launch);
#include "simgpu/cudnn/kernels.def"
#undef SIMGPU_CUDNN_KERNEL

/// Launches on `stream` of the current context with about a thread for each of `threads`. The
/// first launch of a process loads the kernels. @thread any
CUresult launch(Kernel kernel, const void* params, std::size_t param_bytes, CUstream stream,
                std::int64_t threads);

template <typename Params>
CUresult launch(Kernel kernel, const Params& params, CUstream stream, std::int64_t threads) {
    return launch(kernel, &params, sizeof(params), stream, threads);
}

}  // namespace libswap::simgpu::cudnn
