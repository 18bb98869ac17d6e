// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/pools.hpp"

namespace simgpu::driver {
namespace {

constexpr std::size_t kPitchAlignment = 512;

CUresult get_info(std::size_t* free, std::size_t* total) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    Memory::Usage usage = machine().memory().usage(context->gpu.ordinal);
    if (free != nullptr) *free = usage.free();
    if (total != nullptr) *total = usage.total;
    return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* out, std::size_t bytes) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    SIMGPU_TRY(check_unsafe_call());
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    auto va = machine().allocate(context->gpu.ordinal, bytes);
    if (!va && va.error() == CUDA_ERROR_OUT_OF_MEMORY && make_room(context->gpu))
        va = machine().allocate(context->gpu.ordinal, bytes);
    if (!va) return va.error();
    allocations().add({*va, bytes, Allocation::Kind::Device, context, nullptr, false, nullptr});
    *out = *va;
    return CUDA_SUCCESS;
}

CUresult allocate_pitch(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
                        unsigned element_bytes) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    bool element_ok = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
    if (out == nullptr || pitch == nullptr || width == 0 || height == 0 || !element_ok) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::size_t rounded = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    if (rounded < width || height > SIZE_MAX / rounded) return CUDA_ERROR_OUT_OF_MEMORY;
    SIMGPU_TRY(allocate(out, rounded * height));
    *pitch = rounded;
    return CUDA_SUCCESS;
}

CUresult allocate_managed(CUdeviceptr* out, std::size_t bytes, unsigned flags) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    SIMGPU_TRY(check_unsafe_call());
    bool flags_ok = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
    if (out == nullptr || bytes == 0 || !flags_ok) return CUDA_ERROR_INVALID_VALUE;
    // Pinned host memory is what both sides can use; pages do not migrate.
    auto pointer = machine().host_allocate(bytes, CU_MEMHOSTALLOC_DEVICEMAP);
    if (!pointer) return pointer.error();
    *out = reinterpret_cast<CUdeviceptr>(*pointer);
    allocations().add({*out, bytes, Allocation::Kind::Managed, context, nullptr, false, nullptr});
    return CUDA_SUCCESS;
}

CUresult allocate_host(void** out, std::size_t bytes, unsigned flags) {
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    SIMGPU_TRY(check_unsafe_call());
    if (out == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto pointer = machine().host_allocate(bytes, flags);
    if (!pointer) return pointer.error();
    allocations().add({reinterpret_cast<std::uint64_t>(*pointer), bytes,
                       Allocation::Kind::HostPinned, context, nullptr, false, nullptr});
    *out = *pointer;
    return CUDA_SUCCESS;
}

CUresult register_host(void* pointer, std::size_t bytes, unsigned flags) {
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    SIMGPU_TRY(check_unsafe_call());
    if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(machine().host_register(pointer, bytes, flags));
    allocations().add({reinterpret_cast<std::uint64_t>(pointer), bytes,
                       Allocation::Kind::HostRegistered, context, nullptr, false, nullptr});
    return CUDA_SUCCESS;
}

CUresult unregister_host(void* pointer) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    SIMGPU_TRY(check_unsafe_call());
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = allocations().at(reinterpret_cast<std::uint64_t>(pointer));
    if (!allocation || allocation->kind != Allocation::Kind::HostRegistered) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    static_cast<void>(allocation->context->device().synchronize());
    allocations().take(allocation->base);
    return machine().memory().host_unregister(pointer);
}

bool is_host_kind(const std::optional<Allocation>& allocation) {
    return allocation && (allocation->kind == Allocation::Kind::HostPinned ||
                          allocation->kind == Allocation::Kind::HostRegistered);
}

CUresult host_device_pointer(CUdeviceptr* out, void* pointer, unsigned flags) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || pointer == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!is_host_kind(allocations().containing(reinterpret_cast<std::uint64_t>(pointer)))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = reinterpret_cast<CUdeviceptr>(pointer);  // unified addressing
    return CUDA_SUCCESS;
}

CUresult host_flags(unsigned* out, void* pointer) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto info = machine().memory().find(reinterpret_cast<std::uint64_t>(pointer));
    if (info.kind != PointerKind::HostPinned) return CUDA_ERROR_INVALID_VALUE;
    // With unified addressing all of it is mapped.
    *out = info.host_flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUresult address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr va) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    auto allocation = allocations().containing(va);
    // Not for VMM memory: drivers of CUDA 13 answer NOT_FOUND there (NVIDIA/nccl issue 2332).
    if (!allocation || allocation->kind == Allocation::Kind::HostRegistered)
        return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = allocation->base;
    if (bytes != nullptr) *bytes = allocation->bytes;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuMemGetInfo_v2, (size_t * free, size_t* total),
            { return driver::get_info(free, total); })
SIMGPU_CALL(cuMemAlloc_v2, (CUdeviceptr * out, size_t bytes),
            { return driver::allocate(out, bytes); })
SIMGPU_CALL(cuMemAllocPitch_v2,
            (CUdeviceptr * out, size_t* pitch, size_t width, size_t height, unsigned element_bytes),
            { return driver::allocate_pitch(out, pitch, width, height, element_bytes); })
SIMGPU_CALL(cuMemAllocManaged, (CUdeviceptr * out, size_t bytes, unsigned flags),
            { return driver::allocate_managed(out, bytes, flags); })
SIMGPU_CALL(cuMemFree_v2, (CUdeviceptr va), {
    driver::Context* context = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    SIMGPU_TRY(driver::check_unsafe_call());
    return va == 0 ? CUDA_SUCCESS : driver::free_device_memory(va);
})
SIMGPU_CALL(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t* bytes, CUdeviceptr va),
            { return driver::address_range(base, bytes, va); })

SIMGPU_CALL(cuMemAllocHost_v2, (void** out, size_t bytes),
            { return driver::allocate_host(out, bytes, 0); })
SIMGPU_CALL(cuMemHostAlloc, (void** out, size_t bytes, unsigned flags),
            { return driver::allocate_host(out, bytes, flags); })
SIMGPU_CALL(cuMemFreeHost, (void* pointer), {
    driver::Context* context = nullptr;
    SIMGPU_TRY(driver::current_context(context));
    SIMGPU_TRY(driver::check_unsafe_call());
    return pointer == nullptr ? CUDA_SUCCESS : driver::free_host_memory(pointer);
})
SIMGPU_CALL(cuMemHostRegister, (void* pointer, size_t bytes, unsigned flags),
            { return driver::register_host(pointer, bytes, flags); })
SIMGPU_CALL(cuMemHostRegister_v2, (void* pointer, size_t bytes, unsigned flags),
            { return driver::register_host(pointer, bytes, flags); })
SIMGPU_CALL(cuMemHostUnregister, (void* pointer), { return driver::unregister_host(pointer); })
SIMGPU_CALL(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void* pointer, unsigned flags),
            { return driver::host_device_pointer(out, pointer, flags); })
SIMGPU_CALL(cuMemHostGetFlags, (unsigned* flags, void* pointer),
            { return driver::host_flags(flags, pointer); })
