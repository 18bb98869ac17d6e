// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/physical.hpp"

#include <algorithm>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simgpu {

PhysicalStore::PhysicalStore(const MemoryConfig& config) : without_data_(config.without_data) {
    if (!without_data_) fd_ = memfd_create("simgpu", MFD_CLOEXEC);
    for (int i = 0; i < kMaxDevices; ++i) usage_[i].total = config.capacity_bytes[i];
}

PhysicalStore::~PhysicalStore() {
    if (fd_ >= 0) close(fd_);
}

std::shared_ptr<Physical> PhysicalStore::create(std::uint64_t bytes, Location location) {
    if (location.kind == Location::Kind::Device) {
        auto& usage = usage_[location.id];
        if (bytes > usage.total - usage.used) return nullptr;
    }
    if (!without_data_ && ftruncate(fd_, static_cast<off_t>(next_offset_ + bytes)) != 0)
        return nullptr;
    auto physical = std::make_shared<Physical>();
    physical->id = next_id_++;
    physical->bytes = bytes;
    physical->offset = next_offset_;
    physical->location = location;
    physical->chunks.resize(bytes / kPageBytes);
    next_offset_ += bytes;
    if (location.kind == Location::Kind::Device) {
        auto& usage = usage_[location.id];
        usage.used += bytes;
        usage.peak = std::max(usage.peak, usage.used);
    } else {
        // Host memory starts as zeros, as pages from the kernel do.
        for (auto& chunk : physical->chunks) chunk.filled = true;
    }
    handles_.emplace(physical->id, physical);
    return physical;
}

void PhysicalStore::drop_if_unused(const std::shared_ptr<Physical>& physical) {
    if (physical->references != 0 || physical->mappings != 0) return;
    if (!without_data_) {
        fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(physical->offset), static_cast<off_t>(physical->bytes));
    }
    if (physical->location.kind == Location::Kind::Device) {
        usage_[physical->location.id].used -= physical->bytes;
    }
    handles_.erase(physical->id);
}

std::shared_ptr<Physical> PhysicalStore::find(HandleId id) const {
    const auto it = handles_.find(id);
    return it == handles_.end() ? nullptr : it->second;
}

}  // namespace simgpu
