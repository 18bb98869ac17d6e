// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/arrays.hpp"

#include <algorithm>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/handle_table.hpp"
#include "simgpu/driver/pools.hpp"

namespace simgpu::driver {

namespace {

HandleTable<Array>& arrays() {
    static auto* table = new HandleTable<Array>;  // leaked: calls may come after static destructors
    return *table;
}

HandleTable<MipmappedArray>& mipmapped_arrays() {
    static auto* table = new HandleTable<MipmappedArray>;  // leaked likewise
    return *table;
}

constexpr std::size_t kMaxWidth = 131072, kMaxHeight = 65536, kMaxDepth = 16384, kMaxLayers = 2048;
constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                                 CUDA_ARRAY3D_COLOR_ATTACHMENT;

bool valid_cubemap(const CUDA_ARRAY3D_DESCRIPTOR& given) {
    constexpr std::size_t kFaces = 6;
    const bool layered = (given.Flags & CUDA_ARRAY3D_LAYERED) != 0;
    const bool faces =
        layered ? given.Depth != 0 && given.Depth % kFaces == 0 : given.Depth == kFaces;
    return faces && given.Width == given.Height;
}

CUresult check(const CUDA_ARRAY3D_DESCRIPTOR& given) {
    const bool layered = (given.Flags & CUDA_ARRAY3D_LAYERED) != 0;
    const bool channels_ok =
        given.NumChannels == 1 || given.NumChannels == 2 || given.NumChannels == 4;
    if (format_bytes(given.Format) == 0 || !channels_ok || given.Width == 0)
        return CUDA_ERROR_INVALID_VALUE;
    // Sparse and deferred memory are for devices that say they have it.
    if ((given.Flags & ~kKnownFlags) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (given.Height == 0 && given.Depth != 0 && !layered) return CUDA_ERROR_INVALID_VALUE;
    if (layered && given.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
    if ((given.Flags & CUDA_ARRAY3D_CUBEMAP) != 0 && !valid_cubemap(given))
        return CUDA_ERROR_INVALID_VALUE;
    const bool too_large = given.Width > kMaxWidth || given.Height > kMaxHeight ||
                           given.Depth > (layered ? kMaxLayers : kMaxDepth);
    return too_large ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* given) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check(*given));
    SIMGPU_TRY(check_unsafe_call());
    auto array = std::make_shared<Array>();
    array->descriptor = *given;
    SIMGPU_TRY(HiddenMemory::create(*context, array->bytes(), array->memory));
    array->va = array->memory->va();
    *out = array->handle();
    arrays().add(std::move(array));
    return CUDA_SUCCESS;
}

CUDA_ARRAY3D_DESCRIPTOR widen(const CUDA_ARRAY_DESCRIPTOR& given) {
    return {given.Width, given.Height, 0, given.Format, given.NumChannels, 0};
}

CUresult create_2d(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* given) {
    if (given == nullptr) return create(out, nullptr);
    const CUDA_ARRAY3D_DESCRIPTOR wide = widen(*given);
    return create(out, &wide);
}

/// A level's shape: halved per level, layers kept.
CUDA_ARRAY3D_DESCRIPTOR level_of(CUDA_ARRAY3D_DESCRIPTOR base, unsigned level) {
    const auto halved = [level](std::size_t extent) {
        return extent == 0 ? extent : std::max<std::size_t>(extent >> level, 1);
    };
    base.Width = halved(base.Width);
    base.Height = halved(base.Height);
    const bool keep = (base.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    if (!keep) base.Depth = halved(base.Depth);
    return base;
}

unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR& given) {
    std::size_t largest = std::max(given.Width, given.Height);
    if ((given.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0)
        largest = std::max(largest, given.Depth);
    unsigned levels = 1;
    while (largest > 1) {
        largest >>= 1;
        ++levels;
    }
    return levels;
}

CUresult create_mipmapped(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* given,
                          unsigned levels) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || given == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check(*given));
    SIMGPU_TRY(check_unsafe_call());
    auto mipmapped = std::make_shared<MipmappedArray>();
    std::uint64_t bytes = 0;
    for (unsigned level = 0; level < std::min(levels, most_levels(*given)); ++level) {
        auto array = std::make_shared<Array>();
        array->descriptor = level_of(*given, level);
        array->is_level = true;
        array->va = bytes;
        bytes += array->bytes();
        mipmapped->levels.push_back(std::move(array));
    }
    std::shared_ptr<HiddenMemory> memory;
    SIMGPU_TRY(HiddenMemory::create(*context, bytes, memory));
    for (const auto& array : mipmapped->levels) {
        array->memory = memory;
        array->va += memory->va();
        arrays().add(array);
    }
    *out = mipmapped->handle();
    mipmapped_arrays().add(std::move(mipmapped));
    return CUDA_SUCCESS;
}

CUresult destroy(CUarray handle) {
    std::shared_ptr<Array> array;
    SIMGPU_TRY(find_array(handle, array));
    if (array->is_level) return CUDA_ERROR_INVALID_HANDLE;
    SIMGPU_TRY(check_unsafe_call());
    static_cast<void>(array->memory->context().device().synchronize());
    arrays().remove(handle);
    return CUDA_SUCCESS;
}

CUresult destroy_mipmapped(CUmipmappedArray handle) {
    std::shared_ptr<MipmappedArray> mipmapped;
    SIMGPU_TRY(find_mipmapped_array(handle, mipmapped));
    SIMGPU_TRY(check_unsafe_call());
    static_cast<void>(mipmapped->levels[0]->memory->context().device().synchronize());
    for (const auto& level : mipmapped->levels) arrays().remove(level.get());
    mipmapped_arrays().remove(handle);
    return CUDA_SUCCESS;
}

CUresult describe(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
    std::shared_ptr<Array> array;
    SIMGPU_TRY(find_array(handle, array));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = array->descriptor;
    return CUDA_SUCCESS;
}

CUresult get_level(CUarray* out, CUmipmappedArray handle, unsigned level) {
    std::shared_ptr<MipmappedArray> mipmapped;
    SIMGPU_TRY(find_mipmapped_array(handle, mipmapped));
    if (out == nullptr || level >= mipmapped->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *out = mipmapped->levels[level]->handle();
    return CUDA_SUCCESS;
}

/// Arrays whose memory is not the program's own have neither planes nor sparse memory.
CUresult of_plain_array(CUarray handle) {
    std::shared_ptr<Array> array;
    SIMGPU_TRY(find_array(handle, array));
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult of_plain_array(CUmipmappedArray handle) {
    std::shared_ptr<MipmappedArray> array;
    SIMGPU_TRY(find_mipmapped_array(handle, array));
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult HiddenMemory::create(Context& context, std::uint64_t bytes,
                              std::shared_ptr<HiddenMemory>& out) {
    auto va = machine().memory().allocate(context.gpu.ordinal, bytes);
    if (!va && va.error() == CUDA_ERROR_OUT_OF_MEMORY && make_room(context.gpu))
        va = machine().memory().allocate(context.gpu.ordinal, bytes);
    if (!va) return va.error();
    out.reset(new HiddenMemory(context, *va, bytes));
    return CUDA_SUCCESS;
}

HiddenMemory::~HiddenMemory() { static_cast<void>(machine().memory().free(va_)); }

std::uint64_t Array::element_bytes() const {
    return std::uint64_t{format_bytes(descriptor.Format)} * descriptor.NumChannels;
}

unsigned format_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return 4;
        default:
            return 0;
    }
}

CUresult find_array(CUarray handle, std::shared_ptr<Array>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = arrays().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult find_mipmapped_array(CUmipmappedArray handle, std::shared_ptr<MipmappedArray>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = mipmapped_arrays().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void release_arrays_of(Context& context) {
    arrays().remove_if([&](const Array& array) { return &array.memory->context() == &context; });
    mipmapped_arrays().remove_if([&](const MipmappedArray& array) {
        return &array.levels[0]->memory->context() == &context;
    });
}

}  // namespace simgpu::driver

SIMGPU_CALL(cuArrayCreate_v2, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR* given),
            { return driver::create_2d(out, given); })
SIMGPU_CALL(cuArray3DCreate_v2, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR* given),
            { return driver::create(out, given); })
SIMGPU_CALL(cuArrayDestroy, (CUarray array), { return driver::destroy(array); })
SIMGPU_CALL(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * out, CUarray array),
            { return driver::describe(out, array); })
