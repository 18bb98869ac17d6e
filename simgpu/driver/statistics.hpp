// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

namespace simgpu::driver {

/// SIMGPU_STATS: writes one JSON object with the machine's figures and the calls to the file it
/// names, or one line to stderr for the value "stderr". Nothing if it is not set.
void write_statistics() noexcept;

}  // namespace simgpu::driver
