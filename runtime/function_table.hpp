// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What is known of each kernel: where its parameters lie, and how far its launches are trusted. The
// words of the parameters are looked at in every launch, never cached.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include <tsl/robin_map.h>

#include "runtime/driver.hpp"

namespace libswap {

/// One parameter: where it lies in the parameter block.
struct ParamSlot {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;

    /// A parameter of so many may be a list or a table of fixed size, for more than a launch has.
    static constexpr std::uint32_t kRoomyBytes = 64;
    bool is_roomy() const noexcept { return bytes >= kRoomyBytes; }
};

/// A kernel. Lives until its module is unloaded, and then on as a leftover: pointers stay good.
struct FunctionInfo {
    CUfunction function = nullptr;
    std::vector<ParamSlot> params;
    bool layout_known = false;  ///< else nothing can be said about its operands
    bool has_roomy = false;     ///< a parameter is roomy
    /// How many addresses its parameters hold may be another number each time. So with lists, which
    /// a launch need not fill: PyTorch's foreach kernels take up to 4 KiB of addresses and counts
    /// in one. And so with PyTorch's kernels over strided tensors, whose sizes of 25 dimensions are
    /// seldom all set.
    bool has_unset_words = false;
    std::string text;        ///< its name, where the driver tells
    std::uint32_t name = 0;  ///< in the event log, once asked for
    std::uint64_t hash = 0;  ///< of the name and layout, the same in every run
    std::atomic<std::uint32_t> launches{0};
    /// A write of it was seen that no operand explained: its launches are unexplained for good.
    std::atomic<bool> hidden_access{false};

    /// By word of the parameters, the first 64: what it points at was seen unchanged by a launch,
    /// by a second one, and changed. See trials.hpp.
    std::atomic<std::uint64_t> kept_once{0};
    std::atomic<std::uint64_t> kept_twice{0};
    std::atomic<std::uint64_t> changed{0};
    std::atomic<std::uint32_t> looks{0};  ///< launches that were watched for that

    static constexpr std::uint32_t kTrialLaunches = 2;
    static constexpr std::uint32_t kLaunchesCounted = 1024;
    /// Its launches count as explained.
    bool trusted() const noexcept {
        return layout_known && launches.load(std::memory_order_relaxed) >= kTrialLaunches &&
               !hidden_access.load(std::memory_order_relaxed);
    }

    /// It was launched once more. Counted as far as anybody asks.
    void note_launch() noexcept {
        if (launches.load(std::memory_order_relaxed) < kLaunchesCounted)
            launches.fetch_add(1, std::memory_order_relaxed);
    }

    /// A launch was seen to change what this word points at, or not to.
    void note_operand(std::uint32_t word, bool did_change) noexcept;
    /// As far as was seen, its launches do not change what this word points at. A hint for plans.
    bool leaves_alone(std::uint32_t word) const noexcept {
        return word < 64 && (kept_twice.load(std::memory_order_relaxed) &
                             ~changed.load(std::memory_order_relaxed)) >>
                                    word &
                                1;
    }
    /// Another look would tell more.
    bool worth_a_look(std::uint32_t word) const noexcept {
        return word < 64 && !((kept_twice.load(std::memory_order_relaxed) |
                               changed.load(std::memory_order_relaxed)) >>
                                  word &
                              1);
    }
};

/// @thread any
class FunctionTable {
  public:
    explicit FunctionTable(const Driver& driver) noexcept;

    /// The function's entry, made on first use (which asks the driver). Never null, except out of
    /// memory.
    FunctionInfo* find(CUfunction function) noexcept;
    /// A module went: handles may be given out again for other functions.
    void invalidate() noexcept;

  private:
    FunctionInfo* make(CUfunction function) noexcept;

    const Driver& driver_;
    std::shared_mutex mutex_;
    tsl::robin_map<CUfunction, FunctionInfo*> functions_;
    std::vector<std::unique_ptr<FunctionInfo>> all_;
    /// Of this table at this time, never used again: what threads remember is of it.
    std::atomic<std::uint64_t> epoch_;
};

/// Calls `visit(word)` for every 8-byte word of a launch's parameters: whole aligned words of each
/// parameter of kernelParams, or of the buffer in `extra`.
template <typename Visit>
void for_each_parameter_word(const FunctionInfo& info, void** params, void** extra, Visit&& visit);

/// The parameter buffer of an `extra` list, or null.
const void* extra_buffer(void** extra, std::size_t* bytes) noexcept;

template <typename Visit>
void visit_words(const void* memory, std::size_t bytes, Visit&& visit) {
    const char* at = static_cast<const char*>(memory);
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
        std::uint64_t word;
        __builtin_memcpy(&word, at + i, 8);
        visit(word);
    }
}

/// Calls `visit(memory, slot)` for each parameter that is there whole.
template <typename Visit>
void for_each_parameter(const FunctionInfo& info, void** params, void** extra, Visit&& visit) {
    std::size_t bytes = 0;
    const void* buffer = params ? nullptr : extra_buffer(extra, &bytes);
    for (std::size_t i = 0; i < info.params.size(); ++i) {
        const ParamSlot& slot = info.params[i];
        if (params && params[i])
            visit(static_cast<const void*>(params[i]), slot);
        else if (buffer && slot.offset + std::size_t{slot.bytes} <= bytes)
            visit(static_cast<const void*>(static_cast<const char*>(buffer) + slot.offset), slot);
    }
}

template <typename Visit>
void for_each_parameter_word(const FunctionInfo& info, void** params, void** extra, Visit&& visit) {
    if (params) {
        for (std::size_t i = 0; i < info.params.size(); ++i)
            if (params[i]) visit_words(params[i], info.params[i].bytes, visit);
        return;
    }
    std::size_t bytes = 0;
    if (const void* buffer = extra_buffer(extra, &bytes)) visit_words(buffer, bytes, visit);
}

}  // namespace libswap
