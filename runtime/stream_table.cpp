// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/stream_table.hpp"

#include <algorithm>
#include <thread>

#include "runtime/context_scope.hpp"

namespace libswap {
namespace {

/// A number per thread, never reused (thread ids of the system are).
std::uint64_t this_thread_number() noexcept {
    static std::atomic<std::uint64_t> next{1};
    thread_local std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

std::uint64_t next_table_id() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

bool refused_by_capture(CUresult code) noexcept {
    return code >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           code <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

}  // namespace

StreamTable::StreamTable(const Driver& driver) noexcept
    : driver_(driver), id_(next_table_id()), entries_(new std::atomic<Entry*>[kMaxStreams]()) {}

StreamTable::~StreamTable() {
    for (StreamIndex i = 0; i < count(); ++i) {
        Entry* entry = entries_[i].load();
        while (entry->pending--)
            LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(
                entry->events[(entry->first + entry->pending) % kEventsPerStream].event));
        while (entry->spares--)
            LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(entry->spare[entry->spares]));
        delete entry;
    }
}

void StreamTable::raise(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept {
    std::uint64_t old = value.load(std::memory_order_relaxed);
    while (old < to && !value.compare_exchange_weak(old, to, std::memory_order_acq_rel)) {
    }
}

StreamIndex StreamTable::lookup(CUcontext context, CUstream stream,
                                std::uint64_t thread) const noexcept {
    const StreamIndex count = this->count();
    for (StreamIndex i = 0; i < count; ++i) {
        const Entry& entry = *entries_[i].load(std::memory_order_acquire);
        if (entry.stream == stream && entry.thread == thread &&
            (entry.context == context || !is_special(stream)) &&
            entry.alive.load(std::memory_order_relaxed))
            return i;
    }
    return kNoStream;
}

StreamIndex StreamTable::find(CUcontext context, CUstream stream) noexcept {
    // Most programs name one stream again and again.
    thread_local struct {
        std::uint64_t table = 0;
        CUcontext context = nullptr;
        CUstream stream = nullptr;
        StreamIndex index = kNoStream;
    } last;
    if (last.table == id_ && last.stream == stream && last.context == context &&
        alive(last.index) && handle(last.index) == stream)
        return last.index;
    const std::uint64_t thread = stream == CU_STREAM_PER_THREAD ? this_thread_number() : 0;
    StreamIndex index = lookup(context, stream, thread);
    if (index == kNoStream) index = insert(context_of(stream, context), stream, thread);
    last.table = id_;
    last.context = context;
    last.stream = stream;
    last.index = index;
    return index;
}

/// A copy, and much else, may be issued on a stream of another context than the current one.
CUcontext StreamTable::context_of(CUstream stream, CUcontext current) const noexcept {
    CUcontext context = nullptr;
    const bool told = !is_special(stream) && driver_.cuStreamGetCtx &&
                      driver_.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS && context;
    return told ? context : current;
}

StreamIndex StreamTable::insert(CUcontext context, CUstream stream, std::uint64_t thread) noexcept {
    std::lock_guard lock(insert_mutex_);
    StreamIndex index = lookup(context, stream, thread);
    if (index != kNoStream) return index;
    index = reusable(context);
    const bool reused = index != kNoStream;
    if (!reused) index = count_.load(std::memory_order_relaxed);
    if (index == kMaxStreams) return kNoStream;
    Entry* entry = reused ? entries_[index].load() : new (std::nothrow) Entry;
    if (!entry) return kNoStream;
    entry->context = context;
    entry->stream = stream;
    entry->thread = thread;
    entry->alive.store(true, std::memory_order_release);
    if (reused) return index;
    entries_[index].store(entry, std::memory_order_release);
    count_.store(index + 1, std::memory_order_release);
    return index;
}

StreamIndex StreamTable::reusable(CUcontext context) noexcept {
    // Numbers go on where the last stream's ended, so uses that still name its places stay true.
    for (StreamIndex i = 0; i < count(); ++i) {
        const Entry& entry = *entries_[i].load();
        if (!entry.alive.load() && entry.context == context && entry.done >= entry.last) return i;
    }
    return kNoStream;
}

bool StreamTable::alive(StreamIndex stream) const noexcept {
    return stream != kNoStream && entries_[stream].load()->alive.load(std::memory_order_acquire);
}

Use StreamTable::take_place(StreamIndex stream) noexcept {
    return Use::make(stream,
                     entries_[stream].load()->last.fetch_add(1, std::memory_order_acq_rel) + 1);
}

/// Null where all are out, or the driver makes no more: `made` is its error then.
CUevent StreamTable::spare_event(Entry& entry, Status* made) noexcept {
    {
        std::lock_guard lock(entry.mutex);
        if (entry.spares) return entry.spare[--entry.spares];
        if (entry.pending == kEventsPerStream) return nullptr;
    }
    CUevent event = nullptr;
    *made = LIBSWAP_CU(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return *made ? event : nullptr;
}

Status StreamTable::record(StreamIndex stream) noexcept {
    Entry& entry = *entries_[stream].load();
    return record_on(entry, entry.stream);
}

void StreamTable::cover_other_threads() noexcept {
    for (StreamIndex i = 0; i < count(); ++i) {
        Entry& entry = *entries_[i].load();
        if (entry.thread == 0 || may_record(i) || !entry.alive) continue;
        // Behind all that was issued on it. Without it the blocks it used do not move.
        (void)record_on(entry, CU_STREAM_LEGACY);
    }
}

Status StreamTable::record_on(Entry& entry, CUstream stream) noexcept {
    const std::uint64_t place = entry.last.load(std::memory_order_acquire);
    if (place <= entry.covered.load(std::memory_order_acquire)) return {};
    recording_.fetch_add(1, std::memory_order_seq_cst);
    const Status recorded = captures_.load(std::memory_order_seq_cst) == 0
                                ? record_place(entry, stream, place)
                                : fail(CUDA_ERROR_NOT_READY, "events during a capture");
    recording_.fetch_sub(1, std::memory_order_seq_cst);
    return recorded;
}

void StreamTable::forbid_records() noexcept {
    captures_.fetch_add(1, std::memory_order_seq_cst);
    while (recording_.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
}

Status StreamTable::record_place(Entry& entry, CUstream stream, std::uint64_t place) noexcept {
    const ContextScope scope(driver_, entry.context);
    Status made;
    CUevent event = spare_event(entry, &made);
    if (!event) {
        poll(entry);
        event = spare_event(entry, &made);
    }
    if (!event) {
        const Status again = record_newest_again(entry, stream, place);
        return again || made ? again : made;
    }
    const Status recorded = LIBSWAP_CU(driver_.cuEventRecord(event, stream));
    bool leaked = false;
    {
        std::lock_guard lock(entry.mutex);
        if (recorded && entry.pending < kEventsPerStream) {
            entry.events[(entry.first + entry.pending) % kEventsPerStream] = {event, place};
            ++entry.pending;
        } else if (entry.spares < kEventsPerStream) {
            entry.spare[entry.spares++] = event;
        } else {
            leaked = true;
        }
    }
    if (leaked) {
        LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(event));
        return recorded ? fail(CUDA_ERROR_NOT_READY, "events of a stream") : recorded;
    }
    if (recorded) raise(entry.covered, place);
    return recorded;
}

/// No event is to be had. The newest, recorded once more, covers its old place as well, only later:
/// so however far a program runs ahead, what it did last is covered.
Status StreamTable::record_newest_again(Entry& entry, CUstream stream,
                                        std::uint64_t place) noexcept {
    const auto newest = [&entry]() -> Covered& {
        return entry.events[(entry.first + entry.pending - 1) % kEventsPerStream];
    };
    CUevent event = nullptr;
    {
        std::lock_guard lock(entry.mutex);
        if (entry.pending != 0) event = newest().event;
    }
    if (!event) {
        // There are none to be had: what waits for this place asks until the stream has run dry.
        if (stream != entry.stream || driver_.cuStreamQuery(stream) != CUDA_SUCCESS)
            return fail(CUDA_ERROR_NOT_READY, "events of a stream");
        raise(entry.done, place);
        return {};
    }
    LIBSWAP_TRY(LIBSWAP_CU(driver_.cuEventRecord(event, stream)));
    std::lock_guard lock(entry.mutex);
    // Retired meanwhile, or no longer the newest: later is never wrong for what it stands for now.
    if (entry.pending == 0 || newest().event != event)
        return fail(CUDA_ERROR_NOT_READY, "events of a stream");
    newest().place = std::max(newest().place, place);
    raise(entry.covered, place);
    return {};
}

bool StreamTable::query(CUevent event) noexcept {
    const CUresult code = driver_.cuEventQuery(event);
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY)
        failures_.store(0, std::memory_order_relaxed);
    else if (!refused_by_capture(code))
        failures_.fetch_add(1, std::memory_order_relaxed);
    return code == CUDA_SUCCESS;
}

void StreamTable::poll(Entry& entry) noexcept {
    for (;;) {
        Covered oldest;
        {
            std::lock_guard lock(entry.mutex);
            if (entry.pending == 0) return;
            oldest = entry.events[entry.first];
        }
        // Not under the lock. If somebody else retires the event meanwhile, and it is recorded
        // again, "complete" is still true of the older place.
        if (!query(oldest.event)) return;
        raise(entry.done, oldest.place);
        std::lock_guard lock(entry.mutex);
        if (entry.pending == 0 || entry.events[entry.first].event != oldest.event ||
            entry.events[entry.first].place != oldest.place)
            continue;
        entry.first = (entry.first + 1) % kEventsPerStream;
        --entry.pending;
        if (entry.spares < kEventsPerStream) entry.spare[entry.spares++] = oldest.event;
    }
}

bool StreamTable::known_complete(Use use) const noexcept {
    if (!use) return true;
    return entries_[use.stream()].load()->done.load(std::memory_order_acquire) >= use.place();
}

bool StreamTable::is_complete(Use use) noexcept {
    if (known_complete(use)) return true;
    Entry& entry = *entries_[use.stream()].load();
    if (entry.covered.load(std::memory_order_acquire) < use.place()) {
        // Not covered: an older event cannot help.
        return false;
    }
    poll(entry);
    return known_complete(use);
}

bool StreamTable::look(Use use) noexcept {
    if (is_complete(use)) return true;
    const bool recorded =
        !is_covered(use) && may_record(use.stream()) && record(use.stream()).has_value();
    return recorded && is_complete(use);
}

bool StreamTable::is_covered(Use use) const noexcept {
    return known_complete(use) ||
           entries_[use.stream()].load()->covered.load(std::memory_order_acquire) >= use.place();
}

CUevent StreamTable::covering_event(Use use) noexcept {
    Entry& entry = *entries_[use.stream()].load();
    std::lock_guard lock(entry.mutex);
    for (std::size_t i = 0; i < entry.pending; ++i) {
        const Covered& covered = entry.events[(entry.first + i) % kEventsPerStream];
        if (covered.place >= use.place()) return covered.event;
    }
    return nullptr;
}

void StreamTable::mark_complete(StreamIndex stream, std::uint64_t place) noexcept {
    raise(entries_[stream].load()->done, place);
}

std::uint64_t StreamTable::last_place(StreamIndex stream) const noexcept {
    return entries_[stream].load()->last.load(std::memory_order_acquire);
}

std::uint64_t StreamTable::done_place(StreamIndex stream) const noexcept {
    return entries_[stream].load()->done.load(std::memory_order_acquire);
}

bool StreamTable::may_record(StreamIndex stream) const noexcept {
    const Entry& entry = *entries_[stream].load();
    return entry.alive.load(std::memory_order_acquire) &&
           (entry.thread == 0 || entry.thread == this_thread_number());
}

CUstream StreamTable::handle(StreamIndex stream) const noexcept {
    return entries_[stream].load()->stream;
}

CUcontext StreamTable::context(StreamIndex stream) const noexcept {
    return entries_[stream].load()->context;
}

void StreamTable::retire(StreamIndex stream) noexcept {
    // Without an event nobody could ever tell that its work is done.
    const std::uint64_t place = last_place(stream);
    if (!record(stream) && LIBSWAP_CU(driver_.cuStreamSynchronize(handle(stream))))
        mark_complete(stream, place);
    entries_[stream].load()->alive.store(false, std::memory_order_release);
}

void StreamTable::retire_handle(CUstream stream) noexcept {
    for (StreamIndex i = 0; i < count(); ++i)
        if (alive(i) && handle(i) == stream) retire(i);
}

void StreamTable::forget_context(CUcontext context) noexcept {
    for (StreamIndex i = 0; i < count(); ++i) {
        Entry& entry = *entries_[i].load();
        if (entry.context != context) continue;
        {
            std::lock_guard lock(entry.mutex);
            entry.alive = false;
            entry.context = nullptr;
            entry.pending = entry.spares = entry.first = 0;
        }
        raise(entry.done, entry.last.load());
    }
    failures_.store(0, std::memory_order_relaxed);
}

}  // namespace libswap
