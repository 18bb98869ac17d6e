// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>

namespace libswap::bench {

/// The kernels of GpuProber as PTX: bench_sweep_X and bench_probe_X for X of ca, cg, nc, and
/// bench_overhead.
std::string probe_ptx();

}  // namespace libswap::bench
