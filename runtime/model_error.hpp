// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// How far models are from what is measured, while a program runs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cost/iteration.hpp"

namespace libswap {

/// Mean absolute percentage error, and whether what is measured has moved away from the model.
class ModelError {
  public:
    /// Both above zero, else ignored.
    void add(double predicted, double measured) noexcept;

    std::uint64_t count() const noexcept { return count_; }
    /// Mean of |measured - predicted| / measured, in percent; 0 of nothing.
    double mean_percent() const noexcept;
    /// measured / predicted, recent ones first: a moving mean over about 16.
    double ratio() const noexcept { return ratio_; }
    /// There were enough to go by the ratio.
    bool is_enough() const noexcept { return count_ >= kEnough; }
    /// The ratio is off by more than kDrift, and there were enough to say so.
    bool drifts() const noexcept;

    static constexpr double kDrift = 0.15;

  private:
    static constexpr std::uint64_t kEnough = 16;
    std::uint64_t count_ = 0;
    double sum_ = 0;
    double ratio_ = 1;
};

/// Operations whose times are off in the same way.
enum class OperationClass : std::uint8_t { Product, Convolution, Other, Copy, Memset, Graph };
inline constexpr std::array<const char*, 6> kOperationClasses = {
    "matrix products", "convolutions", "other kernels", "copies", "memsets", "graphs"};

/// Of a kernel, by its name.
OperationClass kernel_class(std::string_view name) noexcept;

/// Of a program's operations: the mean of earlier times of a signature with sizes (SizedSignature),
/// against the next one. In segments that tensors share sizes change with where these lie, so there
/// are means of signatures alone too.
/// @thread one at a time
class KernelTimesModel {
  public:
    void add(std::uint64_t signature, std::uint64_t sized, OperationClass kind, double us) noexcept;
    /// What operations of these sizes took, else those of the signature, the last ones more than
    /// those long ago. `otherwise` where none is known.
    double mean_us(std::uint64_t signature, std::uint64_t sized, double otherwise) const noexcept;
    /// Gives means to operations of a trace of two equal iterations that were measured in neither.
    void fill_in(cost::Trace* trace) const noexcept;
    const ModelError& error(OperationClass kind) const noexcept {
        return errors_[static_cast<std::size_t>(kind)];
    }

  private:
    struct Mean {
        std::uint64_t signature = 0;
        double us = 0;
        std::uint32_t count = 0;
    };
    /// By signature's low bits; of two that meet there the later one stays.
    static constexpr std::size_t kMeans = 4096;
    using Means = std::array<Mean, kMeans>;
    static Mean& of(Means& means, std::uint64_t signature) noexcept;
    static const Mean* find(const Means& means, std::uint64_t signature) noexcept;

    Means means_{};  ///< by signature
    Means sized_{};  ///< by signature with sizes
    std::array<ModelError, kOperationClasses.size()> errors_{};
};

}  // namespace libswap
