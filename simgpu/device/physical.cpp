// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/physical.hpp"

#include <algorithm>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simgpu/device/shared_usage.hpp"

namespace simgpu {

PhysicalStore::PhysicalStore(const MemoryConfig& config)
    : without_data_(config.without_data), shared_(config.shared), numbers_(config.numbers) {
    if (!without_data_) fd_ = memfd_create("simgpu", MFD_CLOEXEC);
    for (int i = 0; i < kMaxDevices; ++i) usage_[i].total = config.capacity_bytes[i];
}

PhysicalStore::~PhysicalStore() {
    if (fd_ >= 0) close(fd_);
}

std::shared_ptr<Physical> PhysicalStore::create(std::uint64_t bytes, Location location) {
    const bool on_device = location.kind == Location::Kind::Device;
    if (on_device && !take(location.id, bytes)) return nullptr;
    if (!without_data_ && ftruncate(fd_, static_cast<off_t>(next_offset_ + bytes)) != 0) {
        if (on_device) give_back(location.id, bytes);
        return nullptr;
    }
    auto physical = std::make_shared<Physical>();
    physical->id = next_id_++;
    physical->bytes = bytes;
    physical->offset = next_offset_;
    physical->location = location;
    physical->chunks.resize(bytes / kPageBytes);
    next_offset_ += bytes;
    if (!on_device) {
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
    if (physical->location.kind == Location::Kind::Device)
        give_back(physical->location.id, physical->bytes);
    handles_.erase(physical->id);
}

bool PhysicalStore::take(int device, std::uint64_t bytes) {
    auto& usage = usage_[device];
    if (bytes > usage.total - usage.used) return false;
    if (shared_ != nullptr && !shared_->take(numbers_[device], bytes, usage.total)) return false;
    usage.used += bytes;
    usage.peak = std::max(usage.peak, usage.used);
    return true;
}

void PhysicalStore::give_back(int device, std::uint64_t bytes) {
    if (shared_ != nullptr) shared_->give_back(numbers_[device], bytes);
    usage_[device].used -= bytes;
}

Memory::Usage PhysicalStore::usage(int device) const {
    Memory::Usage usage = usage_[device];
    if (shared_ != nullptr)
        usage.others = std::min(shared_->others(numbers_[device]), usage.total - usage.used);
    return usage;
}

std::shared_ptr<Physical> PhysicalStore::find(HandleId id) const {
    const auto it = handles_.find(id);
    return it == handles_.end() ? nullptr : it->second;
}

}  // namespace simgpu
