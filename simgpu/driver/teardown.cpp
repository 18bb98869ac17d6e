// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/teardown.hpp"

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/arrays.hpp"
#include "simgpu/driver/context_memory.hpp"
#include "simgpu/driver/module.hpp"
#include "simgpu/driver/stream.hpp"
#include "simgpu/driver/textures.hpp"

namespace simgpu::driver {

void release_everything_of(Context& context) {
    release_streams_of(context);
    release_modules_of(context);
    release_textures_of(context);
    release_arrays_of(context);
    release_allocations_of(context);
    release_memory_of(context);
}

}  // namespace simgpu::driver
