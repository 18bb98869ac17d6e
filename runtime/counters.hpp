// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace libswap {

/// Why a buffer may not move.
enum class StayReason : std::uint8_t {
    None,
    Texture,      ///< a texture or surface was made of it
    TensorMap,    ///< there were too many tensor descriptors to remember
    StreamValue,  ///< a stream waits for values in it or writes them
    Export,       ///< other processes or devices may have its physical memory
    Capture       ///< captured in a way that cannot be read
};
inline constexpr std::array<const char*, 6> kStayReasons = {
    "", "textures", "tensor descriptors", "stream values", "exports", "captures"};

/// What the summary tells. All relaxed; bytes and nanoseconds.
struct Counters {
    using Count = std::atomic<std::uint64_t>;

    Count asked_bytes{0};  ///< live, as the program asked for
    Count peak_asked_bytes{0};
    Count span_bytes{0};  ///< live, rounded up to chunks
    Count peak_span_bytes{0};
    Count slab_asked_bytes{0};  ///< of asked_bytes, in slabs
    Count external_bytes{0};    ///< the program's, from the driver itself
    Count managed_bytes{0};     ///< managed memory of the program
    Count driver_bytes{0};      ///< given to the driver for itself, when it ran out

    Count bytes_out{0};
    Count bytes_in{0};
    Count bytes_clean{0};     ///< left without a copy: the host copy was good
    Count bytes_fresh{0};     ///< came or left without a copy: no content
    Count contents_ended{0};  ///< blocks of which the program's allocator had all given back
    Count evictions{0};
    Count fetches{0};
    Count cancels{0};
    Count hand_overs{0};    ///< blocks that came into memory which another was still copied from
    Count copies_ahead{0};  ///< blocks copied to the host in advance
    Count restored{0};      ///< remaps that failed and were undone
    Count guards{0};        ///< evictions checked by a second digest
    Count guard_hits{0};    ///< that found a write nobody had announced
    Count verified{0};      ///< digests compared by LIBSWAP_VERIFY

    Count launches{0};
    Count copies{0};
    Count memsets{0};
    Count graph_launches{0};
    Count host_operands{0};  ///< blocks that an operation used on the host
    Count host_waits{0};     ///< operations that waited for memory before they were issued
    Count host_wait_ns{0};
    Count free_waits{0};
    Count free_wait_ns{0};
    Count stalls{0};     ///< waits given up: no progress
    Count fallbacks{0};  ///< work of ours that failed, the real call made instead
    Count hidden_functions{0};
    Count for_good_bytes{0};
    std::array<Count, kStayReasons.size()> stay_bytes{};  ///< of these, by StayReason

    Count iterations{0};
    Count plans{0};
    Count iteration_ns{0};  ///< of the last iteration, by the device's clock
    Count plan_predicted_us{0};

    static void raise(Count& peak, std::uint64_t value) noexcept {
        std::uint64_t old = peak.load(std::memory_order_relaxed);
        while (old < value && !peak.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
        }
    }
    static void add(Count& count, std::uint64_t value = 1) noexcept {
        count.fetch_add(value, std::memory_order_relaxed);
    }
    static void subtract(Count& count, std::uint64_t value) noexcept {
        count.fetch_sub(value, std::memory_order_relaxed);
    }
};

}  // namespace libswap
