// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

namespace libswap::simgpu::cudnn {

/// Writes `simgpu: cudnn: text` as one line to stderr. @thread any
void say(const char* text);

/// Says once per name that the function, or this use of it, is not built. Returns
/// CUDNN_STATUS_NOT_SUPPORTED; aborts instead where SIMGPU_STRICT is set. @thread any
int unbuilt(const char* name);

}  // namespace libswap::simgpu::cudnn
