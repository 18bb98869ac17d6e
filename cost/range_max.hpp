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
        max_.assign(2 * size_, kNone);
        add_.assign(2 * size_ + 1, 0);
        std::copy(values.begin(), values.end(), max_.begin() + static_cast<std::ptrdiff_t>(size_));
        for (std::size_t i = size_; i-- > 1;) max_[i] = std::max(max_[2 * i], max_[2 * i + 1]);
    }

    /// Of [first, last), which may run past the end and go on from the start; at most one round.
    void add(std::size_t first, std::size_t last, std::int64_t delta) {
        each_part(first, last, [&](std::size_t a, std::size_t b) { add_part(a, b, delta); });
    }

    std::int64_t max(std::size_t first, std::size_t last) const {
        std::int64_t result = kNone;
        each_part(first, last, [&](std::size_t a, std::size_t b) {
            if (a < b) result = std::max(result, max_of_part(a, b));
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

    // Bottom up: add_[node] is what has been added to all below it, and is not in their max_.

    void add_part(std::size_t first, std::size_t last, std::int64_t delta) {
        if (first >= last) return;
        std::size_t lo = first + size_;
        std::size_t hi = last + size_;
        for (; lo < hi; lo /= 2, hi /= 2) {
            if (lo % 2 == 1) apply(lo++, delta);
            if (hi % 2 == 1) apply(--hi, delta);
        }
        update_above(first + size_);
        update_above(last - 1 + size_);
    }

    void apply(std::size_t node, std::int64_t delta) {
        max_[node] += delta;
        add_[node] += delta;
    }

    void update_above(std::size_t node) {
        while (node /= 2) max_[node] = std::max(max_[2 * node], max_[2 * node + 1]) + add_[node];
    }

    std::int64_t max_of_part(std::size_t first, std::size_t last) const {
        std::int64_t left = kNone;
        std::int64_t right = kNone;
        std::size_t lo = first + size_;
        std::size_t hi = last + size_;
        // What has been taken on the left lies below node lo - 1, on the right below node hi.
        while (lo < hi) {
            if (lo % 2 == 1) left = std::max(left, max_[lo++]);
            if (hi % 2 == 1) right = std::max(right, max_[--hi]);
            lo /= 2;
            hi /= 2;
            left += add_[lo - 1];
            right += add_[hi];
        }
        for (std::size_t node = (lo - 1) / 2; node > 0; node /= 2) left += add_[node];
        for (std::size_t node = hi / 2; node > 0; node /= 2) right += add_[node];
        return std::max(left, right);
    }

    static constexpr std::int64_t kNone = INT64_MIN / 2;

    std::size_t count_;
    std::size_t size_ = 1;
    std::vector<std::int64_t> max_;
    std::vector<std::int64_t> add_;
};

}  // namespace libswap::cost