SIMGPU_CALL(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR * out, CUarray array), {
    CUDA_ARRAY3D_DESCRIPTOR wide{};
    SIMGPU_TRY(driver::describe(&wide, array));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = {wide.Width, wide.Height, wide.Format, wide.NumChannels};
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuArrayGetPlane, (CUarray*, CUarray array, unsigned),
            { return driver::of_plain_array(array); })
SIMGPU_CALL(cuArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray array),
            { return driver::of_plain_array(array); })
SIMGPU_CALL(cuArrayGetMemoryRequirements,
            (CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray array, CUdevice),
            { return driver::of_plain_array(array); })
SIMGPU_CALL(cuMipmappedArrayCreate,
            (CUmipmappedArray * out, const CUDA_ARRAY3D_DESCRIPTOR* given, unsigned levels),
            { return driver::create_mipmapped(out, given, levels); })
SIMGPU_CALL(cuMipmappedArrayDestroy, (CUmipmappedArray array),
            { return driver::destroy_mipmapped(array); })
SIMGPU_CALL(cuMipmappedArrayGetLevel, (CUarray * out, CUmipmappedArray array, unsigned level),
            { return driver::get_level(out, array, level); })
SIMGPU_CALL(cuMipmappedArrayGetSparseProperties,
            (CUDA_ARRAY_SPARSE_PROPERTIES*, CUmipmappedArray array),
            { return driver::of_plain_array(array); })
SIMGPU_CALL(cuMipmappedArrayGetMemoryRequirements,
            (CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUmipmappedArray array, CUdevice),
            { return driver::of_plain_array(array); })
