// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/tensor_maps.hpp"

#include <cstring>
#include <mutex>

namespace libswap {

bool TensorMaps::built(const void* descriptor, std::uint64_t address) {
    Words words;
    std::memcpy(words.data(), descriptor, kBytes);
    std::unique_lock lock(mutex_);
    if (maps_.size() >= kMost && maps_.find(words) == maps_.end()) return false;
    maps_[words] = address;
    count_.store(maps_.size(), std::memory_order_relaxed);
    return true;
}

std::uint64_t TensorMaps::find(const void* bytes) const {
    Words words;
    std::memcpy(words.data(), bytes, kBytes);
    std::shared_lock lock(mutex_);
    const auto found = maps_.find(words);
    return found == maps_.end() ? 0 : found->second;
}

}  // namespace libswap
