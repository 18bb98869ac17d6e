// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/driver/api_table.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace simgpu::driver {

/// First thing in every exported function: counts the call, and says whether it may go on: 0, or
/// the CUresult that it must return at once (a fault on demand, or the process is exiting). Results
/// are ints so that files without cuda.h can use this header. @thread any
int enter(Api api) noexcept;

/// What an exported function that is not built does.
int unbuilt(Api api) noexcept;

/// Adds rules in the syntax of SIMGPU_FAULTS; empty removes all. False, and nothing changed, if it
/// does not parse.
bool set_faults(std::string_view spec);

/// See simgpuCallCount.
std::uint64_t call_count(std::string_view name);
void reset_counts();

/// From now on every call answers CUDA_ERROR_DEINITIALIZED.
void deinitialise() noexcept;

/// In the child of a fork: from now on every call answers CUDA_ERROR_NOT_INITIALIZED.
void refuse_after_fork() noexcept;
bool forked() noexcept;

/// `"cuMemAlloc_v2": 12, "cuMemFree_v2": 12`, most used first; empty without calls.
std::string describe_counts();

}  // namespace simgpu::driver
