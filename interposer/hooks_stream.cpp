// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

// Streams, events and what waits for them.

namespace libswap {
namespace {

CUresult note_stream(Engine& engine, CUresult result, const CUstream* stream) noexcept {
    if (result == CUDA_SUCCESS && stream) engine.stream_created(*stream);
    return result;
}

/// The address that an entry of a batch of stream operations waits on or writes.
std::uint64_t operation_address(const CUstreamBatchMemOpParams& params) noexcept {
    switch (params.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            return params.waitValue.address;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            return params.writeValue.address;
        default:
            return 0;
    }
}

CUresult each_operation(Engine& engine, const CUstreamBatchMemOpParams* params, unsigned count,
                        RealCall real) noexcept {
    if (count == 0 || !params) return real();
    const std::uint64_t address = operation_address(*params);
    const auto rest = [&] { return each_operation(engine, params + 1, count - 1, real); };
    if (params->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
        return engine.stream_write(address, params->writeValue.value64, rest);
    return address ? engine.use_for_good(&address, 1, StayReason::StreamValue, rest) : rest();
}

CUresult wait_value(Engine& engine, std::uint64_t address, std::uint64_t, RealCall real) noexcept {
    return engine.use_for_good(&address, 1, StayReason::StreamValue, real);
}

CUresult write_value(Engine& engine, std::uint64_t address, cuuint32_t, RealCall real) noexcept {
    return engine.use_for_good(&address, 1, StayReason::StreamValue, real);
}

/// It may be a pointer.
CUresult write_value(Engine& engine, std::uint64_t address, cuuint64_t value,
                     RealCall real) noexcept {
    return engine.stream_write(address, value, real);
}

}  // namespace
}  // namespace libswap

LIBSWAP_HOOK(cuStreamCreate, (CUstream * stream, unsigned flags), (stream, flags),
             return note_stream(engine, real(), stream);)

LIBSWAP_HOOK(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
             (stream, flags, priority), return note_stream(engine, real(), stream);)

LIBSWAP_HOOK(cuGreenCtxStreamCreate,
             (CUstream * stream, CUgreenCtx context, unsigned flags, int priority),
             (stream, context, flags, priority), return note_stream(engine, real(), stream);)

LIBSWAP_HOOK(cuStreamDestroy, (CUstream stream), (stream),
             return engine.stream_destroy(stream, real);)

LIBSWAP_HOOK(cuStreamDestroy_v2, (CUstream stream), (stream),
             return engine.stream_destroy(stream, real);)

LIBSWAP_HOOK_TWINS(cuStreamSynchronize, _ptsz, (CUstream stream), (stream),
                   return engine.stream_synchronize(on(stream), real);)

LIBSWAP_HOOK_TWINS(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
                   (stream, event, flags),
                   return engine.stream_wait_event(on(stream), event, real);)

LIBSWAP_HOOK_TWINS(cuEventRecord, _ptsz, (CUevent event, CUstream stream), (event, stream),
                   return engine.event_record(event, on(stream), real);)

LIBSWAP_HOOK_TWINS(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
                   (event, stream, flags), return engine.event_record(event, on(stream), real);)

LIBSWAP_HOOK(cuEventDestroy, (CUevent event), (event), return engine.event_destroy(event, real);)

LIBSWAP_HOOK(cuEventDestroy_v2, (CUevent event), (event), return engine.event_destroy(event, real);)

LIBSWAP_HOOK(cuCtxSynchronize, (), (), return engine.context_synchronize(real);)

LIBSWAP_HOOK(cuCtxSynchronize_v2, (CUcontext context), (context),
             return engine.context_synchronize(real);)

#define LIBSWAP_VALUE_HOOKS(name, Value, what)                                                 \
    LIBSWAP_HOOK_TWINS(                                                                        \
        name, _ptsz, (CUstream stream, CUdeviceptr address, Value value, unsigned flags),      \
        (stream, address, value, flags), return what(engine, address, value, real);)           \
    LIBSWAP_HOOK_TWINS(                                                                        \
        name##_v2, _ptsz, (CUstream stream, CUdeviceptr address, Value value, unsigned flags), \
        (stream, address, value, flags), return what(engine, address, value, real);)

LIBSWAP_VALUE_HOOKS(cuStreamWriteValue32, cuuint32_t, write_value)
LIBSWAP_VALUE_HOOKS(cuStreamWriteValue64, cuuint64_t, write_value)
LIBSWAP_VALUE_HOOKS(cuStreamWaitValue32, cuuint32_t, wait_value)
LIBSWAP_VALUE_HOOKS(cuStreamWaitValue64, cuuint64_t, wait_value)

LIBSWAP_HOOK_TWINS(cuStreamBatchMemOp, _ptsz,
                   (CUstream stream, unsigned count, CUstreamBatchMemOpParams* params,
                    unsigned flags),
                   (stream, count, params, flags),
                   return each_operation(engine, params, count, real);)

LIBSWAP_HOOK_TWINS(cuStreamBatchMemOp_v2, _ptsz,
                   (CUstream stream, unsigned count, CUstreamBatchMemOpParams* params,
                    unsigned flags),
                   (stream, count, params, flags),
                   return each_operation(engine, params, count, real);)
