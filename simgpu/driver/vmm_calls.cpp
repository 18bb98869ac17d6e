// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <vector>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/program_ranges.hpp"

namespace simgpu::driver {
namespace {

CUresult require_vmm() {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return options().vmm ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/// Where a CUmemLocation is, or CUDA_ERROR_INVALID_VALUE. Host nodes: there is one.
Result<Location> location_of(const CUmemLocation& location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            if (gpu_at(location.id) == nullptr) return failed(CUDA_ERROR_INVALID_DEVICE);
            return Location{Location::Kind::Device, location.id};
        case CU_MEM_LOCATION_TYPE_HOST:
            return Location{Location::Kind::Host, 0};
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
            if (location.id != 0) return failed(CUDA_ERROR_INVALID_VALUE);
            return Location{Location::Kind::HostNuma, 0};
        default:
            return failed(CUDA_ERROR_INVALID_VALUE);
    }
}

CUmemLocation location_to_cuda(const Location& location) {
    CUmemLocation out{};
    out.id = location.id;
    out.type = location.kind == Location::Kind::Device     ? CU_MEM_LOCATION_TYPE_DEVICE
               : location.kind == Location::Kind::HostNuma ? CU_MEM_LOCATION_TYPE_HOST_NUMA
                                                           : CU_MEM_LOCATION_TYPE_HOST;
    return out;
}

CUresult check_properties(const CUmemAllocationProp* properties, Location& location) {
    if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    auto found = location_of(properties->location);
    if (!found) return found.error();
    location = *found;
    // PyTorch asks for file descriptors whether it shares them or not. Only to export one is
    // refused.
    if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* out, std::size_t bytes,
                const CUmemAllocationProp* properties, unsigned long long flags) {
    SIMGPU_TRY(require_vmm());
    if (out == nullptr || flags != 0 || bytes == 0 || bytes % kPageBytes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    Location location;
    SIMGPU_TRY(check_properties(properties, location));
    // As where a container's seccomp profile blocks get_mempolicy.
    if (location.kind != Location::Kind::Device && !options().host_numa)
        return CUDA_ERROR_NOT_PERMITTED;
    auto handle = machine().create(bytes, location);
    if (!handle) return handle.error();
    *out = *handle;
    return CUDA_SUCCESS;
}

CUresult reserve(CUdeviceptr* out, std::size_t bytes, std::size_t alignment, CUdeviceptr hint,
                 unsigned long long flags) {
    SIMGPU_TRY(require_vmm());
    bool alignment_ok = (alignment & (alignment - 1)) == 0;
    if (out == nullptr || flags != 0 || bytes == 0 || bytes % kPageBytes != 0 || !alignment_ok) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto va = machine().memory().reserve(bytes, alignment, hint);
    if (!va) return va.error();
    forget_program_ranges(*va, bytes);
    *out = *va;
    return CUDA_SUCCESS;
}

CUresult granularity(std::size_t* out, const CUmemAllocationProp* properties,
                     CUmemAllocationGranularity_flags option) {
    SIMGPU_TRY(require_vmm());
    bool option_ok = option == CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
                     option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    Location location;
    if (out == nullptr || !option_ok) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check_properties(properties, location));
    *out = kPageBytes;
    return CUDA_SUCCESS;
}

CUresult set_access(CUdeviceptr va, std::size_t bytes, const CUmemAccessDesc* descriptions,
                    std::size_t count) {
    SIMGPU_TRY(require_vmm());
    if (descriptions == nullptr || count == 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    std::vector<AccessGrant> grants;
    for (std::size_t i = 0; i < count; ++i) {
        auto location = location_of(descriptions[i].location);
        if (!location) return location.error();
        auto flags = descriptions[i].flags;
        bool flags_ok = flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                        flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                        flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (!flags_ok) return CUDA_ERROR_INVALID_VALUE;
        grants.push_back({*location, flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                          flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
    return machine().set_access(va, bytes, grants);
}

CUresult get_access(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr va) {
    SIMGPU_TRY(require_vmm());
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto where = location_of(*location);
    if (!where) return where.error();
    auto found = machine().memory().get_access(va, *where);
    if (!found) return found.error();
    *flags = *found;
    return CUDA_SUCCESS;
}

CUresult properties_of(CUmemAllocationProp* out, CUmemGenericAllocationHandle handle) {
    SIMGPU_TRY(require_vmm());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto info = machine().memory().handle_info(handle);
    if (!info) return info.error();
    *out = {};
    out->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    out->location = location_to_cuda(info->location);
    return CUDA_SUCCESS;
}

CUresult retain(CUmemGenericAllocationHandle* out, void* address) {
    SIMGPU_TRY(require_vmm());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto handle = machine().memory().retain(reinterpret_cast<std::uint64_t>(address));
    if (!handle) return handle.error();
    *out = *handle;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuMemAddressReserve,
            (CUdeviceptr * out, size_t bytes, size_t alignment, CUdeviceptr hint,
             unsigned long long flags),
            { return driver::reserve(out, bytes, alignment, hint, flags); })
SIMGPU_CALL(cuMemAddressFree, (CUdeviceptr va, size_t bytes), {
    SIMGPU_TRY(driver::require_vmm());
    return driver::machine().memory().free_range(va, bytes);
})
SIMGPU_CALL(cuMemCreate,
            (CUmemGenericAllocationHandle * out, size_t bytes,
             const CUmemAllocationProp* properties, unsigned long long flags),
            { return driver::create(out, bytes, properties, flags); })
SIMGPU_CALL(cuMemRelease, (CUmemGenericAllocationHandle handle), {
    SIMGPU_TRY(driver::require_vmm());
    return driver::machine().memory().release(handle);
})
SIMGPU_CALL(cuMemMap,
            (CUdeviceptr va, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags),
            {
                SIMGPU_TRY(driver::require_vmm());
                if (flags != 0 || offset != 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
                return driver::machine().map(va, bytes, offset, handle);
            })
SIMGPU_CALL(cuMemUnmap, (CUdeviceptr va, size_t bytes), {
    SIMGPU_TRY(driver::require_vmm());
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return driver::machine().unmap(va, bytes);
})
SIMGPU_CALL(cuMemSetAccess,
            (CUdeviceptr va, size_t bytes, const CUmemAccessDesc* descriptions, size_t count),
            { return driver::set_access(va, bytes, descriptions, count); })
SIMGPU_CALL(cuMemGetAccess,
            (unsigned long long* flags, const CUmemLocation* location, CUdeviceptr va),
            { return driver::get_access(flags, location, va); })
SIMGPU_CALL(cuMemGetAllocationGranularity,
            (size_t * out, const CUmemAllocationProp* properties,
             CUmemAllocationGranularity_flags option),
            { return driver::granularity(out, properties, option); })
SIMGPU_CALL(cuMemGetAllocationPropertiesFromHandle,
            (CUmemAllocationProp * out, CUmemGenericAllocationHandle handle),
            { return driver::properties_of(out, handle); })
SIMGPU_CALL(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * out, void* address),
            { return driver::retain(out, address); })
