// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What has been submitted, and what is known to be done. An operation takes a *place*, a number per
// stream, after the driver's call has returned; an event recorded later covers all places taken
// before its record call began (protocol rules 1 and 3).
//
//   places of a stream   1 2 3 4 5 6 7 8 9
//                        ......|     |
//                        done  |     '-- an event covers 7
//                              '-- an event covers 4, and its query said "complete"

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/driver.hpp"
#include "runtime/ranked_mutex.hpp"

namespace libswap {

using StreamIndex = std::uint16_t;
inline constexpr StreamIndex kNoStream = UINT16_MAX;

/// Those exist once in each context; the handle of any other names one stream of the process.
inline bool is_special(CUstream stream) noexcept {
    return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/// A place on a stream, in one word. 0 is "none".
struct Use {
    std::uint64_t raw = 0;

    static Use make(StreamIndex stream, std::uint64_t place) noexcept {
        return {place << 16 | stream};
    }
    StreamIndex stream() const noexcept { return static_cast<StreamIndex>(raw & 0xffff); }
    std::uint64_t place() const noexcept { return raw >> 16; }
    explicit operator bool() const noexcept { return raw != 0; }
};

/// Streams of one device. @thread any
class StreamTable {
  public:
    static constexpr std::size_t kMaxStreams = 4096;
    static constexpr std::size_t kEventsPerStream = 1024;
    static constexpr std::uint32_t kMaxQueryFailures = 50;

    explicit StreamTable(const Driver& driver) noexcept;
    ~StreamTable();

    /// The entry of a stream as the program named it while `context` was current, made on first
    /// use. CU_STREAM_LEGACY is one per context, CU_STREAM_PER_THREAD one per context and thread;
    /// any other belongs to the context it was made in, whichever is current. kNoStream if the
    /// table is full.
    StreamIndex find(CUcontext context, CUstream stream) noexcept;

    /// The stream was named before, in this context, and was not destroyed since.
    bool knows(CUcontext context, CUstream stream) const noexcept {
        return lookup(context, stream, 0) != kNoStream;
    }

    /// After the driver's call returned.
    Use take_place(StreamIndex stream) noexcept;

    /// Records an event of ours that covers the places taken up to now. On a per-thread stream only
    /// by its own thread. Errors are the driver's; nothing is covered then. CUDA_ERROR_NOT_READY
    /// where another thread was quicker: to be tried again.
    Status record(StreamIndex stream) noexcept;
    /// A capture is about to begin, or has ended: meanwhile nothing is recorded (NOT_READY). An
    /// event that the worker records on a stream just as its capture begins is a part of the
    /// capture, and so is what then waits for it. Returns once nobody is recording. Calls nest.
    void forbid_records() noexcept;
    void allow_records() noexcept { captures_.fetch_sub(1, std::memory_order_seq_cst); }

    /// Covers the places taken up to now on other threads' per-thread streams, by events on the
    /// legacy stream: those wait for them, and later work of all blocking streams for the events.
    /// No stream may be captured.
    void cover_other_threads() noexcept;

    /// All places up to this one are known to be complete. May query events (never waits).
    bool is_complete(Use use) noexcept;
    /// As is_complete; where no event covers the place and this thread may record one, it does, so
    /// that a later look knows more.
    bool look(Use use) noexcept;
    /// As is_complete, but makes no driver call.
    bool known_complete(Use use) const noexcept;
    /// False once the driver has answered so many queries in a row with an error that no place will
    /// be known to be complete any more. Refusals during a capture do not count.
    bool answered() const noexcept {
        return failures_.load(std::memory_order_relaxed) < kMaxQueryFailures;
    }
    /// An event that covers the place, or null if none does yet.
    CUevent covering_event(Use use) noexcept;
    /// True if an event covers the place, or it is complete.
    bool is_covered(Use use) const noexcept;

    /// The program waited for the stream: places up to `place` are complete.
    void mark_complete(StreamIndex stream, std::uint64_t place) noexcept;
    std::uint64_t last_place(StreamIndex stream) const noexcept;
    std::uint64_t done_place(StreamIndex stream) const noexcept;

    /// This thread may record on the stream.
    bool may_record(StreamIndex stream) const noexcept;
    CUstream handle(StreamIndex stream) const noexcept;
    CUcontext context(StreamIndex stream) const noexcept;

    /// The stream is about to be destroyed: a last event covers its places, so that what uses them
    /// is still known to complete. The entry serves another stream once all is done.
    void retire(StreamIndex stream) noexcept;
    /// retire() for whatever entry has this handle, if any. Not for the two special ones.
    void retire_handle(CUstream stream) noexcept;
    /// The context is gone, and its events with it: all places count as complete. No driver call.
    void forget_context(CUcontext context) noexcept;

    StreamIndex count() const noexcept { return count_.load(std::memory_order_acquire); }
    /// False for entries whose stream is gone.
    bool alive(StreamIndex stream) const noexcept;

  private:
    struct Covered {
        CUevent event = nullptr;
        std::uint64_t place = 0;
    };
    struct Entry {
        std::atomic<CUcontext> context{nullptr};
        std::atomic<CUstream> stream{nullptr};
        std::atomic<std::uint64_t> thread{0};  ///< of a per-thread stream
        std::atomic<bool> alive{false};
        std::atomic<std::uint64_t> last{0};
        std::atomic<std::uint64_t> done{0};
        std::atomic<std::uint64_t> covered{0};
        RankedMutex<LockRank::Streams> mutex;
        std::array<Covered, kEventsPerStream> events{};  ///< a ring, oldest first
        std::size_t first = 0;
        std::size_t pending = 0;
        /// Events stay with their stream: one that was recorded again and says "complete" is
        /// complete for every place it covered before.
        std::array<CUevent, kEventsPerStream> spare{};
        std::size_t spares = 0;
    };

    StreamIndex lookup(CUcontext context, CUstream stream, std::uint64_t thread) const noexcept;
    CUcontext context_of(CUstream stream, CUcontext current) const noexcept;
    StreamIndex insert(CUcontext context, CUstream stream, std::uint64_t thread) noexcept;
    StreamIndex reusable(CUcontext context) noexcept;
    Status record_on(Entry& entry, CUstream stream) noexcept;
    Status record_place(Entry& entry, CUstream stream, std::uint64_t place) noexcept;
    Status record_newest_again(Entry& entry, CUstream stream, std::uint64_t place) noexcept;
    void poll(Entry& entry) noexcept;
    bool query(CUevent event) noexcept;
    CUevent spare_event(Entry& entry, Status* made) noexcept;
    static void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept;

    const Driver& driver_;
    std::atomic<int> captures_{0};            ///< open, or about to be
    std::atomic<int> recording_{0};           ///< threads that are recording an event
    std::atomic<std::uint32_t> failures_{0};  ///< queries in a row
    const std::uint64_t id_;  ///< of this table, never used again: what threads remember is of it
    std::unique_ptr<std::atomic<Entry*>[]> entries_;
    std::atomic<StreamIndex> count_{0};
    RankedMutex<LockRank::Streams> insert_mutex_;
};

}  // namespace libswap
