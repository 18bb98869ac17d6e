// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/teardown.hpp"

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/module.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {

void release_everything_of(Context& context) {
    release_streams_of(context);
    release_modules_of(context);
    release_allocations_of(context);
}

}  // namespace simgpu::driver
