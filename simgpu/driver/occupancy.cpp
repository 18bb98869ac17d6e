// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/occupancy.hpp"

#include <algorithm>

#include "simgpu/driver/attributes.hpp"
#include "simgpu/driver/module.hpp"

namespace simgpu::driver {

namespace {

/// Granularities of allocation on an SM (CUDA occupancy documentation): registers per warp, bytes
/// of shared memory.
constexpr int kRegisterUnit = 256;
constexpr std::size_t kSharedUnit = 128;

template <typename T>
T round_up(T value, T unit) {
    return (value + unit - 1) / unit * unit;
}

std::size_t shared_per_block(const Function& function, std::size_t dynamic_bytes) {
    std::size_t bytes = function.info->static_shared_bytes + dynamic_bytes +
                        static_cast<std::size_t>(shared_memory_limits().reserved_per_block);
    return round_up(bytes, kSharedUnit);
}

}  // namespace

int max_dynamic_shared_bytes(const Function& function) {
    int standard = std::max(
        0, shared_memory_limits().per_block - static_cast<int>(function.info->static_shared_bytes));
    return std::max(standard, function.max_dynamic_shared_bytes.load());
}

int active_blocks_per_sm(const Function& function, int block_threads,
                         std::size_t dynamic_shared_bytes) {
    if (block_threads > function.max_threads()) return 0;
    if (dynamic_shared_bytes > static_cast<std::size_t>(max_dynamic_shared_bytes(function)))
        return 0;
    int warps = (block_threads + kWarpThreads - 1) / kWarpThreads;
    int blocks = std::min(max_blocks_per_sm(), max_threads_per_sm() / kWarpThreads / warps);
    int registers = static_cast<int>(std::max<std::uint32_t>(function.info->registers, 1));
    int registers_per_block = round_up(registers * kWarpThreads, kRegisterUnit) * warps;
    blocks = std::min(blocks, kRegistersPerSm / registers_per_block);
    std::size_t shared = shared_per_block(function, dynamic_shared_bytes);
    if (shared != 0) {
        blocks = std::min(
            blocks,
            static_cast<int>(static_cast<std::size_t>(shared_memory_limits().per_sm) / shared));
    }
    return blocks;
}

std::size_t available_dynamic_shared_bytes(const Function& function, int blocks) {
    SharedMemoryLimits limits = shared_memory_limits();
    std::size_t per_block =
        static_cast<std::size_t>(limits.per_sm / blocks) / kSharedUnit * kSharedUnit;
    std::size_t fixed =
        function.info->static_shared_bytes + static_cast<std::size_t>(limits.reserved_per_block);
    if (per_block <= fixed) return 0;
    return std::min(per_block - fixed,
                    static_cast<std::size_t>(max_dynamic_shared_bytes(function)));
}

}  // namespace simgpu::driver
