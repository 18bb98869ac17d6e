// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/context_memory.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "simgpu/driver/arrays.hpp"
#include "simgpu/driver/attributes.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {

namespace {

struct Taken {
    std::shared_ptr<HiddenMemory> printf_buffer, local;
};

struct Table {
    std::mutex mutex;
    std::map<const Context*, Taken> by_context;
};

Table& table() {
    static auto* instance = new Table;  // leaked: calls may come after static destructors
    return *instance;
}

}  // namespace

CUresult need_printf_buffer(Context& context) {
    std::lock_guard lock(table().mutex);
    Taken& taken = table().by_context[&context];
    const std::uint64_t bytes = context.limits[CU_LIMIT_PRINTF_FIFO_SIZE];
    if (taken.printf_buffer != nullptr || bytes == 0) return CUDA_SUCCESS;
    return HiddenMemory::create(context, bytes, taken.printf_buffer);
}

CUresult need_local_memory(Context& context, std::uint64_t bytes, std::uint64_t threads) {
    if (bytes == 0) return CUDA_SUCCESS;
    const auto resident = static_cast<std::uint64_t>(machine().profile().sm_count) *
                          static_cast<std::uint64_t>(max_threads_per_sm());
    const std::uint64_t needed = bytes * std::min(threads, resident);
    std::lock_guard lock(table().mutex);
    Taken& taken = table().by_context[&context];
    if (taken.local != nullptr && taken.local->bytes() >= needed) return CUDA_SUCCESS;
    taken.local = nullptr;
    return HiddenMemory::create(context, needed, taken.local);
}

void release_memory_of(Context& context) {
    std::lock_guard lock(table().mutex);
    table().by_context.erase(&context);
}

}  // namespace simgpu::driver
