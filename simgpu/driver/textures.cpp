// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Texture and surface objects: made, asked and destroyed. Kernels that read through them say at
// launch that they cannot run here.

#include "simgpu/driver/textures.hpp"

#include <optional>

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/arrays.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/handle_table.hpp"

namespace simgpu::driver {

namespace {

struct TextureObject {
    Context& context;
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC texture{};
    std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

struct SurfaceObject {
    Context& context;
    CUDA_RESOURCE_DESC resource{};
};

HandleTable<TextureObject>& texture_objects() {
    static auto* table =
        new HandleTable<TextureObject>;  // leaked: calls may come after static destructors
    return *table;
}

HandleTable<SurfaceObject>& surface_objects() {
    static auto* table = new HandleTable<SurfaceObject>;  // leaked likewise
    return *table;
}

constexpr std::uint64_t kTextureAlignment = 512, kPitchAlignment = 32;
constexpr std::size_t kMaxLinearTexels = std::size_t{1} << 28;

bool on_device(CUdeviceptr va) {
    const PointerKind kind = machine().memory().find(va).kind;
    return kind != PointerKind::None && kind != PointerKind::Reserved;
}

CUresult check_texels(CUdeviceptr va, CUarray_format format, unsigned channels) {
    const bool channels_ok = channels == 1 || channels == 2 || channels == 4;
    const bool valid = va != 0 && va % kTextureAlignment == 0 && format_bytes(format) != 0 &&
                       channels_ok && on_device(va);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_linear(const CUDA_RESOURCE_DESC& given) {
    const auto& linear = given.res.linear;
    SIMGPU_TRY(check_texels(linear.devPtr, linear.format, linear.numChannels));
    const std::size_t texel = std::size_t{format_bytes(linear.format)} * linear.numChannels;
    const bool fits = linear.sizeInBytes != 0 && linear.sizeInBytes / texel <= kMaxLinearTexels;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_pitched(const CUDA_RESOURCE_DESC& given) {
    const auto& pitched = given.res.pitch2D;
    SIMGPU_TRY(check_texels(pitched.devPtr, pitched.format, pitched.numChannels));
    const std::size_t texel = std::size_t{format_bytes(pitched.format)} * pitched.numChannels;
    const bool fits = pitched.width != 0 && pitched.height != 0 &&
                      pitched.pitchInBytes >= pitched.width * texel &&
                      pitched.pitchInBytes % kPitchAlignment == 0;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_resource(const CUDA_RESOURCE_DESC& given) {
    std::shared_ptr<Array> array;
    std::shared_ptr<MipmappedArray> mipmapped;
    if (given.flags != 0) return CUDA_ERROR_INVALID_VALUE;
    switch (given.resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            return find_array(given.res.array.hArray, array);
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            return find_mipmapped_array(given.res.mipmap.hMipmappedArray, mipmapped);
        case CU_RESOURCE_TYPE_LINEAR:
            return check_linear(given);
        case CU_RESOURCE_TYPE_PITCH2D:
            return check_pitched(given);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

bool valid(const CUDA_TEXTURE_DESC& given) {
    for (CUaddress_mode mode : given.addressMode) {
        if (mode < CU_TR_ADDRESS_MODE_WRAP || mode > CU_TR_ADDRESS_MODE_BORDER) return false;
    }
    return given.filterMode == CU_TR_FILTER_MODE_POINT ||
           given.filterMode == CU_TR_FILTER_MODE_LINEAR;
}

CUresult create(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || resource == nullptr || texture == nullptr || !valid(*texture))
        return CUDA_ERROR_INVALID_VALUE;
    const bool arrays = resource->resType == CU_RESOURCE_TYPE_ARRAY ||
                        resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (view != nullptr && !arrays) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check_resource(*resource));
    auto object = std::make_shared<TextureObject>(TextureObject{*context, *resource, *texture, {}});
    if (view != nullptr) object->view = *view;
    *out = reinterpret_cast<CUtexObject>(object.get());
    texture_objects().add(std::move(object));
    return CUDA_SUCCESS;
}

CUresult create(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
    Context* context = nullptr;
    std::shared_ptr<Array> array;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY ||
        resource->flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SIMGPU_TRY(find_array(resource->res.array.hArray, array));
    if ((array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
    auto object = std::make_shared<SurfaceObject>(SurfaceObject{*context, *resource});
    *out = reinterpret_cast<CUsurfObject>(object.get());
    surface_objects().add(std::move(object));
    return CUDA_SUCCESS;
}

CUresult find(CUtexObject handle, std::shared_ptr<TextureObject>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = texture_objects().find(reinterpret_cast<const void*>(handle));
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

void release_textures_of(Context& context) {
    texture_objects().remove_if(
        [&](const TextureObject& object) { return &object.context == &context; });
    surface_objects().remove_if(
        [&](const SurfaceObject& object) { return &object.context == &context; });
}

}  // namespace simgpu::driver

SIMGPU_CALL(cuTexObjectCreate,
            (CUtexObject * out, const CUDA_RESOURCE_DESC* resource,
             const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view),
            { return driver::create(out, resource, texture, view); })
SIMGPU_CALL(cuTexObjectDestroy, (CUtexObject handle), {
    std::shared_ptr<driver::TextureObject> object;
    SIMGPU_TRY(driver::find(handle, object));
    driver::texture_objects().remove(object.get());
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuTexObjectGetResourceDesc, (CUDA_RESOURCE_DESC * out, CUtexObject handle), {
    std::shared_ptr<driver::TextureObject> object;
    SIMGPU_TRY(driver::find(handle, object));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = object->resource;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuTexObjectGetTextureDesc, (CUDA_TEXTURE_DESC * out, CUtexObject handle), {
    std::shared_ptr<driver::TextureObject> object;
    SIMGPU_TRY(driver::find(handle, object));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = object->texture;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuTexObjectGetResourceViewDesc, (CUDA_RESOURCE_VIEW_DESC * out, CUtexObject handle), {
    std::shared_ptr<driver::TextureObject> object;
    SIMGPU_TRY(driver::find(handle, object));
    if (out == nullptr || !object->view) return CUDA_ERROR_INVALID_VALUE;
    *out = *object->view;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuSurfObjectCreate, (CUsurfObject * out, const CUDA_RESOURCE_DESC* resource),
            { return driver::create(out, resource); })
SIMGPU_CALL(cuSurfObjectDestroy, (CUsurfObject handle), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    const auto gone = driver::surface_objects().remove(reinterpret_cast<const void*>(handle));
    return gone != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
})
SIMGPU_CALL(cuSurfObjectGetResourceDesc, (CUDA_RESOURCE_DESC * out, CUsurfObject handle), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    const auto object = driver::surface_objects().find(reinterpret_cast<const void*>(handle));
    if (object == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = object->resource;
    return CUDA_SUCCESS;
})
