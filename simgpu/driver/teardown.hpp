// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

namespace simgpu::driver {

struct Context;

/// Frees the streams, events, modules and allocations of a context whose work is done.
void release_everything_of(Context& context);

}  // namespace simgpu::driver
