// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace libswap::cost {

/// Numbers in a ring, with addition to a range and the maximum of a range in O(log n).
class RangeMax {
  public:
    explicit RangeMax(const std::vector<std::int64_t>& values) : count_(values.size()) {
        while (size_ < count_) size_ *= 2;
        max_.assign(2 * size_, INT64_MIN / 2);
        add_.assign(2 * size_, 0);
        std::copy(values.begin(), values.end(), max_.begin() + static_cast<std::ptrdiff_t>(size_));
        for (std::size_t i = size_; i-- > 1;) max_[i] = std::max(max_[2 * i], max_[2 * i + 1]);
    }

    /// Of [first, last), which may run past the end and go on from the start; at most one round.
    void add(std::size_t first, std::size_t last, std::int64_t delta) {
        each_part(first, last,
                  [&](std::size_t a, std::size_t b) { add(1, 0, size_, a, b, delta); });
    }

    std::int64_t max(std::size_t first, std::size_t last) const {
        std::int64_t result = INT64_MIN / 2;
        each_part(first, last, [&](std::size_t a, std::size_t b) {
            result = std::max(result, max(1, 0, size_, a, b));
        });
        return result;
    }

    /// All of them.
    std::vector<std::int64_t> values() const {
        std::vector<std::int64_t> result(count_);
        for (std::size_t i = 0; i < count_; ++i) {
            std::size_t node = size_ + i;
            result[i] = max_[node];
            while (node /= 2) result[i] += add_[node];
        }
        return result;
    }

  private:
    template <typename Part>
    void each_part(std::size_t first, std::size_t last, Part part) const {
        if (first >= last) return;
        const std::size_t length = std::min(last - first, count_);
        first %= count_;
        part(first, std::min(first + length, count_));
        if (first + length > count_) part(0, first + length - count_);
    }

    void add(std::size_t node, std::size_t lo, std::size_t hi, std::size_t a, std::size_t b,
             std::int64_t delta) {
        if (b <= lo || hi <= a) return;
        if (a <= lo && hi <= b) {
            max_[node] += delta;
            add_[node] += delta;
            return;
        }
        const std::size_t mid = (lo + hi) / 2;
        add(2 * node, lo, mid, a, b, delta);
        add(2 * node + 1, mid, hi, a, b, delta);
        max_[node] = std::max(max_[2 * node], max_[2 * node + 1]) + add_[node];
    }

    std::int64_t max(std::size_t node, std::size_t lo, std::size_t hi, std::size_t a,
                     std::size_t b) const {
        if (b <= lo || hi <= a) return INT64_MIN / 2;
        if (a <= lo && hi <= b) return max_[node];
        const std::size_t mid = (lo + hi) / 2;
        return add_[node] +
               std::max(max(2 * node, lo, mid, a, b), max(2 * node + 1, mid, hi, a, b));
    }

    std::size_t count_;
    std::size_t size_ = 1;
    std::vector<std::int64_t> max_;
    std::vector<std::int64_t> add_;
};

}  // namespace libswap::cost
