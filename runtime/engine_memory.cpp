// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Allocation, free, and the questions programs ask about memory.

#include <cstring>

#include "runtime/engine_impl.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

template <typename T>
CUresult answer(void* data, T value) noexcept {
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

/// As if each buffer had its own reservation, of exactly its size (design 4.1). NOT_FOUND: not ours
/// to answer.
CUresult answer_attribute(Device& device, void* data, CUpointer_attribute attribute,
                          CUdeviceptr ptr) noexcept {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::uint64_t id = 0;
    CUcontext context = nullptr;
    if (!device.range_of(ptr, &base, &bytes, &id, &context)) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return answer(data, context);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return answer(data, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return answer(data, ptr);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return CUDA_ERROR_INVALID_VALUE;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return answer(data, static_cast<unsigned>(device.sync_memops(ptr)));
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return answer(data, static_cast<unsigned long long>(id));
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return answer(data, 0u);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return answer(data, static_cast<int>(device.ordinal()));
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return answer(data, 0u);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return answer(data, static_cast<CUdeviceptr>(base));
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return answer(data, static_cast<std::size_t>(bytes));
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return answer(data, 1u);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return answer(data, 0ull);
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
            return answer(data, 0u);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return answer(data, static_cast<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
            const Pool* pool = device.pool_of(ptr);
            return answer(data, pool ? pool->handle : static_cast<CUmemoryPool>(nullptr));
        }
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return answer(data, static_cast<std::size_t>(bytes));
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return answer(data, reinterpret_cast<void*>(base));
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return answer(data, static_cast<unsigned long long>(id));
        default:
            return CUDA_ERROR_NOT_FOUND;
    }
}

}  // namespace

bool Engine::Impl::thread_is_relaxed() noexcept {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (driver.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) return false;
    const bool relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    LIBSWAP_CU_IGNORE(driver.cuThreadExchangeStreamCaptureMode(&mode));
    return relaxed;
}

CUresult Engine::Impl::ask_unsafe() noexcept {
    if (thread_is_relaxed()) return CUDA_SUCCESS;
    // The driver refuses all unsafe calls alike, and a capture that one of the program's would have
    // ended has to end.
    CUdeviceptr probe = 0;
    const CUresult result = driver.cuMemAlloc(&probe, 1);
    if (result == CUDA_SUCCESS) LIBSWAP_CU_IGNORE(driver.cuMemFree(probe));
    return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
}

CUresult Engine::mem_alloc(CUdeviceptr* ptr, std::size_t bytes, RealCall real) noexcept {
    return guarded([&] {
        if (!ptr || bytes == 0) return real();
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, true);
        // In a capture the driver may forbid it. Where it does not, that is its own memory.
        if (!device || (device->capturing() && !impl_->thread_is_relaxed())) return real();
        const CUresult result = device->mem_alloc(ptr, bytes, context);
        if (result != CUDA_ERROR_NOT_READY) return result;
        // Our work failed, and nothing has changed: the driver's own memory, which stays.
        const CUresult real_result = impl_->with_room(device, bytes, real);
        if (real_result != CUDA_SUCCESS) return real_result;
        Counters::add(device->counters().fallbacks);
        LIBSWAP_LOG(Info, "{} bytes are the driver's own memory: ours could not be set up", bytes);
        real_allocated(*ptr, bytes, MemoryPlace::Device);
        return real_result;
    });
}

CUresult Engine::mem_free(CUdeviceptr ptr, RealCall real) noexcept {
    return guarded([&] {
        if (Device* device = impl_->owner(ptr)) {
            const CUresult allowed = device->capturing() ? impl_->ask_unsafe() : CUDA_SUCCESS;
            return allowed == CUDA_SUCCESS ? device->mem_free(ptr) : allowed;
        }
        const CUresult result = real();
        if (result == CUDA_SUCCESS) real_freed(ptr);
        return result;
    });
}

void Engine::content_begins(std::uint64_t address, std::size_t bytes) noexcept {
    (void)guarded([&] {
        if (Device* device = impl_->owner(address)) device->content_begins(address, bytes);
        return CUDA_SUCCESS;
    });
}

void Engine::content_ends(std::uint64_t address, std::size_t bytes) noexcept {
    (void)guarded([&] {
        if (Device* device = impl_->owner(address)) device->content_ends(address, bytes);
        return CUDA_SUCCESS;
    });
}

CUresult Engine::mem_get_info(std::size_t* free_bytes, std::size_t* total_bytes,
                              RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, true);
        if (!device) return real();
        std::size_t free_now = 0;
        std::size_t total = 0;
        device->mem_info(&free_now, &total);
        if (free_bytes) *free_bytes = free_now;
        if (total_bytes) *total_bytes = total;
        return CUDA_SUCCESS;
    });
}

CUresult Engine::mem_get_address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr ptr,
                                       RealCall real) noexcept {
    return guarded([&] {
        Device* device = impl_->owner(ptr);
        if (!device) return real();
        std::uint64_t found_base = 0;
        std::uint64_t found_bytes = 0;
        if (!device->range_of(ptr, &found_base, &found_bytes)) return CUDA_ERROR_NOT_FOUND;
        if (base) *base = found_base;
        if (bytes) *bytes = found_bytes;
        return CUDA_SUCCESS;
    });
}

CUresult Engine::pointer_get_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr,
                                       RealCall real) noexcept {
    return guarded([&] {
        Device* device = data ? impl_->owner(ptr) : nullptr;
        if (!device) return real();
        const CUresult result = answer_attribute(*device, data, attribute, ptr);
        return result == CUDA_ERROR_NOT_FOUND ? real() : result;
    });
}

CUresult Engine::pointer_get_attributes(unsigned count, CUpointer_attribute* attributes,
                                        void** data, CUdeviceptr ptr, RealCall real) noexcept {
    return guarded([&] {
        Device* device = attributes && data ? impl_->owner(ptr) : nullptr;
        if (!device) return real();
        // The driver fills in what it knows; ours go over it.
        const CUresult result = real();
        if (result != CUDA_SUCCESS) return result;
        for (unsigned i = 0; i < count; ++i)
            if (data[i]) (void)answer_attribute(*device, data[i], attributes[i], ptr);
        return result;
    });
}

CUresult Engine::pointer_set_attribute(const void* value, CUpointer_attribute attribute,
                                       CUdeviceptr ptr, RealCall real) noexcept {
    return guarded([&] {
        Device* device = value ? impl_->owner(ptr) : nullptr;
        // Memory like ours refuses it (NOT_SUPPORTED), so we honour it ourselves.
        if (!device || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return real();
        device->set_sync_memops(ptr, *static_cast<const unsigned*>(value) != 0);
        return CUDA_SUCCESS;
    });
}

CUresult Engine::ipc_get_mem_handle(CUipcMemHandle*, CUdeviceptr ptr, RealCall real) noexcept {
    return guarded([&] {
        if (impl_->owner(ptr))
            LIBSWAP_LOG(
                Warning,
                "memory that can be swapped cannot be shared with other processes: returning "
                "the driver's error; LIBSWAP_IPC=1 makes all memory sharable, and swaps nothing");
        return real();
    });
}

CUresult Engine::export_range(CUdeviceptr ptr, std::size_t bytes, RealCall real) noexcept {
    const std::uint64_t ends[] = {ptr, bytes ? ptr + bytes - 1 : ptr};
    return use_for_good(ends, 2, StayReason::Export, real);
}

}  // namespace libswap
