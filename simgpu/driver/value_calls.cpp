// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Stream memory operations: waits for and writes of words in memory.

#include "simgpu/driver/value_calls.hpp"

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/graph/capture.hpp"
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

CUresult check_word(CUdeviceptr va, unsigned bytes) {
    return va != 0 && va % bytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_one(const CUstreamBatchMemOpParams& operation) {
    WaitCompare compare{};
    const auto& wait = operation.waitValue;
    const auto& write = operation.writeValue;
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            SIMGPU_TRY(compare_of(wait.flags, compare));
            return check_word(wait.address,
                              wait.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ? 4 : 8);
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            if ((write.flags & ~static_cast<unsigned>(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) !=
                0) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            return check_word(write.address,
                              write.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ? 4 : 8);
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        case CU_STREAM_MEM_OP_BARRIER:
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult submit_one(simgpu::Stream& stream, const CUstreamBatchMemOpParams& operation) {
    const auto step = value_step(operation);
    if (!step) return CUDA_SUCCESS;
    if (step->kind == GraphStep::Kind::WriteValue)
        return stream.write_value(step->va, step->value, step->value_bytes);
    return stream.wait_value(step->va, step->value, step->value_bytes, step->compare);
}

CUresult batch(CUstream handle, DefaultStream default_stream, unsigned count,
               const CUstreamBatchMemOpParams* operations, unsigned flags) {
    StreamRef stream;
    SIMGPU_TRY(find_stream_for_work(handle, default_stream, stream));
    SIMGPU_TRY(check_value_operations(count, operations, flags));
    if (stream.capture != nullptr) {
        return capture_task(stream,
                            MemOpTask{stream.context, {operations, operations + count}, flags});
    }
    for (unsigned i = 0; i < count; ++i) SIMGPU_TRY(submit_one(*stream.stream, operations[i]));
    return CUDA_SUCCESS;
}

CUresult wait_value(CUstream stream, DefaultStream default_stream, CUdeviceptr va,
                    std::uint64_t value, unsigned bytes, unsigned flags) {
    CUstreamBatchMemOpParams operation{};
    operation.waitValue.operation =
        bytes == 4 ? CU_STREAM_MEM_OP_WAIT_VALUE_32 : CU_STREAM_MEM_OP_WAIT_VALUE_64;
    operation.waitValue.address = va;
    operation.waitValue.value64 = value;
    operation.waitValue.flags = flags;
    return batch(stream, default_stream, 1, &operation, 0);
}

CUresult write_value(CUstream stream, DefaultStream default_stream, CUdeviceptr va,
                     std::uint64_t value, unsigned bytes, unsigned flags) {
    CUstreamBatchMemOpParams operation{};
    operation.writeValue.operation =
        bytes == 4 ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operation.writeValue.address = va;
    operation.writeValue.value64 = value;
    operation.writeValue.flags = flags;
    return batch(stream, default_stream, 1, &operation, 0);
}

}  // namespace

CUresult check_value_operations(unsigned count, const CUstreamBatchMemOpParams* operations,
                                unsigned flags) {
    constexpr unsigned kMaxOperations = 256;
    if (operations == nullptr || count > kMaxOperations || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) SIMGPU_TRY(check_one(operations[i]));
    return CUDA_SUCCESS;
}

std::optional<GraphStep> value_step(const CUstreamBatchMemOpParams& operation) {
    GraphStep step;
    const auto& wait = operation.waitValue;
    const auto& write = operation.writeValue;
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64: {
            const bool narrow = wait.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32;
            step.kind = GraphStep::Kind::WaitValue;
            step.va = wait.address;
            step.value = narrow ? wait.value : wait.value64;
            step.value_bytes = narrow ? 4 : 8;
            static_cast<void>(compare_of(wait.flags, step.compare));
            return step;
        }
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
            const bool narrow = write.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32;
            step.kind = GraphStep::Kind::WriteValue;
            step.va = write.address;
            step.value = narrow ? write.value : write.value64;
            step.value_bytes = narrow ? 4 : 8;
            return step;
        }
        default:
            // Barriers order what simulated memory orders anyway.
            return std::nullopt;
    }
}

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
