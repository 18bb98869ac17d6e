// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/models/compute_model.hpp"

#include <algorithm>

namespace libswap::cost {

void ComputeModel::observe(std::uint64_t signature, const KernelWork& work, double measured_us) {
    if (!(measured_us > 0)) return;
    Measured& m = measured_[signature];
    m.sum_us += measured_us;
    ++m.count;
    const double predicted = work_us(ceilings_, work, type_);
    if (!(predicted > 0)) return;
    auto& ratios = ratios_[static_cast<std::size_t>(work.kind)];
    const double ratio = measured_us / predicted;
    ratios.insert(std::upper_bound(ratios.begin(), ratios.end(), ratio), ratio);
}

double ComputeModel::time_us(std::uint64_t signature, const KernelWork& work) const {
    const auto found = measured_.find(signature);
    if (found == measured_.end()) return predict_us(work);
    return found->second.sum_us / static_cast<double>(found->second.count);
}

double ComputeModel::predict_us(const KernelWork& work) const {
    return work_us(ceilings_, work, type_) * correction(work.kind);
}

double ComputeModel::correction(KernelClass kind) const {
    const auto& ratios = ratios_[static_cast<std::size_t>(kind)];
    if (ratios.empty()) return 1;
    const std::size_t mid = ratios.size() / 2;
    return ratios.size() % 2 == 1 ? ratios[mid] : (ratios[mid - 1] + ratios[mid]) / 2;
}

}  // namespace libswap::cost
