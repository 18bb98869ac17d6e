// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

namespace simgpu::driver {

/// What cuDriverGetVersion answers: the driver of CUDA 13.0.
inline constexpr int kDriverVersion = 13000;

}  // namespace simgpu::driver
