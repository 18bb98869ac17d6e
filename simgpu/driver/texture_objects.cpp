// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/texture_objects.hpp"

namespace simgpu::driver {

namespace {

/// Null if there is none, or none of this context. What is found is kept in `found`.
template <typename T>
const T* find(const NumberedObjects<T>& live, const typename NumberedObjects<T>::Table* launched,
              std::uint64_t number, const Context& context,
              typename NumberedObjects<T>::Table& found) {
    const auto known = found.find(number);
    if (known != found.end()) return known->second.get();
    std::shared_ptr<const T> object = live.find(number);
    if (object == nullptr && launched != nullptr) {
        const auto then = launched->find(number);
        if (then != launched->end()) object = then->second;
    }
    if (object == nullptr || &object->context != &context) return nullptr;
    return found.emplace(number, std::move(object)).first->second.get();
}

}  // namespace

NumberedObjects<TextureObject>& texture_objects() {
    static auto* table = new NumberedObjects<TextureObject>;  // leaked: see HandleTable's users
    return *table;
}

NumberedObjects<SurfaceObject>& surface_objects() {
    static auto* table = new NumberedObjects<SurfaceObject>;  // leaked likewise
    return *table;
}

const exec::Texture* KernelTextures::texture(std::uint64_t handle) {
    const TextureObject* object =
        find(texture_objects(), launched_.textures.get(), handle, context_, textures_);
    return object != nullptr ? &object->sampled : nullptr;
}

const exec::Surface* KernelTextures::surface(std::uint64_t handle) {
    const SurfaceObject* object =
        find(surface_objects(), launched_.surfaces.get(), handle, context_, surfaces_);
    return object != nullptr ? &object->bytes : nullptr;
}

}  // namespace simgpu::driver
