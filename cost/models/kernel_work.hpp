// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What kernels have to do: floating point operations (a multiplication and an addition are two) and
// the bytes that must cross the device's memory at least once (each operand read or written once).
#pragma once

#include <cstdint>

#include "cost/roofline.hpp"

namespace libswap::cost {

/// Kernels whose measured times are off from the Roofline in the same way.
enum class KernelClass : std::uint8_t {
    ConvForward,
    ConvBackwardData,
    ConvBackwardFilter,
    MatrixProduct,
    Elementwise,
    Reduction,
};
inline constexpr std::size_t kKernelClasses = 6;

struct KernelWork {
    KernelClass kind = KernelClass::Elementwise;
    double flops = 0;
    double bytes = 0;
};

/// A two-dimensional convolution. Sizes in elements.
struct ConvShape {
    std::int64_t batch = 1;
    std::int64_t in_channels = 1;
    std::int64_t in_height = 1;
    std::int64_t in_width = 1;
    std::int64_t out_channels = 1;
    std::int64_t kernel_height = 1;
    std::int64_t kernel_width = 1;
    std::int64_t stride = 1;
    std::int64_t padding = 0;
    std::int64_t groups = 1;

    std::int64_t out_height() const {
        return (in_height + 2 * padding - kernel_height) / stride + 1;
    }
    std::int64_t out_width() const { return (in_width + 2 * padding - kernel_width) / stride + 1; }
    double input_elements() const;
    double output_elements() const;
    double filter_elements() const;
    /// 2 * N * K * P * Q * C / groups * R * S; the same for all three directions, as each output,
    /// each input gradient and each filter gradient sums the same products in another order.
    double flops() const;
};

KernelWork conv_forward(const ConvShape& shape, DataType type);          ///< reads x, w; writes y
KernelWork conv_backward_data(const ConvShape& shape, DataType type);    ///< reads dy, w; writes dx
KernelWork conv_backward_filter(const ConvShape& shape, DataType type);  ///< reads dy, x; writes dw

/// `batches` products of m x k by k x n.
KernelWork matrix_product(double m, double n, double k, double batches, DataType type);
/// `inputs` arrays read and `outputs` written, of `elements` each.
KernelWork elementwise(double elements, double inputs, double outputs, double flops_per_element,
                       DataType type);
/// All of `in_elements` read and added up into `out_elements`.
KernelWork reduction(double in_elements, double out_elements, DataType type);

/// Roofline time of some work. Unit us.
double work_us(const Ceilings& ceilings, const KernelWork& work, DataType type);

}  // namespace libswap::cost
