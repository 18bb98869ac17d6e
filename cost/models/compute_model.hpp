// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cost/models/kernel_work.hpp"

namespace libswap::cost {

/// Times of operations: measured per signature where there are measurements, else Roofline times a
/// correction per kernel class, which is the median of measured / predicted of that class. So it
/// answers for operations that never ran: what if the batch were twice as large?
///
/// One thread at a time.
class ComputeModel {
  public:
    explicit ComputeModel(const Ceilings& ceilings, DataType type = DataType::Fp32)
        : ceilings_(ceilings), type_(type) {}

    /// One measured run of an operation. Times that are not above zero are ignored.
    void observe(std::uint64_t signature, const KernelWork& work, double measured_us);

    /// The mean of what was measured for the signature, else predict_us.
    double time_us(std::uint64_t signature, const KernelWork& work) const;
    /// Roofline, corrected by the class. Unit us.
    double predict_us(const KernelWork& work) const;
    /// measured / Roofline of a class; 1 before anything of it was measured.
    double correction(KernelClass kind) const;

  private:
    struct Measured {
        double sum_us = 0;
        std::uint64_t count = 0;
    };

    Ceilings ceilings_;
    DataType type_;
    std::unordered_map<std::uint64_t, Measured> measured_;
    std::array<std::vector<double>, kKernelClasses> ratios_;  // sorted
};

}  // namespace libswap::cost
