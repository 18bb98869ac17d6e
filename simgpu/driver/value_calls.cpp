// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream memory operations: waits for and writes of words in memory.

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {
namespace {

CUresult compare_of(unsigned flags, WaitCompare& out) {
    // A flush of remote writes is nothing to a device without peers on the bus.
    switch (flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH)) {
        case CU_STREAM_WAIT_VALUE_GEQ:
            out = WaitCompare::GreaterEqual;
            return CUDA_SUCCESS;
        case CU_STREAM_WAIT_VALUE_EQ:
            out = WaitCompare::Equal;
            return CUDA_SUCCESS;
        case CU_STREAM_WAIT_VALUE_AND:
            out = WaitCompare::And;
            return CUDA_SUCCESS;
        case CU_STREAM_WAIT_VALUE_NOR:
            out = WaitCompare::Nor;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult wait_value(CUstream handle, DefaultStream default_stream, CUdeviceptr va,
                    std::uint64_t value, unsigned bytes, unsigned flags) {
    StreamRef stream;
    WaitCompare compare{};
    SIMGPU_TRY(find_stream(handle, default_stream, stream));
    SIMGPU_TRY(compare_of(flags, compare));
    if (va == 0 || va % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
    return stream->wait_value(va, value, bytes, compare);
}

CUresult write_value(CUstream handle, DefaultStream default_stream, CUdeviceptr va,
                     std::uint64_t value, unsigned bytes, unsigned flags) {
    StreamRef stream;
    SIMGPU_TRY(find_stream(handle, default_stream, stream));
    if ((flags & ~static_cast<unsigned>(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (va == 0 || va % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
    return stream->write_value(va, value, bytes);
}

CUresult one_of_batch(CUstream stream, DefaultStream mode,
                      const CUstreamBatchMemOpParams& operation) {
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            return wait_value(stream, mode, operation.waitValue.address, operation.waitValue.value,
                              4, operation.waitValue.flags);
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            return wait_value(stream, mode, operation.waitValue.address,
                              operation.waitValue.value64, 8, operation.waitValue.flags);
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            return write_value(stream, mode, operation.writeValue.address,
                               operation.writeValue.value, 4, operation.writeValue.flags);
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            return write_value(stream, mode, operation.writeValue.address,
                               operation.writeValue.value64, 8, operation.writeValue.flags);
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        case CU_STREAM_MEM_OP_BARRIER:
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult batch(CUstream stream, DefaultStream mode, unsigned count,
               const CUstreamBatchMemOpParams* operations, unsigned flags) {
    constexpr unsigned kMaxOperations = 256;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (operations == nullptr || count > kMaxOperations || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) SIMGPU_TRY(one_of_batch(stream, mode, operations[i]));
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

#define SIMGPU_VALUE_CALLS(suffix)                                                                 \
    SIMGPU_CALL_PTSZ(cuStreamWaitValue32##suffix,                                                  \
                     (CUstream stream, CUdeviceptr va, cuuint32_t value, unsigned flags),          \
                     { return driver::wait_value(stream, default_stream, va, value, 4, flags); })  \
    SIMGPU_CALL_PTSZ(cuStreamWaitValue64##suffix,                                                  \
                     (CUstream stream, CUdeviceptr va, cuuint64_t value, unsigned flags),          \
                     { return driver::wait_value(stream, default_stream, va, value, 8, flags); })  \
    SIMGPU_CALL_PTSZ(cuStreamWriteValue32##suffix,                                                 \
                     (CUstream stream, CUdeviceptr va, cuuint32_t value, unsigned flags),          \
                     { return driver::write_value(stream, default_stream, va, value, 4, flags); }) \
    SIMGPU_CALL_PTSZ(cuStreamWriteValue64##suffix,                                                 \
                     (CUstream stream, CUdeviceptr va, cuuint64_t value, unsigned flags),          \
                     { return driver::write_value(stream, default_stream, va, value, 8, flags); }) \
    SIMGPU_CALL_PTSZ(                                                                              \
        cuStreamBatchMemOp##suffix,                                                                \
        (CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags),   \
        { return driver::batch(stream, default_stream, count, operations, flags); })
SIMGPU_VALUE_CALLS()
SIMGPU_VALUE_CALLS(_v2)
#undef SIMGPU_VALUE_CALLS
