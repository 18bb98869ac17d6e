// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "cupti_trace/trace.hpp"

namespace libswap::cupti {

/// Puts tags and times together, which come in any order: a tag with the call, its operation's
/// times once that is over, however far the host is ahead. @thread one at a time
class Correlation {
  public:
    /// A call of this correlation id was tagged.
    void note_tag(std::uint32_t correlation, std::uint64_t tag);
    /// An operation that it submitted.
    void note_operation(std::uint32_t correlation, std::uint64_t start_ns, std::uint64_t end_ns);
    /// Adds what is complete since the last call.
    void take(std::vector<TaggedTime>* out);

    /// Ids that are remembered.
    std::size_t size() const noexcept { return entries_.size(); }
    /// So many tagged calls may wait for their operations; the oldest of more are forgotten.
    static constexpr std::size_t kMostAwaited = std::size_t{1} << 17;

  private:
    struct Entry {
        std::uint64_t tag = 0;
        std::uint64_t start_ns = 0;  ///< 0: none yet
        std::uint64_t end_ns = 0;
        std::uint64_t round = 0;  ///< of take(), when something of it came last
        bool tagged = false;
        bool changed = false;  ///< since the last take()
    };
    struct Aging {
        std::uint32_t correlation;
        std::uint64_t round;
    };
    Entry& change(std::uint32_t correlation);
    void forget_old();

    std::unordered_map<std::uint32_t, Entry> entries_;
    std::vector<std::uint32_t> changed_;
    std::deque<std::uint32_t> awaited_;  ///< tagged, the oldest first; some have their times by now
    std::deque<Aging> aging_;            ///< with times, the oldest first; some have changed since
    std::uint64_t round_ = 0;
};

}  // namespace libswap::cupti
