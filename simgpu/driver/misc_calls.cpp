// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <cudaProfiler.h>

#include <atomic>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/log.hpp"

namespace simgpu::driver {
namespace {

/// Private tables are not imitated. NVIDIA's runtime, static or shared, cannot start without two of
/// them.
CUresult export_table(const void** table, const CUuuid* id) {
    if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) {
        say("this program uses NVIDIA's own CUDA runtime, which asks the driver for private tables "
            "(first {:02x}"
            "{:02x}{:02x}{:02x}-...): build it with `nvcc -cudart shared` and let it load simgpu's "
            "libcudart.so.13",
            static_cast<unsigned char>(id->bytes[0]), static_cast<unsigned char>(id->bytes[1]),
            static_cast<unsigned char>(id->bytes[2]), static_cast<unsigned char>(id->bytes[3]));
    }
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuGetExportTable, (const void** table, const CUuuid* id),
            { return driver::export_table(table, id); })

SIMGPU_CALL(cuProfilerInitialize, (const char*, const char*, CUoutput_mode), {
    return CUDA_ERROR_PROFILER_DISABLED;  // as in drivers since CUDA 12
})
SIMGPU_CALL(cuProfilerStart, (), {
    driver::Context* context = nullptr;
    return driver::current_context(context);
})
SIMGPU_CALL(cuProfilerStop, (), {
    driver::Context* context = nullptr;
    return driver::current_context(context);
})
