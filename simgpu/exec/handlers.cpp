// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/handlers.hpp"

#include "simgpu/exec/lanes.hpp"

namespace simgpu::exec::SIMGPU_ISA {

Handler find_handler(const OpKey& key) {
    Handler (*const kSources[])(const OpKey&) = {find_integer, find_logic,   find_float,
                                                 find_half,    find_compare, find_move,
                                                 find_memory,  find_atomic,  find_warp};
    if (key.op == Op::Cvt || key.op == Op::CvtPack2) return find_convert(key);
    for (auto* find : kSources) {
        if (Handler handler = find(key)) return handler;
    }
    return nullptr;
}

}  // namespace simgpu::exec::SIMGPU_ISA
