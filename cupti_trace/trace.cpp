// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "cupti_trace/trace.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "cupti_trace/correlation.hpp"
#include "cupti_trace/library.hpp"
#include "cupti_trace/records.hpp"

namespace libswap::cupti {
namespace {

/// CUPTI keeps a buffer until all records in it are complete: a larger one comes later.
constexpr std::size_t kBufferBytes = std::size_t{128} << 10;
constexpr std::size_t kMostBuffers = 512;  ///< in CUPTI's hands or waiting for us
constexpr std::uint32_t kFlushForced = 1;

constexpr std::array<std::uint32_t, 4> kKinds = {kKindConcurrentKernel, kKindMemcpy, kKindMemset,
                                                 kKindExternalCorrelation};

constexpr std::uint32_t kCalls[] = {
#define CUPTI_CALL(name, number) number,
#include "cupti_trace/calls.def"
#undef CUPTI_CALL
};

/// A buffer that CUPTI has filled.
struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t valid = 0;
};

/// What CUPTI's functions of a process write to: they know no other context. Leaked, since they may
/// be called while the process ends.
struct Hand {
    std::mutex mutex;
    std::vector<std::uint8_t*> spare;
    std::vector<Filled> filled;
    std::size_t given = 0;
};

Hand& hand() {
    static auto* the_hand = new Hand;
    return *the_hand;
}

void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    Hand& h = hand();
    std::lock_guard lock(h.mutex);
    *most_records = 0;
    *size = kBufferBytes;
    if (!h.spare.empty()) {
        *buffer = h.spare.back();
        h.spare.pop_back();
    } else {
        // CUPTI before 12.9 could not do without: only what nobody collects is refused.
        *buffer = h.given < kMostBuffers
                      ? static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes))
                      : nullptr;
        if (*buffer != nullptr) ++h.given;
    }
    if (*buffer == nullptr) *size = 0;
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    Hand& h = hand();
    std::lock_guard lock(h.mutex);
    h.filled.push_back({buffer, valid});
}

void ignore_callback(void*, std::uint32_t, std::uint32_t, const void*) {}

void free_buffers() noexcept {
    Hand& h = hand();
    std::lock_guard lock(h.mutex);
    for (const Filled& buffer : h.filled) h.spare.push_back(buffer.data);
    h.filled.clear();
    h.given -= h.spare.size();
    for (std::uint8_t* buffer : h.spare) std::free(buffer);
    h.spare.clear();
}

}  // namespace

class Trace::Impl {
  public:
    explicit Impl(const Functions& functions) : functions_(functions) {}

    bool enable() {
        if (functions_.register_buffers(buffer_requested, buffer_completed) != 0) return false;
        for (const std::uint32_t kind : kKinds)
            if (functions_.enable(kind) != 0) return false;
        // Calls that a version does not know are refused, the others count.
        std::size_t known = 0;
        for (const std::uint32_t call : kCalls)
            known += functions_.enable_driver_call(call, 1) == 0 ? 1 : 0;
        return known > 0;
    }

    void disable() noexcept {
        if (disabled_.exchange(true)) return;
        for (const std::uint32_t call : kCalls) functions_.enable_driver_call(call, 0);
        for (const std::uint32_t kind : kKinds) functions_.disable(kind);
    }

    /// Nothing stays behind that would come to functions which somebody else may register.
    void hand_over() noexcept {
        if (!begun_ || stopped_.exchange(true)) return;
        disable();
        functions_.flush(kFlushForced);
        free_buffers();
    }

    void stop() noexcept {
        if (!begun_ || stopped_.exchange(true)) return;
        disable();
        functions_.flush(kFlushForced);
        functions_.finalize();
        free_buffers();
    }

    void read(const Filled& buffer);
    void note(std::uint32_t correlation, std::uint64_t start_ns, std::uint64_t end_ns) {
        // 0: there was no memory for its times.
        if (start_ns != 0 && end_ns >= start_ns)
            correlation_.note_operation(correlation, start_ns, end_ns);
    }

    const Functions functions_;
    Correlation correlation_;
    bool begun_ = false;
    std::atomic<bool> disabled_{false};
    std::atomic<bool> stopped_{false};
};

void Trace::Impl::read(const Filled& buffer) {
    void* record = nullptr;
    while (functions_.next_record(buffer.data, buffer.valid, &record) == 0) {
        switch (*static_cast<const std::uint32_t*>(record)) {
            case kKindConcurrentKernel: {
                const auto& kernel = *static_cast<const KernelRecord*>(record);
                note(kernel.correlation, kernel.start_ns, kernel.end_ns);
                break;
            }
            case kKindMemcpy:
            case kKindMemset: {
                const auto& memory = *static_cast<const MemoryRecord*>(record);
                note(memory.correlation, memory.start_ns, memory.end_ns);
                break;
            }
            case kKindExternalCorrelation: {
                const auto& external = *static_cast<const ExternalRecord*>(record);
                if (external.external_kind == kExternalKind)
                    correlation_.note_tag(external.correlation, external.id);
                break;
            }
            default:
                break;
        }
    }
}

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trace::~Trace() { stop(); }

std::unique_ptr<Trace> Trace::open(bool beside_others, std::string* why) {
    if (!beside_others) {
        *why = other_client();
        if (!why->empty()) return nullptr;
    }
    const auto functions = open_library(why);
    if (!functions) return nullptr;
    return std::unique_ptr<Trace>(new Trace(std::make_unique<Impl>(*functions)));
}

bool Trace::begin(std::string* why) {
    const Functions& functions = impl_->functions_;
    // Answers whether somebody has the callbacks; they are not kept.
    void* subscriber = nullptr;
    if (functions.subscribe(&subscriber, ignore_callback, nullptr) != 0) {
        *why = "somebody else has CUPTI's callbacks";
        return false;
    }
    functions.unsubscribe(subscriber);
    impl_->begun_ = true;
    if (impl_->enable()) return true;
    impl_->stop();
    *why = "CUPTI refuses its activities";
    return false;
}

void Trace::enter(std::uint64_t tag) noexcept {
    impl_->functions_.push_external(kExternalKind, tag);
}

void Trace::leave() noexcept { impl_->functions_.pop_external(kExternalKind, nullptr); }

std::vector<TaggedTime> Trace::collect(bool all) {
    if (!impl_->stopped_) impl_->functions_.flush(all ? kFlushForced : 0);
    std::vector<Filled> filled;
    {
        std::lock_guard lock(hand().mutex);
        filled.swap(hand().filled);
    }
    std::vector<TaggedTime> out;
    for (const Filled& buffer : filled) {
        if (!impl_->stopped_) impl_->read(buffer);
        std::lock_guard lock(hand().mutex);
        hand().spare.push_back(buffer.data);
    }
    impl_->correlation_.take(&out);
    return out;
}

void Trace::disable() noexcept { impl_->disable(); }
void Trace::stop() noexcept { impl_->stop(); }
void Trace::hand_over() noexcept { impl_->hand_over(); }

}  // namespace libswap::cupti
