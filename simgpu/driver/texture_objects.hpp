// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "simgpu/driver/context.hpp"
#include "simgpu/exec/texture.hpp"

namespace simgpu::driver {

/// What a CUtexObject stands for: as it was described, and as kernels use it. It keeps nothing
/// alive of what it was made of.
struct TextureObject {
    Context& context;
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC texture{};
    std::optional<CUDA_RESOURCE_VIEW_DESC> view;
    exec::Texture sampled;
};

/// What a CUsurfObject stands for.
struct SurfaceObject {
    Context& context;
    CUDA_RESOURCE_DESC resource{};
    exec::Surface bytes;
};

/// Live objects by number. A number is never given twice, so that a stale one is an error here,
/// where a device would read whatever came after. @thread any
template <typename T>
class NumberedObjects {
  public:
    using Table = std::unordered_map<std::uint64_t, std::shared_ptr<const T>>;

    std::uint64_t add(T object) {
        std::lock_guard lock(mutex_);
        table_.emplace(++last_, std::make_shared<const T>(std::move(object)));
        copy_.reset();
        return last_;
    }

    /// Null where there is no such object.
    std::shared_ptr<const T> find(std::uint64_t number) const {
        std::lock_guard lock(mutex_);
        const auto found = table_.find(number);
        return found != table_.end() ? found->second : nullptr;
    }

    bool remove(std::uint64_t number) {
        std::lock_guard lock(mutex_);
        copy_.reset();
        return table_.erase(number) != 0;
    }

    void remove_of(const Context& context) {
        std::lock_guard lock(mutex_);
        copy_.reset();
        std::erase_if(table_,
                      [&](const auto& entry) { return &entry.second->context == &context; });
    }

    /// All that live now. Made anew only after a change.
    std::shared_ptr<const Table> all() {
        std::lock_guard lock(mutex_);
        if (copy_ == nullptr) copy_ = std::make_shared<const Table>(table_);
        return copy_;
    }

  private:
    mutable std::mutex mutex_;
    Table table_;
    std::shared_ptr<const Table> copy_;
    std::uint64_t last_ = 0;
};

NumberedObjects<TextureObject>& texture_objects();
NumberedObjects<SurfaceObject>& surface_objects();

/// The objects of the moment when a kernel was launched: it may still use them when the program
/// has destroyed them meanwhile.
struct LaunchedObjects {
    std::shared_ptr<const NumberedObjects<TextureObject>::Table> textures;
    std::shared_ptr<const NumberedObjects<SurfaceObject>::Table> surfaces;

    static LaunchedObjects now() { return {texture_objects().all(), surface_objects().all()}; }
};

/// What a kernel of `context` finds: objects that live, else those of its launch.
class KernelTextures final : public exec::Textures {
  public:
    KernelTextures(const Context& context, const LaunchedObjects& launched)
        : context_(context), launched_(launched) {}

    const exec::Texture* texture(std::uint64_t handle) override;
    const exec::Surface* surface(std::uint64_t handle) override;

  private:
    const Context& context_;
    const LaunchedObjects& launched_;
    /// What was found so far.
    std::unordered_map<std::uint64_t, std::shared_ptr<const TextureObject>> textures_;
    std::unordered_map<std::uint64_t, std::shared_ptr<const SurfaceObject>> surfaces_;
};

}  // namespace simgpu::driver
