// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Hints about managed memory: checked and remembered, without effect, since pages do not migrate
// here.

#include <vector>

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/range_hints.hpp"
#include "simgpu/driver/stream.hpp"

namespace simgpu::driver {
namespace {

CUmemLocation location_of(CUdevice device) {
    if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, {0}};
    return {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
}

/// The device that a location is, CU_DEVICE_CPU for any kind of host, CU_DEVICE_INVALID for none.
CUdevice device_of(const CUmemLocation& location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return location.id;
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            return CU_DEVICE_CPU;
        default:
            return CU_DEVICE_INVALID;
    }
}

CUresult check_location(const CUmemLocation& location) {
    const CUdevice device = device_of(location);
    if (device == CU_DEVICE_INVALID) return CUDA_ERROR_INVALID_VALUE;
    if (device != CU_DEVICE_CPU && gpu_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

CUresult check_managed(CUdeviceptr va, std::size_t bytes) {
    Context* context = nullptr;
    SIMGPU_TRY(current_context(context));
    const auto allocation = allocations().containing(va);
    const bool inside = allocation && allocation->kind == Allocation::Kind::Managed && bytes != 0 &&
                        bytes <= allocation->base + allocation->bytes - va;
    return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult advise(CUdeviceptr va, std::size_t bytes, CUmem_advise advice,
                const CUmemLocation& location) {
    SIMGPU_TRY(check_managed(va, bytes));
    const bool whole = advice == CU_MEM_ADVISE_SET_READ_MOSTLY ||
                       advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
                       advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    const bool known =
        advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    if (!known) return CUDA_ERROR_INVALID_VALUE;
    if (!whole) SIMGPU_TRY(check_location(location));
    const CUdevice device = device_of(location);
    range_hints().change(va, bytes, [&](Hints& hints) {
        switch (advice) {
            case CU_MEM_ADVISE_SET_READ_MOSTLY:
            case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
                hints.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
                break;
            case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
                hints.preferred = location;
                break;
            case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
                hints.preferred = {};
                break;
            case CU_MEM_ADVISE_SET_ACCESSED_BY:
                hints.accessed_by.insert(device);
                break;
            default:
                hints.accessed_by.erase(device);
                break;
        }
    });
    return CUDA_SUCCESS;
}

/// A stream that a prefetch is put into; captures cannot hold one.
CUresult stream_for_prefetch(CUstream handle, DefaultStream default_stream) {
    StreamRef stream;
    SIMGPU_TRY(find_stream_for_work(handle, default_stream, stream));
    return refuse_where_captured(stream);
}

CUresult prefetch(CUdeviceptr va, std::size_t bytes, const CUmemLocation& location, unsigned flags,
                  CUstream stream, DefaultStream default_stream) {
    SIMGPU_TRY(check_managed(va, bytes));
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check_location(location));
    SIMGPU_TRY(stream_for_prefetch(stream, default_stream));
    range_hints().change(va, bytes, [&](Hints& hints) { hints.prefetched = location; });
    return CUDA_SUCCESS;
}

/// Ranges of one call; where they go, if anywhere.
struct Batch {
    const CUdeviceptr* addresses;
    const std::size_t* sizes;
    std::size_t count;
    const CUmemLocation* locations;
    const std::size_t* indices;
    std::size_t location_count;
    unsigned long long flags;
};

CUresult check_ranges(const Batch& batch) {
    if (batch.addresses == nullptr || batch.sizes == nullptr || batch.count == 0 ||
        batch.flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t i = 0; i < batch.count; ++i)
        SIMGPU_TRY(check_managed(batch.addresses[i], batch.sizes[i]));
    return CUDA_SUCCESS;
}

CUresult prefetch_batch(const Batch& batch, CUstream stream, DefaultStream default_stream) {
    SIMGPU_TRY(check_ranges(batch));
    const bool located = batch.locations != nullptr && batch.indices != nullptr &&
                         batch.location_count != 0 && batch.location_count <= batch.count &&
                         batch.indices[0] == 0;
    if (!located) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < batch.location_count; ++i) {
        SIMGPU_TRY(check_location(batch.locations[i]));
        const bool rising = i == 0 || batch.indices[i] > batch.indices[i - 1];
        if (!rising || batch.indices[i] >= batch.count) return CUDA_ERROR_INVALID_VALUE;
    }
    SIMGPU_TRY(stream_for_prefetch(stream, default_stream));
    std::size_t location = 0;
    for (std::size_t i = 0; i < batch.count; ++i) {
        if (location + 1 < batch.location_count && batch.indices[location + 1] == i) ++location;
        range_hints().change(batch.addresses[i], batch.sizes[i],
                             [&](Hints& hints) { hints.prefetched = batch.locations[location]; });
    }
    return CUDA_SUCCESS;
}

/// The bytes may hold anything from here on: what they held is as good as anything.
CUresult discard_batch(const Batch& batch, CUstream stream, DefaultStream default_stream) {
    SIMGPU_TRY(check_ranges(batch));
    return stream_for_prefetch(stream, default_stream);
}

/// The hints of a range, as one: what parts of it differ in has no answer.
struct Summary {
    bool any = false, same_preferred = true, same_prefetched = true;
    Hints hints;

    void add(const Hints& part) {
        if (!any) {
            any = true;
            hints = part;
            return;
        }
        const auto equal = [](const CUmemLocation& a, const CUmemLocation& b) {
            return a.type == b.type && a.id == b.id;
        };
        hints.read_mostly = hints.read_mostly && part.read_mostly;
        same_preferred = same_preferred && equal(hints.preferred, part.preferred);
        same_prefetched = same_prefetched && equal(hints.prefetched, part.prefetched);
        std::erase_if(hints.accessed_by,
                      [&](int device) { return part.accessed_by.count(device) == 0; });
    }

    CUmemLocation preferred() const { return same_preferred ? hints.preferred : CUmemLocation{}; }
    CUmemLocation prefetched() const {
        return same_prefetched ? hints.prefetched : CUmemLocation{};
    }
};

CUresult tell_accessed_by(const std::set<int>& devices, int* out, std::size_t bytes) {
    if (bytes == 0 || bytes % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto next = devices.begin();
    for (std::size_t i = 0; i < bytes / sizeof(int); ++i)
        out[i] = next != devices.end() ? *next++ : CU_DEVICE_INVALID;
    return CUDA_SUCCESS;
}

CUresult tell(const Summary& summary, CUmem_range_attribute attribute, void* out,
              std::size_t bytes) {
    auto* number = static_cast<int*>(out);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
        return tell_accessed_by(summary.hints.accessed_by, number, bytes);
    if (bytes != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
            *number = summary.hints.read_mostly ? 1 : 0;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
            *number = device_of(summary.preferred());
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
            *number = device_of(summary.prefetched());
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
            *number = summary.preferred().type;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
            *number = summary.preferred().id;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
            *number = summary.prefetched().type;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
            *number = summary.prefetched().id;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult get_attributes(void** out, const std::size_t* sizes,
                        const CUmem_range_attribute* attributes, std::size_t count, CUdeviceptr va,
                        std::size_t bytes) {
    SIMGPU_TRY(check_managed(va, bytes));
    if (out == nullptr || sizes == nullptr || attributes == nullptr || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    Summary summary;
    range_hints().for_each(va, bytes, [&](const Hints& hints) { summary.add(hints); });
    for (std::size_t i = 0; i < count; ++i)
        SIMGPU_TRY(tell(summary, attributes[i], out[i], sizes[i]));
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuMemAdvise, (CUdeviceptr va, size_t bytes, CUmem_advise advice, CUdevice device),
            { return driver::advise(va, bytes, advice, driver::location_of(device)); })
SIMGPU_CALL(cuMemAdvise_v2,
            (CUdeviceptr va, size_t bytes, CUmem_advise advice, CUmemLocation location),
            { return driver::advise(va, bytes, advice, location); })
SIMGPU_CALL_PTSZ(cuMemPrefetchAsync,
                 (CUdeviceptr va, size_t bytes, CUdevice device, CUstream stream), {
                     return driver::prefetch(va, bytes, driver::location_of(device), 0, stream,
                                             default_stream);
                 })
SIMGPU_CALL_PTSZ(cuMemPrefetchAsync_v2,
                 (CUdeviceptr va, size_t bytes, CUmemLocation location, unsigned flags,
                  CUstream stream),
                 { return driver::prefetch(va, bytes, location, flags, stream, default_stream); })
SIMGPU_CALL_PTSZ(cuMemPrefetchBatchAsync,
                 (CUdeviceptr * addresses, size_t* sizes, size_t count, CUmemLocation* locations,
                  size_t* indices, size_t location_count, unsigned long long flags,
                  CUstream stream),
                 {
                     return driver::prefetch_batch(
                         {addresses, sizes, count, locations, indices, location_count, flags},
                         stream, default_stream);
                 })
SIMGPU_CALL_PTSZ(cuMemDiscardBatchAsync,
                 (CUdeviceptr * addresses, size_t* sizes, size_t count, unsigned long long flags,
                  CUstream stream),
                 {
                     return driver::discard_batch(
                         {addresses, sizes, count, nullptr, nullptr, 0, flags}, stream,
                         default_stream);
                 })
SIMGPU_CALL_PTSZ(cuMemDiscardAndPrefetchBatchAsync,
                 (CUdeviceptr * addresses, size_t* sizes, size_t count, CUmemLocation* locations,
                  size_t* indices, size_t location_count, unsigned long long flags,
                  CUstream stream),
                 {
                     return driver::prefetch_batch(
                         {addresses, sizes, count, locations, indices, location_count, flags},
                         stream, default_stream);
                 })
SIMGPU_CALL(cuMemRangeGetAttribute,
            (void* out, size_t size, CUmem_range_attribute attribute, CUdeviceptr va, size_t bytes),
            { return driver::get_attributes(&out, &size, &attribute, 1, va, bytes); })
SIMGPU_CALL(cuMemRangeGetAttributes,
            (void** out, size_t* sizes, CUmem_range_attribute* attributes, size_t count,
             CUdeviceptr va, size_t bytes),
            { return driver::get_attributes(out, sizes, attributes, count, va, bytes); })
