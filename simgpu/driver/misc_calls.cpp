// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <cudaProfiler.h>

#include <atomic>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/stream.hpp"

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

CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
    thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, current);
    return CUDA_SUCCESS;
}

/// Nothing captures here yet.
CUresult capture_status(CUstream handle, DefaultStream default_stream,
                        CUstreamCaptureStatus* status) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    StreamRef stream;
    SIMGPU_TRY(find_stream(handle, default_stream, stream));
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuGetExportTable, (const void** table, const CUuuid* id),
            { return driver::export_table(table, id); })

SIMGPU_CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
            { return driver::exchange_capture_mode(mode); })
SIMGPU_CALL_PTSZ(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status),
                 { return driver::capture_status(stream, default_stream, status); })
SIMGPU_CALL_PTSZ(cuStreamGetCaptureInfo,
                 (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*),
                 { return driver::capture_status(stream, default_stream, status); })
SIMGPU_CALL_PTSZ(cuStreamGetCaptureInfo_v2,
                 (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                  const CUgraphNode**, size_t*),
                 { return driver::capture_status(stream, default_stream, status); })
SIMGPU_CALL_PTSZ(cuStreamGetCaptureInfo_v3,
                 (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                  const CUgraphNode**, const CUgraphEdgeData**, size_t*),
                 { return driver::capture_status(stream, default_stream, status); })

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
