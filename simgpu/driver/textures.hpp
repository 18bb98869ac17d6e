// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/driver/context.hpp"

namespace simgpu::driver {

/// Forgets the texture and surface objects of a context.
void release_textures_of(Context& context);

}  // namespace simgpu::driver
