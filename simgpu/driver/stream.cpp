// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/stream.hpp"

#include <algorithm>

#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/handle_table.hpp"
#include "simgpu/driver/pools.hpp"

namespace simgpu::driver {

namespace {

HandleTable<StreamObject>& streams() {
    static auto* table =
        new HandleTable<StreamObject>;  // leaked: calls may come after static destructors
    return *table;
}

HandleTable<EventObject>& events() {
    static auto* table = new HandleTable<EventObject>;  // leaked likewise
    return *table;
}

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

CUresult create_stream(CUstream* out, unsigned flags, int priority) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Context* context = nullptr;
    SIMGPU_TRY(current_context(context));
    priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    auto object =
        std::make_shared<StreamObject>(*context, context->device().create_stream(flags, priority));
    *out = reinterpret_cast<CUstream>(object.get());
    streams().add(std::move(object));
    return CUDA_SUCCESS;
}

CUresult destroy_stream(CUstream handle) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    auto object = streams().find(handle);
    if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    StreamRef ref{object, object->stream.get(), &object->context, nullptr};
    SIMGPU_TRY(refuse_where_captured(ref));
    return streams().remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult create_event(CUevent* out, unsigned flags) {
    constexpr unsigned kKnown =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    bool timed_interprocess =
        (flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0;
    if (timed_interprocess) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    SIMGPU_TRY(current_context(context));
    auto object = std::make_shared<EventObject>(*context, context->device().create_event(flags),
                                                nullptr, false);
    *out = reinterpret_cast<CUevent>(object.get());
    events().add(std::move(object));
    return CUDA_SUCCESS;
}

CUresult destroy_event(CUevent handle) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return events().remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult record(CUevent handle, CUstream stream, DefaultStream default_stream, unsigned flags) {
    if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const bool external = flags == CU_EVENT_RECORD_EXTERNAL;
    StreamRef ref;
    std::shared_ptr<EventObject> event;
    SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    SIMGPU_TRY(find_event(handle, event));
    if (&event->context != ref.context) return CUDA_ERROR_INVALID_HANDLE;
    if (ref.capture != nullptr) {
        if (external) return capture_task(ref, EventRecordTask{event});
        capture_record(ref, *event);
        return CUDA_SUCCESS;
    }
    // A node of its own is what the flag asks for, and there is none outside of a capture.
    if (external) return CUDA_ERROR_INVALID_VALUE;
    forget_captured_record(*event);
    return ref->record(*event->event);
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<EventObject> first;
    std::shared_ptr<EventObject> last;
    SIMGPU_TRY(find_event(start, first));
    SIMGPU_TRY(find_event(end, last));
    SIMGPU_TRY(check_event_not_captured(*first));
    SIMGPU_TRY(check_event_not_captured(*last));
    auto result = simgpu::Event::elapsed_ms(*first->event, *last->event);
    if (!result) return result.error();
    *milliseconds = *result;
    return CUDA_SUCCESS;
}

CUresult wait_event(CUstream stream, CUevent handle, unsigned flags, DefaultStream default_stream) {
    if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const bool external = flags == CU_EVENT_WAIT_EXTERNAL;
    StreamRef ref;
    std::shared_ptr<EventObject> event;
    SIMGPU_TRY(find_stream_for_work(stream, default_stream, ref));
    SIMGPU_TRY(find_event(handle, event));
    if (external) {
        if (ref.capture == nullptr) return CUDA_ERROR_INVALID_VALUE;
        return capture_task(ref, EventWaitTask{event});
    }
    bool done = false;
    SIMGPU_TRY(capture_wait(ref, *event, done));
    return done ? CUDA_SUCCESS : ref->wait(*event->event);
}

CUresult get_attribute(CUstream stream, DefaultStream default_stream, CUstreamAttrID which,
                       CUstreamAttrValue* value) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    StreamRef ref;
    SIMGPU_TRY(find_stream(stream, default_stream, ref));
    *value = {};
    switch (which) {
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            value->priority = ref->priority();
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            value->syncPolicy =
                ref.owner != nullptr ? ref.owner->synchronization.load() : CU_SYNC_POLICY_AUTO;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult set_attribute(CUstream stream, DefaultStream default_stream, CUstreamAttrID which,
                       const CUstreamAttrValue* value) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    StreamRef ref;
    SIMGPU_TRY(find_stream(stream, default_stream, ref));
    switch (which) {
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            if (ref.owner != nullptr) ref.owner->synchronization = value->syncPolicy;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:  // hints: there is no cache to steer
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

template <typename T, typename Get>
CUresult ask(CUstream stream, DefaultStream default_stream, T* out, Get&& get) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    StreamRef ref;
    SIMGPU_TRY(find_stream(stream, default_stream, ref));
    *out = get(ref);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult find_stream_even_failed(CUstream handle, DefaultStream default_stream, StreamRef& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    bool special =
        handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
    if (!special) {
        out.owner = streams().find(handle);
        if (out.owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
        out.stream = out.owner->stream.get();
        out.context = &out.owner->context;
        return CUDA_SUCCESS;
    }
    SIMGPU_TRY(current_context_even_failed(out.context));
    bool per_thread = handle == CU_STREAM_PER_THREAD ||
                      (handle == nullptr && default_stream == DefaultStream::PerThread);
    simgpu::Context& device = out.context->device();
    out.stream = per_thread ? &device.per_thread_stream() : &device.legacy_stream();
    return CUDA_SUCCESS;
}

CUresult find_stream(CUstream handle, DefaultStream default_stream, StreamRef& out) {
    SIMGPU_TRY(find_stream_even_failed(handle, default_stream, out));
    return out.context->sticky_error();
}

CUresult find_event(CUevent handle, std::shared_ptr<EventObject>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = events().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void release_streams_of(Context& context) {
    drop_captures_of(context);
    streams().remove_if([&](const StreamObject& object) { return &object.context == &context; });
    events().remove_if([&](const EventObject& object) { return &object.context == &context; });
}

}  // namespace simgpu::driver

SIMGPU_CALL(cuStreamCreate, (CUstream * out, unsigned flags),
            { return driver::create_stream(out, flags, 0); })
SIMGPU_CALL(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),
            { return driver::create_stream(out, flags, priority); })
SIMGPU_CALL(cuStreamDestroy, (CUstream stream), { return driver::destroy_stream(stream); })
SIMGPU_CALL(cuStreamDestroy_v2, (CUstream stream), { return driver::destroy_stream(stream); })

SIMGPU_CALL(cuCtxGetStreamPriorityRange, (int* least, int* greatest), {
    driver::Context* context = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    if (least != nullptr) *least = driver::kLeastPriority;
    if (greatest != nullptr) *greatest = driver::kGreatestPriority;
    return CUDA_SUCCESS;
})

SIMGPU_CALL_PTSZ(cuStreamSynchronize, (CUstream stream), {
    driver::StreamRef ref;
    SIMGPU_TRY(driver::find_stream_for_wait(stream, default_stream, ref));
    SIMGPU_TRY(ref->synchronize());
    driver::release_after_wait();
    return CUDA_SUCCESS;
})

SIMGPU_CALL_PTSZ(cuStreamQuery, (CUstream stream), {
    driver::StreamRef ref;
    SIMGPU_TRY(driver::find_stream_for_wait(stream, default_stream, ref));
    return ref->query();
})

SIMGPU_CALL_PTSZ(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
                 { return driver::wait_event(stream, event, flags, default_stream); })

SIMGPU_CALL_PTSZ(cuStreamGetPriority, (CUstream stream, int* priority), {
    return driver::ask(stream, default_stream, priority,
                       [](const driver::StreamRef& ref) { return ref->priority(); });
})
SIMGPU_CALL_PTSZ(cuStreamGetFlags, (CUstream stream, unsigned* flags), {
    return driver::ask(stream, default_stream, flags,
                       [](const driver::StreamRef& ref) { return ref->flags(); });
})
SIMGPU_CALL_PTSZ(cuStreamGetId, (CUstream stream, unsigned long long* id), {
    return driver::ask(stream, default_stream, id,
                       [](const driver::StreamRef& ref) { return ref->id(); });
})
SIMGPU_CALL_PTSZ(cuStreamGetDevice, (CUstream stream, CUdevice* device), {
    return driver::ask(stream, default_stream, device,
                       [](const driver::StreamRef& ref) { return ref.context->gpu.ordinal; });
})
SIMGPU_CALL_PTSZ(cuStreamGetCtx, (CUstream stream, CUcontext* context), {
    return driver::ask(stream, default_stream, context,
                       [](const driver::StreamRef& ref) { return ref.context->handle(); });
})
SIMGPU_CALL_PTSZ(cuStreamGetCtx_v2, (CUstream stream, CUcontext* context, CUgreenCtx* green), {
    if (green != nullptr) *green = nullptr;
    return driver::ask(stream, default_stream, context,
                       [](const driver::StreamRef& ref) { return ref.context->handle(); });
})
SIMGPU_CALL_PTSZ(cuStreamGetAttribute,
                 (CUstream stream, CUstreamAttrID which, CUstreamAttrValue* value),
                 { return driver::get_attribute(stream, default_stream, which, value); })
SIMGPU_CALL_PTSZ(cuStreamSetAttribute,
                 (CUstream stream, CUstreamAttrID which, const CUstreamAttrValue* value),
                 { return driver::set_attribute(stream, default_stream, which, value); })
SIMGPU_CALL_PTSZ(cuStreamCopyAttributes, (CUstream to, CUstream from), {
    driver::StreamRef source;
    driver::StreamRef target;
    SIMGPU_TRY(driver::find_stream(from, default_stream, source));
    SIMGPU_TRY(driver::find_stream(to, default_stream, target));
    if (source.owner != nullptr && target.owner != nullptr) {
        target.owner->synchronization = source.owner->synchronization.load();
    }
    return CUDA_SUCCESS;
})
SIMGPU_CALL_PTSZ(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr, size_t, unsigned), {
    driver::StreamRef ref;  // managed memory is always visible everywhere here
    SIMGPU_TRY(driver::find_stream_for_work(stream, default_stream, ref));
    return driver::refuse_where_captured(ref);
})

SIMGPU_CALL(cuEventCreate, (CUevent * out, unsigned flags),
            { return driver::create_event(out, flags); })
SIMGPU_CALL(cuEventDestroy, (CUevent event), { return driver::destroy_event(event); })
SIMGPU_CALL(cuEventDestroy_v2, (CUevent event), { return driver::destroy_event(event); })
SIMGPU_CALL_PTSZ(cuEventRecord, (CUevent event, CUstream stream),
                 { return driver::record(event, stream, default_stream, CU_EVENT_RECORD_DEFAULT); })
SIMGPU_CALL_PTSZ(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
                 { return driver::record(event, stream, default_stream, flags); })
SIMGPU_CALL(cuEventQuery, (CUevent handle), {
    std::shared_ptr<driver::EventObject> event;
    SIMGPU_TRY(driver::find_event(handle, event));
    SIMGPU_TRY(driver::check_event_not_captured(*event));
    SIMGPU_TRY(driver::check_unsafe_call());
    return event->event->query();
})
SIMGPU_CALL(cuEventSynchronize, (CUevent handle), {
    std::shared_ptr<driver::EventObject> event;
    SIMGPU_TRY(driver::find_event(handle, event));
    SIMGPU_TRY(driver::check_event_not_captured(*event));
    SIMGPU_TRY(driver::check_unsafe_call());
    SIMGPU_TRY(event->event->synchronize());
    driver::release_after_wait();
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuEventElapsedTime, (float* milliseconds, CUevent start, CUevent end),
            { return driver::elapsed(milliseconds, start, end); })
SIMGPU_CALL(cuEventElapsedTime_v2, (float* milliseconds, CUevent start, CUevent end),
            { return driver::elapsed(milliseconds, start, end); })
