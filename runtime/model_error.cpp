// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/model_error.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/sized_signature.hpp"

namespace libswap {
namespace {

constexpr double kWeight = 1.0 / 16;
constexpr std::uint32_t kMostWeighed = 16;

bool holds_any(std::string_view name, std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts)
        if (name.find(part) != std::string_view::npos) return true;
    return false;
}

}  // namespace

void ModelError::add(double predicted, double measured) noexcept {
    if (!(predicted > 0) || !(measured > 0)) return;
    ++count_;
    sum_ += std::abs(measured - predicted) / measured;
    // The first ones count more, so that it starts where they are.
    const double weight = count_ < 1 / kWeight ? 1.0 / static_cast<double>(count_) : kWeight;
    ratio_ += weight * (measured / predicted - ratio_);
}

double ModelError::mean_percent() const noexcept {
    return count_ == 0 ? 0 : 100 * sum_ / static_cast<double>(count_);
}

bool ModelError::drifts() const noexcept { return is_enough() && std::abs(ratio_ - 1) > kDrift; }

OperationClass kernel_class(std::string_view name) noexcept {
    if (holds_any(name, {"conv", "dgrad", "wgrad", "fprop", "Conv"}))
        return OperationClass::Convolution;
    if (holds_any(name, {"gemm", "gemv", "cutlass", "xmma", "matmul", "Gemm"}))
        return OperationClass::Product;
    return OperationClass::Other;
}

KernelTimesModel::Mean& KernelTimesModel::of(Means& means, std::uint64_t signature) noexcept {
    Mean& mean = means[signature % kMeans];
    if (mean.signature != signature) mean = {signature, 0, 0};
    return mean;
}

const KernelTimesModel::Mean* KernelTimesModel::find(const Means& means,
                                                     std::uint64_t signature) noexcept {
    const Mean& mean = means[signature % kMeans];
    return mean.count > 0 && mean.signature == signature ? &mean : nullptr;
}

void KernelTimesModel::add(std::uint64_t signature, std::uint64_t sized, OperationClass kind,
                           double us) noexcept {
    if (!(us > 0)) return;
    if (const Mean* known = find(sized_, sized))
        errors_[static_cast<std::size_t>(kind)].add(known->us, us);
    for (Mean* mean : {&of(means_, signature), &of(sized_, sized)}) {
        mean->count = std::min(mean->count + 1, kMostWeighed);
        mean->us += (us - mean->us) / mean->count;
    }
}

double KernelTimesModel::mean_us(std::uint64_t signature, std::uint64_t sized,
                                 double otherwise) const noexcept {
    const Mean* mean = find(sized_, sized);
    if (mean == nullptr) mean = find(means_, signature);
    return mean != nullptr ? mean->us : otherwise;
}

/// Operations of one signature may take very different times, where they do not in what they name:
/// beside a time of the operation's own a mean is worth nothing.
void KernelTimesModel::fill_in(cost::Trace* trace) const noexcept {
    const std::size_t period = trace->ops.size() / 2;
    for (std::size_t i = 0; i < period; ++i) {
        cost::Trace::Op& first = trace->ops[i];
        cost::Trace::Op& second = trace->ops[i + period];
        if (first.duration_us >= 0 || second.duration_us >= 0) continue;
        SizedSignature sized(first.signature);
        for (const cost::TracedOperand& operand : trace->operands_of(i)) sized.add(operand.bytes);
        first.duration_us = second.duration_us = mean_us(first.signature, sized.value(), -1);
    }
}

}  // namespace libswap
