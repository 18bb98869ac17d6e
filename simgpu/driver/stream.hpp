// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>

#include "simgpu/device/machine.hpp"
#include "simgpu/driver/context.hpp"
#include "simgpu/driver/entry.hpp"

namespace simgpu::driver {

/// What a CUstream points at.
struct StreamObject {
    Context& context;
    std::unique_ptr<simgpu::Stream> stream;
    std::atomic<CUsynchronizationPolicy> synchronization{CU_SYNC_POLICY_AUTO};
};

struct CapturedRecord;
struct StreamCapture;

/// A stream for the length of a call.
struct StreamRef {
    std::shared_ptr<StreamObject> owner;
    simgpu::Stream* stream = nullptr;
    Context* context = nullptr;
    /// Its part in a capture; only find_stream_for_work sets it.
    std::shared_ptr<StreamCapture> capture;

    simgpu::Stream* operator->() const { return stream; }
};

/// Looks up a handle; NULL and the two special handles are the calling thread's context's. Errors:
/// as current_context, CUDA_ERROR_INVALID_HANDLE, the context's device error.
CUresult find_stream(CUstream handle, DefaultStream default_stream, StreamRef& out);
/// The same, but a device error does not matter.
CUresult find_stream_even_failed(CUstream handle, DefaultStream default_stream, StreamRef& out);

/// The same for a call that submits work, or adds it to the graph where `out.capture` is set.
/// Errors also: STREAM_CAPTURE_INVALIDATED, and STREAM_CAPTURE_IMPLICIT for the legacy stream while
/// it would have to wait for a stream that captures, which is then invalidated.
CUresult find_stream_for_work(CUstream handle, DefaultStream default_stream, StreamRef& out);
/// The same for a call that waits for the stream or asks about it, which no capture allows.
CUresult find_stream_for_wait(CUstream handle, DefaultStream default_stream, StreamRef& out);

/// What a CUevent points at.
struct EventObject {
    Context& context;
    std::unique_ptr<simgpu::Event> event;
    /// Set while it was last recorded in a stream that captures. Covered by graphs_lock().
    std::shared_ptr<const CapturedRecord> captured;
    std::atomic<bool> is_captured{false};
};

CUresult find_event(CUevent handle, std::shared_ptr<EventObject>& out);

/// Forgets the streams and events of a context.
void release_streams_of(Context& context);

}  // namespace simgpu::driver
