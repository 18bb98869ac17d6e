// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/roofline.hpp"

#include <algorithm>

namespace libswap::cost {

std::uint64_t element_bytes(DataType type) {
    switch (type) {
        case DataType::Fp16:
            return 2;
        case DataType::Fp64:
            return 8;
        case DataType::Fp32:
        case DataType::Tf32:
            break;
    }
    return 4;
}

double Ceilings::tflops(DataType type) const {
    switch (type) {
        case DataType::Tf32:
            return tf32_tflops > 0 ? tf32_tflops : fp32_tflops;
        case DataType::Fp16:
            return fp16_tflops > 0 ? fp16_tflops : fp32_tflops;
        case DataType::Fp64:
            return fp64_tflops > 0 ? fp64_tflops : fp32_tflops / 2;
        case DataType::Fp32:
            break;
    }
    return fp32_tflops;
}

double roofline_us(const Ceilings& ceilings, double flops, double bytes, DataType type) {
    const double compute_us = flops / (ceilings.tflops(type) * 1e6);
    const double memory_us = bytes / (ceilings.mem_gbps * 1e3);
    return ceilings.launch_us + std::max(compute_us, memory_us);
}

}  // namespace libswap::cost
