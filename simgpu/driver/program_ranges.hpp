// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <optional>

namespace simgpu::driver {

/// A piece of device memory that the program has in its hands.
struct ProgramRange {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;

    std::uint64_t end() const { return base + bytes; }
};

/// Keeps what the runtime was asked for: see simgpuAllocationNote. `bytes` 0 forgets. @thread any
void note_program_range(std::uint64_t base, std::uint64_t bytes);

/// The live allocation that `va` lies in: as the runtime's caller knows it, else what is mapped
/// there. Nothing for addresses outside of the device's window. @thread any
std::optional<ProgramRange> program_range(std::uint64_t va, int device);

}  // namespace simgpu::driver
