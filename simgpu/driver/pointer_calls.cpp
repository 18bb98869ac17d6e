// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <unistd.h>

#include <cstring>

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/pools.hpp"

namespace simgpu::driver {
namespace {

/// All that is known about a pointer.
struct Pointer {
    std::uint64_t va;
    PointerInfo info;
    std::optional<Allocation> allocation;

    bool known() const { return info.kind != PointerKind::None; }
    bool managed() const { return allocation && allocation->kind == Allocation::Kind::Managed; }
    bool host() const {
        if (managed()) return false;
        if (info.kind == PointerKind::HostPinned || info.kind == PointerKind::HostRegistered)
            return true;
        return info.kind == PointerKind::Vmm && info.location.kind != Location::Kind::Device;
    }
    bool mapped() const { return info.kind != PointerKind::Reserved; }
};

Pointer look_up(std::uint64_t va) {
    Context* context = current_context_or_null();
    int device = context != nullptr ? context->gpu.ordinal : 0;
    return {va, machine().memory().find(va, device), allocations().containing(va)};
}

template <typename T>
CUresult store(void* out, T value) {
    std::memcpy(out, &value, sizeof value);
    return CUDA_SUCCESS;
}

int access_flags(const PointerInfo& info) {
    if (info.device_writable) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return info.device_readable ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

int device_of(const Pointer& pointer) {
    if (pointer.allocation) return pointer.allocation->context->gpu.ordinal;
    return pointer.info.location.kind == Location::Kind::Device ? pointer.info.location.id : 0;
}

CUresult get(void* out, CUpointer_attribute attribute, const Pointer& pointer) {
    const PointerInfo& info = pointer.info;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            // VMM memory belongs to no context.
            return store(out, pointer.allocation ? pointer.allocation->context->handle() : nullptr);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            if (!pointer.mapped()) return CUDA_ERROR_INVALID_VALUE;
            return store(out, static_cast<unsigned>(pointer.host() ? CU_MEMORYTYPE_HOST
                                                                   : CU_MEMORYTYPE_DEVICE));
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return store(out, pointer.va);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (!pointer.host() && !pointer.managed()) return CUDA_ERROR_INVALID_VALUE;
            return store(out, pointer.va);
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return store(out, pointer.allocation && pointer.allocation->sync_memops ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return store(out, static_cast<unsigned long long>(info.buffer_id));
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return store(out, pointer.managed() ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return store(out, device_of(pointer));
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return store(out, info.kind == PointerKind::Device && pointer.allocation &&
                                      pointer.allocation->kind == Allocation::Kind::Device
                                  ? 1
                                  : 0);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            // What a pool gave is a range of its own, though not of addresses.
            return store(out, pointer.allocation ? pointer.allocation->base : info.range_base);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return store(out,
                         static_cast<std::size_t>(pointer.allocation ? pointer.allocation->bytes
                                                                     : info.range_bytes));
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return store(out, pointer.mapped() ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return store(out, static_cast<unsigned long long>(CU_MEM_HANDLE_TYPE_NONE));
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            return store(out, 0);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return store(out, access_flags(info));
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return store(out, pointer.allocation ? pointer.allocation->pool : nullptr);
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            if (!pointer.mapped()) return CUDA_ERROR_INVALID_VALUE;
            return store(out, static_cast<std::size_t>(info.bytes));
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            if (!pointer.mapped()) return CUDA_ERROR_INVALID_VALUE;
            return store(out, info.base);
        default:
            // P2P tokens need the kernel module's interface.
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// Bytes that an attribute's value takes, 0 for one that does not exist.
std::size_t bytes_of(CUpointer_attribute attribute) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return sizeof(int);
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
            return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
        default:
            return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
                           attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE
                       ? sizeof(std::uint64_t)
                       : 0;
    }
}

CUresult get_one(void* out, CUpointer_attribute attribute, CUdeviceptr va) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || bytes_of(attribute) == 0) return CUDA_ERROR_INVALID_VALUE;
    Pointer pointer = look_up(va);
    if (!pointer.known()) return CUDA_ERROR_INVALID_VALUE;
    return get(out, attribute, pointer);
}

/// Unlike the single form: what has no answer is zero, and a pointer that is not known is no error.
CUresult get_many(unsigned count, const CUpointer_attribute* attributes, void** out,
                  CUdeviceptr va) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (attributes == nullptr || out == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    Pointer pointer = look_up(va);
    for (unsigned i = 0; i < count; ++i) {
        if (out[i] == nullptr || bytes_of(attributes[i]) == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < count; ++i) {
        std::memset(out[i], 0, bytes_of(attributes[i]));
        if (pointer.known()) {
            static_cast<void>(get(out[i], attributes[i], pointer));
        } else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
            store(out[i], static_cast<int>(CU_DEVICE_INVALID));
        }
    }
    return CUDA_SUCCESS;
}

CUresult set(const void* value, CUpointer_attribute attribute, CUdeviceptr va) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    Pointer pointer = look_up(va);
    if (!pointer.known()) return CUDA_ERROR_INVALID_VALUE;
    // Not for VMM memory (openucx/ucx issue 9895).
    if (pointer.info.kind == PointerKind::Vmm || pointer.info.kind == PointerKind::Reserved) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    int flag = 0;
    std::memcpy(&flag, value, sizeof flag);
    return allocations().set_sync_memops(va, flag != 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// What an IPC handle carries: enough to tell handles apart. Another process could not open it
/// here.
struct IpcPayload {
    char magic[8];
    std::uint64_t process;
    std::uint64_t va;
    std::uint64_t bytes;
    std::uint64_t buffer_id;
};
static_assert(sizeof(IpcPayload) <= sizeof(CUipcMemHandle));
constexpr char kIpcMagic[8] = {'s', 'i', 'm', 'g', 'p', 'u', 'i', '1'};

CUresult get_ipc_handle(CUipcMemHandle* out, CUdeviceptr va) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = allocations().containing(va);
    if (!allocation || allocation->kind != Allocation::Kind::Device)
        return CUDA_ERROR_INVALID_VALUE;
    IpcPayload payload{};
    std::memcpy(payload.magic, kIpcMagic, sizeof kIpcMagic);
    payload.process = static_cast<std::uint64_t>(::getpid());
    payload.va = allocation->base;
    payload.bytes = allocation->bytes;
    payload.buffer_id = machine().memory().find(va).buffer_id;
    *out = {};
    std::memcpy(out, &payload, sizeof payload);
    return CUDA_SUCCESS;
}

CUresult open_ipc_handle(CUdeviceptr* out, const CUipcMemHandle& handle) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    IpcPayload payload{};
    std::memcpy(&payload, &handle, sizeof payload);
    if (std::memcmp(payload.magic, kIpcMagic, sizeof kIpcMagic) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    // As the driver answers the process that made the handle.
    if (payload.process == static_cast<std::uint64_t>(::getpid()))
        return CUDA_ERROR_INVALID_CONTEXT;
    say("memory of other processes cannot be opened here");
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuPointerGetAttribute, (void* out, CUpointer_attribute attribute, CUdeviceptr va),
            { return driver::get_one(out, attribute, va); })
SIMGPU_CALL(cuPointerGetAttributes,
            (unsigned count, CUpointer_attribute* attributes, void** out, CUdeviceptr va),
            { return driver::get_many(count, attributes, out, va); })
SIMGPU_CALL(cuPointerSetAttribute,
            (const void* value, CUpointer_attribute attribute, CUdeviceptr va),
            { return driver::set(value, attribute, va); })
SIMGPU_CALL(cuIpcGetMemHandle, (CUipcMemHandle * out, CUdeviceptr va),
            { return driver::get_ipc_handle(out, va); })
SIMGPU_CALL(cuIpcOpenMemHandle, (CUdeviceptr * out, CUipcMemHandle handle, unsigned),
            { return driver::open_ipc_handle(out, handle); })
SIMGPU_CALL(cuIpcOpenMemHandle_v2, (CUdeviceptr * out, CUipcMemHandle handle, unsigned),
            { return driver::open_ipc_handle(out, handle); })
