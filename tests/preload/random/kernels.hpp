// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What random programs run on the device. Kernels touch one word a KiB: every page, few
// instructions.

#pragma once

#include <cuda_runtime.h>

#include "program.hpp"

namespace random_programs {

/// How a kernel gets its pointers.
enum class Passing { Direct, Structure, Extended, Base, kCount };

/// A part of memory: `base` + `offset_bytes`.
struct Part {
    char* base = nullptr;
    std::size_t offset_bytes = 0;
    unsigned* words() const { return reinterpret_cast<unsigned*>(base + offset_bytes); }
};

/// dst = mixed(dst, a, b, salt), `count` words, one a KiB.
cudaError_t launch_mix(Passing passing, const Part& dst, const Part& a, const Part& b,
                       unsigned count, unsigned salt, cudaStream_t stream);

/// The first entry of the table = all others mixed; the table is in device memory.
cudaError_t launch_table_mix(unsigned* const* table, unsigned count, unsigned salt,
                             cudaStream_t stream);

/// The same with table number `which` of the module, which no parameter names.
cudaError_t launch_module_table_mix(unsigned which, unsigned count, unsigned salt,
                                    cudaStream_t stream);

/// Where the module's table number `which` is on the current device.
cudaError_t module_table(unsigned which, void** address);

}  // namespace random_programs
