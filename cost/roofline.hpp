// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

namespace libswap::cost {

/// What bounds a kernel on a device. Units: 1e12 operations and 1e9 bytes per second.
struct Ceilings {
    double fp32_tflops = 19.5;
    double mem_gbps = 1555;
    double launch_us = 3;
};

/// Time of a kernel by the Roofline model: launch + max(flops / peak, bytes / bandwidth). Used
/// until an operation has been measured (Williams, Waterman and Patterson, CACM 2009).
double roofline_us(const Ceilings& ceilings, double flops, double bytes);

}  // namespace libswap::cost
