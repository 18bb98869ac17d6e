// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/replay_history.hpp"

namespace libswap::cost {

void ReplayHistory::add(const End& end, std::uint64_t state) {
    ends_.push_back(end);
    const auto count = static_cast<int>(ends_.size());
    const auto known = seen_.find(state);
    period_ = count - (known == seen_.end() ? count / 2 : known->second);
    settled_ = (count >= min_ && known != seen_.end()) || count >= max_;
    seen_[state] = count;
}

ReplayHistory::End ReplayHistory::steady() const {
    const End& last = ends_.back();
    const auto count = static_cast<int>(ends_.size());
    const End first =
        period_ < count ? ends_[static_cast<std::size_t>(count - 1 - period_)] : End{};
    return {(last.now_us - first.now_us) / period_,
            (last.to_host_bytes - first.to_host_bytes) / period_,
            (last.to_device_bytes - first.to_device_bytes) / period_};
}

}  // namespace libswap::cost
