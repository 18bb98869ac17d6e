// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/program_memory.hpp"

namespace libswap {

void ProgramMemory::add(std::uint64_t key, const ProgramAllocation& allocation,
                        ProgramAllocation* replaced) {
    std::lock_guard lock(mutex_);
    const auto [place, fresh] = known_.insert({key, allocation});
    *replaced = fresh ? ProgramAllocation{} : place->second;
    if (!fresh) place.value() = allocation;
}

bool ProgramMemory::remove(std::uint64_t key, ProgramAllocation* freed) {
    std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found == known_.end()) return false;
    *freed = found->second;
    known_.erase(found);
    return true;
}

void ProgramMemory::handle_created(std::uint64_t handle, const ProgramAllocation& allocation) {
    std::lock_guard lock(mutex_);
    const std::uint64_t serial = next_serial_++;
    physical_[serial] = {allocation, 1};
    handles_[handle] = serial;
}

void ProgramMemory::handle_retained(std::uint64_t handle) {
    std::lock_guard lock(mutex_);
    const auto found = handles_.find(handle);
    if (found != handles_.end()) ++physical_[found->second].uses;
}

bool ProgramMemory::drop(std::uint64_t serial, ProgramAllocation* freed) {
    const auto found = physical_.find(serial);
    if (found == physical_.end() || --found.value().uses != 0) return false;
    *freed = found->second.allocation;
    physical_.erase(found);
    return true;
}

bool ProgramMemory::handle_released(std::uint64_t handle, ProgramAllocation* freed) {
    std::lock_guard lock(mutex_);
    const auto found = handles_.find(handle);
    return found != handles_.end() && drop(found->second, freed);
}

void ProgramMemory::mapped(std::uint64_t base, std::uint64_t handle) {
    std::lock_guard lock(mutex_);
    const auto found = handles_.find(handle);
    if (found == handles_.end()) return;
    const auto physical = physical_.find(found->second);
    if (physical == physical_.end()) return;
    ++physical.value().uses;
    mappings_[base] = found->second;
}

}  // namespace libswap
