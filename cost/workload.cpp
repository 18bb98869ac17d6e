// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/workload.hpp"

#include <algorithm>

namespace libswap::cost {

TensorIndex Workload::add_tensor(Tensor tensor) {
    tensors_.push_back(tensor);
    return static_cast<TensorIndex>(tensors_.size() - 1);
}

void Workload::add_op(double duration_us, std::uint64_t workspace_bytes, std::span<const Use> uses,
                      std::span<const TensorIndex> frees, std::string_view name) {
    auto first = uses_.insert(uses_.end(), uses.begin(), uses.end());
    std::sort(first, uses_.end(), [](const Use& a, const Use& b) { return a.tensor < b.tensor; });
    auto kept = first;
    for (auto use = first; use != uses_.end(); ++use) {
        if (kept != first && (kept - 1)->tensor == use->tensor) {
            (kept - 1)->read |= use->read;
            (kept - 1)->write |= use->write;
        } else {
            *kept++ = *use;
        }
    }
    uses_.erase(kept, uses_.end());
    frees_.insert(frees_.end(), frees.begin(), frees.end());
    ops_.push_back({duration_us, workspace_bytes, static_cast<std::uint32_t>(uses_.size()),
                    static_cast<std::uint32_t>(frees_.size())});
    if (!name.empty() && names_.empty()) names_.resize(ops_.size() - 1);
    if (!name.empty() || !names_.empty()) names_.emplace_back(name);
}

std::string_view Workload::name(std::size_t index) const {
    return names_.empty() ? std::string_view() : std::string_view(names_[index]);
}

double Workload::compute_us() const {
    double sum = 0;
    for (const Op& op : ops_) sum += op.duration_us;
    return sum;
}

std::uint64_t Workload::op_bytes(std::size_t index) const {
    std::uint64_t sum = ops_[index].workspace_bytes;
    for (const Use& use : uses(index)) sum += tensors_[use.tensor].bytes;
    return sum;
}

std::vector<std::uint64_t> Workload::live_bytes() const {
    std::vector<bool> live(tensors_.size());
    std::uint64_t now = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
        live[t] = tensors_[t].persistent;
        if (live[t]) now += tensors_[t].bytes;
    }
    std::vector<std::uint64_t> result;
    result.reserve(ops_.size());
    for (std::size_t i = 0; i < ops_.size(); ++i) {
        for (const Use& use : uses(i)) {
            if (live[use.tensor]) continue;
            live[use.tensor] = true;
            now += tensors_[use.tensor].bytes;
        }
        result.push_back(now + ops_[i].workspace_bytes);
        for (const TensorIndex t : frees(i)) {
            if (!live[t]) continue;
            live[t] = false;
            now -= tensors_[t].bytes;
        }
    }
    return result;
}

std::uint64_t Workload::peak_bytes() const {
    const std::vector<std::uint64_t> live = live_bytes();
    return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

}  // namespace libswap::cost
