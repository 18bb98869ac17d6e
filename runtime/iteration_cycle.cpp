// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/iteration_cycle.hpp"

namespace libswap {

void IterationCycle::add(std::uint64_t frees, std::uint64_t last_frees) {
    last_[count_ % last_.size()] = {frees, last_frees};
    ++count_;
}

bool IterationCycle::repeats(std::size_t length) const {
    if (count_ < 2 * length) return false;
    for (std::size_t i = 0; i < length; ++i)
        if (back(i).frees != back(i + length).frees) return false;
    return true;
}

std::size_t IterationCycle::length() const {
    for (std::size_t length = 1; length <= kMost; ++length)
        if (repeats(length)) return length;
    return 0;
}

bool IterationCycle::ends(std::size_t length) const {
    for (std::size_t i = 1; i < length; ++i)
        if (back(i).last_frees > back(0).last_frees) return false;
    return true;
}

}  // namespace libswap
