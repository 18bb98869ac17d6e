// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace simgpu::driver {

/// The live objects behind one kind of handle. A handle is its object's address and is never
/// followed before it was found here, so a stale or made-up one is an error code and not a crash.
/// @thread any
template <typename T>
class HandleTable {
  public:
    void add(std::shared_ptr<T> object) {
        std::unique_lock lock(mutex_);
        const void* key = object.get();
        objects_[key] = std::move(object);
    }

    /// Null where `handle` is not a live object's.
    std::shared_ptr<T> find(const void* handle) const {
        std::shared_lock lock(mutex_);
        auto it = objects_.find(handle);
        return it == objects_.end() ? nullptr : it->second;
    }

    /// Forgets the object; null where there was none.
    std::shared_ptr<T> remove(const void* handle) {
        std::unique_lock lock(mutex_);
        auto it = objects_.find(handle);
        if (it == objects_.end()) return nullptr;
        std::shared_ptr<T> object = std::move(it->second);
        objects_.erase(it);
        return object;
    }

    std::vector<std::shared_ptr<T>> all() const {
        std::shared_lock lock(mutex_);
        std::vector<std::shared_ptr<T>> found;
        found.reserve(objects_.size());
        for (const auto& [key, object] : objects_) found.push_back(object);
        return found;
    }

    /// Forgets all objects for which `matches(object)` holds, and returns them.
    template <typename Predicate>
    std::vector<std::shared_ptr<T>> remove_if(Predicate&& matches) {
        std::unique_lock lock(mutex_);
        std::vector<std::shared_ptr<T>> removed;
        for (auto it = objects_.begin(); it != objects_.end();) {
            if (matches(*it->second)) {
                removed.push_back(std::move(it->second));
                it = objects_.erase(it);
            } else {
                ++it;
            }
        }
        return removed;
    }

  private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

}  // namespace simgpu::driver
