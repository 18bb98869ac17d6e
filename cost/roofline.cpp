// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/roofline.hpp"

#include <algorithm>

namespace libswap::cost {

double roofline_us(const Ceilings& ceilings, double flops, double bytes) {
    const double compute_us = flops / (ceilings.fp32_tflops * 1e6);
    const double memory_us = bytes / (ceilings.mem_gbps * 1e3);
    return ceilings.launch_us + std::max(compute_us, memory_us);
}

}  // namespace libswap::cost
