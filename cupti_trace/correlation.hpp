// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cupti_trace/trace.hpp"

namespace libswap::cupti {

/// Puts tags and times together, which come in any order. @thread one at a time
class Correlation {
  public:
    /// A call of this correlation id was tagged.
    void note_tag(std::uint32_t correlation, std::uint64_t tag);
    /// An operation that it submitted.
    void note_operation(std::uint32_t correlation, std::uint64_t start_ns, std::uint64_t end_ns);
    /// Adds what is complete since the last call.
    void take(std::vector<TaggedTime>* out);

  private:
    struct Entry {
        std::uint64_t tag = 0;
        std::uint64_t start_ns = 0;  ///< 0: none yet
        std::uint64_t end_ns = 0;
        std::uint32_t rounds = 0;  ///< calls of take() since it came
        bool tagged = false;
        bool told = false;  ///< as it is
    };
    std::unordered_map<std::uint32_t, Entry> entries_;
};

}  // namespace libswap::cupti
