// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Texture and surface objects: made, asked and destroyed.

#include "simgpu/driver/textures.hpp"

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/texture_descriptors.hpp"
#include "simgpu/driver/texture_objects.hpp"

namespace simgpu::driver {

namespace {

CUresult create(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || resource == nullptr || texture == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    TextureObject object{*context, *resource, *texture, {}, {}};
    SIMGPU_TRY(describe_texture(*resource, *texture, view, object.sampled));
    if (view != nullptr) object.view = *view;
    *out = texture_objects().add(std::move(object));
    return CUDA_SUCCESS;
}

CUresult create(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SurfaceObject object{*context, *resource, {}};
    SIMGPU_TRY(describe_surface(*resource, object.bytes));
    *out = surface_objects().add(std::move(object));
    return CUDA_SUCCESS;
}

template <typename T>
CUresult find(const NumberedObjects<T>& objects, std::uint64_t handle,
              std::shared_ptr<const T>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = objects.find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <typename T>
CUresult destroy(NumberedObjects<T>& objects, std::uint64_t handle) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return objects.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

void release_textures_of(Context& context) {
    texture_objects().remove_of(context);
    surface_objects().remove_of(context);
}

}  // namespace simgpu::driver

SIMGPU_CALL(cuTexObjectCreate,
            (CUtexObject * out, const CUDA_RESOURCE_DESC* resource,
             const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view),
            { return driver::create(out, resource, texture, view); })
SIMGPU_CALL(cuTexObjectDestroy, (CUtexObject handle),
            { return driver::destroy(driver::texture_objects(), handle); })
SIMGPU_CALL(cuTexObjectGetResourceDesc, (CUDA_RESOURCE_DESC * out, CUtexObject handle), {
    std::shared_ptr<const driver::TextureObject> object;
    SIMGPU_TRY(driver::find(driver::texture_objects(), handle, object));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = object->resource;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuTexObjectGetTextureDesc, (CUDA_TEXTURE_DESC * out, CUtexObject handle), {
    std::shared_ptr<const driver::TextureObject> object;
    SIMGPU_TRY(driver::find(driver::texture_objects(), handle, object));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = object->texture;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuTexObjectGetResourceViewDesc, (CUDA_RESOURCE_VIEW_DESC * out, CUtexObject handle), {
    std::shared_ptr<const driver::TextureObject> object;
    SIMGPU_TRY(driver::find(driver::texture_objects(), handle, object));
    if (out == nullptr || !object->view) return CUDA_ERROR_INVALID_VALUE;
    *out = *object->view;
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuSurfObjectCreate, (CUsurfObject * out, const CUDA_RESOURCE_DESC* resource),
            { return driver::create(out, resource); })
SIMGPU_CALL(cuSurfObjectDestroy, (CUsurfObject handle),
            { return driver::destroy(driver::surface_objects(), handle); })
SIMGPU_CALL(cuSurfObjectGetResourceDesc, (CUDA_RESOURCE_DESC * out, CUsurfObject handle), {
    std::shared_ptr<const driver::SurfaceObject> object;
    SIMGPU_TRY(driver::find(driver::surface_objects(), handle, object));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = object->resource;
    return CUDA_SUCCESS;
})
