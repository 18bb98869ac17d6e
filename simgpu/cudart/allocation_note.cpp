// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudart/allocation_note.hpp"

#include <cstdint>

#include "simgpu/driver_function.hpp"

namespace libswap::simgpu::cudart {
namespace {

using Note = void (*)(std::uint64_t va, std::size_t bytes);

Note find_note() {
    Note note = nullptr;
    find_in_driver("simgpuAllocationNote", note);
    return note;
}

}  // namespace

void note_allocation(const void* pointer, std::size_t bytes) noexcept {
    static const Note note = find_note();
    if (note != nullptr) note(reinterpret_cast<std::uint64_t>(pointer), bytes);
}

}  // namespace libswap::simgpu::cudart
