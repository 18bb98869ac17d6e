// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>

namespace simgpu::driver {

struct Function;

/// Dynamic shared memory that a launch may ask for: the default, or what was opted in to.
int max_dynamic_shared_bytes(const Function& function);

/// Blocks of this shape that fit onto one SM at a time; 0 where a block cannot be launched.
int active_blocks_per_sm(const Function& function, int block_threads,
                         std::size_t dynamic_shared_bytes);

/// Largest dynamic shared memory with which `blocks` fit onto one SM.
std::size_t available_dynamic_shared_bytes(const Function& function, int blocks);

}  // namespace simgpu::driver
