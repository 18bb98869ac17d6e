// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include "simgpu/driver/context.hpp"
#include "simgpu/exec/texture.hpp"

namespace simgpu::driver {

/// Checks a texture's descriptors as the driver does, and makes of them what kernels use. `view`
/// may be null.
CUresult describe_texture(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture,
                          const CUDA_RESOURCE_VIEW_DESC* view, exec::Texture& out);

/// The same for a surface.
CUresult describe_surface(const CUDA_RESOURCE_DESC& resource, exec::Surface& out);

}  // namespace simgpu::driver
