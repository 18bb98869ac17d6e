// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory that the program has from the driver itself (managed, arrays, pinned, its own virtual
// memory), and what the driver takes: never moved by us, but counted.

#include "runtime/engine_impl.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

/// Where the driver does not say how much it needs: first this much, then twice as much.
constexpr std::uint64_t kUnknownNeedBytes = std::uint64_t{16} << 20;
constexpr int kRoomTries = 3;

}  // namespace

void Engine::Impl::account(const ProgramAllocation& allocation, bool came) noexcept {
    if (allocation.bytes == 0) return;
    if (allocation.place == MemoryPlace::Host) {
        if (HostLimit* limit = host_limit.load(std::memory_order_acquire)) {
            if (came)
                limit->program_took(allocation.bytes);
            else
                limit->program_gave_back(allocation.bytes);
        }
    } else if (allocation.device) {
        if (came)
            allocation.device->external_allocated(allocation.bytes, allocation.place);
        else
            allocation.device->external_freed(allocation.bytes, allocation.place);
    }
}

std::uint64_t Engine::Impl::driver_free() noexcept {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    return driver.cuMemGetInfo(&free_bytes, &total_bytes) == CUDA_SUCCESS ? free_bytes : 0;
}

CUresult Engine::Impl::with_room(Device* device, std::uint64_t bytes, RealCall real) {
    CUresult result = real();
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !device) return result;
    const bool unknown = bytes == 0;
    if (unknown) bytes = kUnknownNeedBytes;
    std::uint64_t taken = 0;
    for (int tries = 0; tries < kRoomTries && device->give_room(bytes); ++tries) {
        const std::uint64_t before = driver_free();
        result = real();
        const std::uint64_t after = driver_free();
        if (result != CUDA_ERROR_OUT_OF_MEMORY) {
            taken = before > after ? before - after : 0;
            break;
        }
        bytes *= 2;
    }
    // What the program asked for is counted by who asked; what the driver took is gone for us.
    device->keep_room(unknown && result == CUDA_SUCCESS ? taken : 0);
    return result;
}

CUresult Engine::driver_allocates(std::uint64_t bytes, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        return impl_->with_room(impl_->current(&context, false), bytes, real);
    });
}

void Engine::real_allocated(std::uint64_t key, std::size_t bytes, MemoryPlace place) noexcept {
    guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, true);
        const ProgramAllocation allocation{bytes, place, device};
        ProgramAllocation replaced;
        impl_->program_memory.add(key, allocation, &replaced);
        impl_->account(replaced, false);
        impl_->account(allocation, true);
        return CUDA_SUCCESS;
    });
}

void Engine::real_freed(std::uint64_t key) noexcept {
    guarded([&] {
        ProgramAllocation freed;
        if (impl_->program_memory.remove(key, &freed)) impl_->account(freed, false);
        return CUDA_SUCCESS;
    });
}

CUresult Engine::host_alloc(void** ptr, std::size_t bytes, RealCall real) noexcept {
    return guarded([&] {
        CUresult result = real();
        // Ours that lies ready may be what is missing.
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            bool any = false;
            impl_->for_each_device([&](Device& device) { any |= device.trim_host(); });
            if (any) result = real();
        }
        if (result == CUDA_SUCCESS && ptr)
            real_allocated(reinterpret_cast<std::uintptr_t>(*ptr), bytes, MemoryPlace::Host);
        return result;
    });
}

CUresult Engine::host_free(void* ptr, RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        if (result == CUDA_SUCCESS) real_freed(reinterpret_cast<std::uintptr_t>(ptr));
        return result;
    });
}

CUresult Engine::physical_create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                                 const CUmemAllocationProp* properties, RealCall real) noexcept {
    return guarded([&] {
        const bool on_device =
            properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        Device* device = on_device ? impl_->device(properties->location.id) : nullptr;
        const CUresult result = impl_->with_room(device, bytes, real);
        if (result == CUDA_SUCCESS && handle) {
            const ProgramAllocation allocation{
                bytes, on_device ? MemoryPlace::Device : MemoryPlace::Host, device};
            impl_->program_memory.handle_created(*handle, allocation);
            impl_->account(allocation, true);
        }
        return result;
    });
}

CUresult Engine::physical_release(CUmemGenericAllocationHandle handle, RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        ProgramAllocation freed;
        if (result == CUDA_SUCCESS && impl_->program_memory.handle_released(handle, &freed))
            impl_->account(freed, false);
        return result;
    });
}

CUresult Engine::physical_map(CUdeviceptr ptr, CUmemGenericAllocationHandle handle,
                              RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        if (result == CUDA_SUCCESS) impl_->program_memory.mapped(ptr, handle);
        return result;
    });
}

CUresult Engine::physical_unmap(CUdeviceptr ptr, std::size_t bytes, RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        if (result == CUDA_SUCCESS)
            impl_->program_memory.unmapped(
                ptr, bytes, [&](const ProgramAllocation& freed) { impl_->account(freed, false); });
        return result;
    });
}

CUresult Engine::physical_retain(CUmemGenericAllocationHandle* handle, CUdeviceptr ptr,
                                 RealCall real) noexcept {
    return guarded([&] {
        if (impl_->owner(ptr)) return export_range(ptr, 0, real);
        const CUresult result = real();
        if (result == CUDA_SUCCESS && handle) impl_->program_memory.handle_retained(*handle);
        return result;
    });
}

CUresult Engine::mem_alloc_pitch(CUdeviceptr* ptr, std::size_t* pitch, std::size_t width,
                                 std::size_t height, unsigned element_bytes,
                                 RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, true);
        const std::size_t wanted = device && ptr && pitch && !device->capturing()
                                       ? impl_->pitch_of(width, element_bytes)
                                       : 0;
        if (wanted != 0 && height != 0 && height <= SIZE_MAX / wanted) {
            const CUresult result = device->mem_alloc(ptr, wanted * height, context);
            if (result == CUDA_SUCCESS) *pitch = wanted;
            if (result != CUDA_ERROR_NOT_READY) return result;
            Counters::add(device->counters().fallbacks);
        }
        const CUresult result = impl_->with_room(device, 0, real);
        if (result == CUDA_SUCCESS && ptr && pitch)
            real_allocated(*ptr, *pitch * height, MemoryPlace::Device);
        return result;
    });
}

/// The driver's own answer for one row, remembered; 0 where it refuses.
std::size_t Engine::Impl::pitch_of(std::size_t width, unsigned element_bytes) {
    const std::pair<std::size_t, unsigned> key{width, element_bytes};
    {
        std::lock_guard lock(pitch_mutex);
        if (const auto found = pitches.find(key); found != pitches.end()) return found->second;
    }
    CUdeviceptr row = 0;
    std::size_t pitch = 0;
    if (!driver.cuMemAllocPitch || width == 0 ||
        driver.cuMemAllocPitch(&row, &pitch, width, 1, element_bytes) != CUDA_SUCCESS)
        return 0;
    LIBSWAP_CU_IGNORE(driver.cuMemFree(row));
    std::lock_guard lock(pitch_mutex);
    pitches[key] = pitch;
    return pitch;
}

}  // namespace libswap
