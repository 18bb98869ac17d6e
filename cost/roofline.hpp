// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>

namespace libswap::cost {

/// What a kernel computes in, as far as its peak goes. Tf32 is fp32 data through matrix units.
enum class DataType : std::uint8_t { Fp32, Tf32, Fp16, Fp64 };

/// Bytes of one element.
std::uint64_t element_bytes(DataType type);

/// What bounds a kernel on a device. Units: 1e12 operations and 1e9 bytes per second.
struct Ceilings {
    double fp32_tflops = 19.5;
    double mem_gbps = 1555;
    double launch_us = 3;
    double tf32_tflops = 0;  ///< 0: as fp32; likewise below
    double fp16_tflops = 0;  ///< also bf16
    double fp64_tflops = 0;  ///< 0: half of fp32

    double tflops(DataType type) const;
};

/// Time of a kernel by the Roofline model: launch + max(flops / peak, bytes / bandwidth). Used
/// until an operation has been measured (Williams, Waterman and Patterson, CACM 2009). Unit us.
double roofline_us(const Ceilings& ceilings, double flops, double bytes,
                   DataType type = DataType::Fp32);

}  // namespace libswap::cost
