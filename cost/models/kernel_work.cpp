// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/models/kernel_work.hpp"

namespace libswap::cost {

namespace {

double size(double elements, DataType type) {
    return elements * static_cast<double>(element_bytes(type));
}

KernelWork conv(KernelClass kind, const ConvShape& s, DataType type) {
    return {kind, s.flops(),
            size(s.input_elements() + s.output_elements() + s.filter_elements(), type)};
}

}  // namespace

double ConvShape::input_elements() const {
    return static_cast<double>(batch * in_channels) * static_cast<double>(in_height * in_width);
}

double ConvShape::output_elements() const {
    return static_cast<double>(batch * out_channels) *
           static_cast<double>(out_height() * out_width());
}

double ConvShape::filter_elements() const {
    return static_cast<double>(out_channels * (in_channels / groups)) *
           static_cast<double>(kernel_height * kernel_width);
}

double ConvShape::flops() const {
    return 2 * output_elements() * static_cast<double>(in_channels / groups) *
           static_cast<double>(kernel_height * kernel_width);
}

KernelWork conv_forward(const ConvShape& shape, DataType type) {
    return conv(KernelClass::ConvForward, shape, type);
}

KernelWork conv_backward_data(const ConvShape& shape, DataType type) {
    return conv(KernelClass::ConvBackwardData, shape, type);
}

KernelWork conv_backward_filter(const ConvShape& shape, DataType type) {
    return conv(KernelClass::ConvBackwardFilter, shape, type);
}

KernelWork matrix_product(double m, double n, double k, double batches, DataType type) {
    return {KernelClass::MatrixProduct, 2 * batches * m * n * k,
            size(batches * (m * k + k * n + m * n), type)};
}

KernelWork elementwise(double elements, double inputs, double outputs, double flops_per_element,
                       DataType type) {
    return {KernelClass::Elementwise, elements * flops_per_element,
            size(elements * (inputs + outputs), type)};
}

KernelWork reduction(double in_elements, double out_elements, DataType type) {
    return {KernelClass::Reduction, in_elements, size(in_elements + out_elements, type)};
}

double work_us(const Ceilings& ceilings, const KernelWork& work, DataType type) {
    return roofline_us(ceilings, work.flops, work.bytes, type);
}

}  // namespace libswap::cost
