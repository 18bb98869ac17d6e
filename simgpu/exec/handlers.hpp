// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "simgpu/exec/inst.hpp"

/// The handlers, compiled for each instruction set; null if there is none for the key.
namespace simgpu::exec::plain {
Handler find_handler(const OpKey& key);
}
namespace simgpu::exec::avx2 {
Handler find_handler(const OpKey& key);
}
