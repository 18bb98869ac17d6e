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

/// Keeps what the runtime was asked for: see simgpuAllocationNote. `bytes` 0: it was freed. @thread
/// any
void note_program_range(std::uint64_t base, std::uint64_t bytes);
/// These addresses are given out anew: what was noted of them is over. @thread any
void forget_program_ranges(std::uint64_t base, std::uint64_t bytes);

/// The live allocation that `va` lies in: as the runtime's caller knows it, else what is mapped
/// there. Nothing for addresses outside of the device's window, nor for what the caller has freed,
/// which may stay mapped: in pools, and behind an interposer's back. @thread any
std::optional<ProgramRange> program_range(std::uint64_t va, int device);

/// A launch named this address. A multiple of 256, as allocators give them out, is taken for the
/// beginning of a tensor. @thread any
void note_operand(std::uint64_t va);
/// The first address beyond `va` and below `end` that a launch has named since it was given out,
/// else `end`. @thread any
std::uint64_t end_of_operand(std::uint64_t va, std::uint64_t end);

}  // namespace simgpu::driver
