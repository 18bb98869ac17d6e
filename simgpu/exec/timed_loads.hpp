// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Loads that take the time of a memory hierarchy. Where they are switched on, modules are decoded
// with other handlers for loads and for %globaltimer; where not, nothing in the executor differs.
#pragma once

#include <cstdint>
#include <span>

#include "simgpu/exec/inst.hpp"
#include "simgpu/exec/memory.hpp"

namespace simgpu::exec {

/// How a load goes through the caches, by its cache operator.
enum class LoadRoute : std::uint8_t {
    Data,      ///< plain, .ca, .cs, .lu
    Global,    ///< .cg, .cv, volatile, relaxed, acquire, mmio
    ReadOnly,  ///< .nc
    Constant,  ///< .const: not timed
};

/// Memory that says how long loads take. A kernel of a module decoded with timed loads must be run
/// on one, else its loads take no time.
class TimedMemory : public Memory {
  public:
    /// Cycles until all of the lanes' loads are done; addresses are outside the CTA's own memory.
    virtual std::uint32_t load_cycles(std::span<const std::uint64_t> addresses, LoadRoute route,
                                      std::uint32_t sm) = 0;
    /// %globaltimer, `cycles` after the kernel's start.
    virtual std::uint64_t time_ns(std::uint64_t cycles) = 0;
};

/// Whether modules decoded from now on have timed loads. @thread any
void set_timed_loads(bool on) noexcept;

/// The timed handler for `key`, or nullptr where timing is off or does not concern it.
Handler find_timed_handler(const OpKey& key);

/// The handler that find_handler would give with timing off.
Handler find_untimed_handler(const OpKey& key);

}  // namespace simgpu::exec
