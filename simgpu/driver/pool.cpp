// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/pool.hpp"

#include <algorithm>
#include <iterator>

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/pools.hpp"

namespace simgpu::driver {

namespace {

constexpr std::uint64_t kAlignment = 512;

std::atomic<std::uint64_t> g_all_bytes{0};

}  // namespace

std::uint64_t Pool::all_bytes() { return g_all_bytes.load(std::memory_order_relaxed); }

Pool::Ranges::iterator Pool::find_free(std::uint64_t bytes, const StreamRef& stream,
                                       CUresult& status) {
    const std::uint64_t here = stream.stream->id();
    // The smallest that fits, of the best kind: 0 may be used at once, 1 after a wait in the
    // stream.
    Ranges::iterator best = ranges_.end();
    int best_kind = 2;
    for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
        Range& range = it->second;
        if (range.used || range.bytes < bytes) continue;
        if (range.passed != nullptr && opportunistic_ != 0 && range.passed->complete())
            range.passed = nullptr;
        const bool at_once = range.passed == nullptr || range.stream == here ||
                             (follow_events_ != 0 && stream.stream->follows(*range.passed));
        if (!at_once && internal_ == 0) continue;
        const int kind = at_once ? 0 : 1;
        const bool better =
            kind < best_kind || (kind == best_kind && range.bytes < best->second.bytes);
        if (!better) continue;
        best = it;
        best_kind = kind;
    }
    if (best != ranges_.end() && best_kind == 1) status = stream.stream->wait(*best->second.passed);
    return best;
}

CUresult Pool::add_block(std::uint64_t bytes) {
    if (max_bytes_ != 0 && reserved_ + bytes > max_bytes_) return CUDA_ERROR_OUT_OF_MEMORY;
    auto block = DeviceBlock::reserve(gpu_.ordinal, bytes);
    if (!block) return block.error();
    std::vector<AccessGrant> grants;
    for (const auto& [device, grant] : grants_) grants.push_back(grant);
    SIMGPU_TRY((*block)->fill(grants));
    reserved_ += (*block)->bytes();
    reserved_high_ = std::max(reserved_high_, reserved_);
    g_all_bytes += (*block)->bytes();
    ranges_[(*block)->va()] = {(*block)->bytes(), block->get(), false, 0, nullptr};
    blocks_.push_back(std::move(*block));
    return CUDA_SUCCESS;
}

CUresult Pool::grow(std::uint64_t bytes) {
    const std::uint64_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    return add_block(rounded);
}

void Pool::cut(Ranges::iterator range, std::uint64_t bytes) {
    Range rest = range->second;
    if (rest.bytes == bytes) return;
    rest.bytes -= bytes;
    range->second.bytes = bytes;
    ranges_[range->first + bytes] = std::move(rest);
}

CUresult Pool::allocate(CUdeviceptr* out, std::size_t bytes, const StreamRef& stream) {
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    for (int attempt = 0; attempt < 2; ++attempt) {
        {
            std::lock_guard lock(mutex_);
            CUresult status = CUDA_SUCCESS;
            auto range = find_free(rounded, stream, status);
            if (range == ranges_.end()) {
                status = grow(rounded);
                if (status == CUDA_SUCCESS) range = find_free(rounded, stream, status);
            }
            if (status == CUDA_SUCCESS) {
                cut(range, rounded);
                range->second.used = true;
                range->second.passed = nullptr;
                used_ += rounded;
                used_high_ = std::max(used_high_, used_);
                *out = range->first;
                allocations().add(
                    {*out, bytes, Allocation::Kind::Pool, stream.context, this, false, {}});
                return CUDA_SUCCESS;
            }
            if (status != CUDA_ERROR_OUT_OF_MEMORY) return status;
        }
        if (attempt == 0 && !make_room(gpu_)) break;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void Pool::put_back(std::uint64_t va, std::uint64_t stream, std::shared_ptr<simgpu::Event> passed) {
    std::lock_guard lock(mutex_);
    const auto range = ranges_.find(va);
    if (range == ranges_.end()) return;
    used_ -= range->second.bytes;
    range->second.used = false;
    range->second.stream = stream;
    range->second.passed = std::move(passed);
    join_neighbours();
}

CUresult Pool::free_async(CUdeviceptr va, const StreamRef& stream) {
    std::shared_ptr<simgpu::Event> passed =
        stream.context->device().create_event(CU_EVENT_DISABLE_TIMING);
    SIMGPU_TRY(stream.stream->record(*passed));
    if (!allocations().take(va)) return CUDA_ERROR_INVALID_VALUE;
    put_back(va, stream.stream->id(), std::move(passed));
    return CUDA_SUCCESS;
}

CUresult Pool::free_now(CUdeviceptr va) {
    if (!allocations().take(va)) return CUDA_ERROR_INVALID_VALUE;
    put_back(va, 0, nullptr);
    return CUDA_SUCCESS;
}

void Pool::settle(bool wait) {
    for (auto& [va, range] : ranges_) {
        if (range.passed == nullptr) continue;
        if (wait) static_cast<void>(range.passed->synchronize());
        if (range.passed->complete()) range.passed = nullptr;
    }
    join_neighbours();
}

void Pool::join_neighbours() {
    const auto alike = [](const Range& a, const Range& b) {
        if (a.used || b.used || a.block != b.block) return false;
        if (a.passed == nullptr && b.passed == nullptr) return true;
        return a.passed != nullptr && b.passed != nullptr && a.passed == b.passed;
    };
    for (auto it = ranges_.begin(); it != ranges_.end();) {
        const auto next = std::next(it);
        if (next == ranges_.end()) return;
        if (alike(it->second, next->second)) {
            it->second.bytes += next->second.bytes;
            ranges_.erase(next);
        } else {
            it = next;
        }
    }
}

bool Pool::drop_unused(std::uint64_t kept_bytes) {
    bool any = false;
    for (auto block = blocks_.begin(); block != blocks_.end() && reserved_ > kept_bytes;) {
        const auto range = ranges_.find((*block)->va());
        const bool whole = !range->second.used && range->second.passed == nullptr &&
                           range->second.bytes == (*block)->bytes();
        if (!whole) {
            ++block;
            continue;
        }
        reserved_ -= (*block)->bytes();
        g_all_bytes -= (*block)->bytes();
        ranges_.erase(range);
        block = blocks_.erase(block);
        any = true;
    }
    return any;
}

bool Pool::release(std::uint64_t kept_bytes, bool wait) {
    std::lock_guard lock(mutex_);
    settle(wait);
    return drop_unused(kept_bytes);
}

void Pool::release_above_threshold() {
    std::lock_guard lock(mutex_);
    const std::uint64_t kept_bytes = abandoned_ ? 0 : threshold_;
    if (reserved_ <= kept_bytes) return;
    settle(false);
    drop_unused(kept_bytes);
}

CUresult Pool::set_access(const CUmemAccessDesc* descriptions, std::size_t count) {
    std::vector<AccessGrant> grants;
    for (std::size_t i = 0; i < count; ++i) {
        const CUmemAccessDesc& given = descriptions[i];
        const bool known = given.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                           given.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                           given.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (!known || given.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (gpu_at(given.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        const bool own = given.location.id == gpu_.ordinal;
        // The owner's access cannot be taken away.
        if (own && given.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
        if (own) continue;
        grants.push_back({{Location::Kind::Device, given.location.id},
                          given.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                          given.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
    std::lock_guard lock(mutex_);
    for (const AccessGrant& grant : grants) grants_[grant.location.id] = grant;
    if (grants.empty()) return CUDA_SUCCESS;
    for (const auto& block : blocks_) SIMGPU_TRY(block->grant(grants));
    return CUDA_SUCCESS;
}

CUresult Pool::get_access(const CUmemLocation& location, CUmemAccess_flags& out) {
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (gpu_at(location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock(mutex_);
    const auto grant = grants_.find(location.id);
    if (location.id == gpu_.ordinal) {
        out = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    } else if (grant == grants_.end() || !grant->second.readable) {
        out = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    } else {
        out = grant->second.writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                     : CU_MEM_ACCESS_FLAGS_PROT_READ;
    }
    return CUDA_SUCCESS;
}

CUresult Pool::get(CUmemPool_attribute attribute, void* value) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(mutex_);
    auto* number = static_cast<int*>(value);
    auto* bytes = static_cast<cuuint64_t*>(value);
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
            *number = follow_events_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
            *number = opportunistic_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            *number = internal_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            *bytes = threshold_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
            *bytes = reserved_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            *bytes = reserved_high_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            *bytes = used_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            *bytes = used_high_;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult Pool::set(CUmemPool_attribute attribute, const void* value) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(mutex_);
    const auto* number = static_cast<const int*>(value);
    const auto* bytes = static_cast<const cuuint64_t*>(value);
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
            follow_events_ = *number;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
            opportunistic_ = *number;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            internal_ = *number;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            threshold_ = *bytes;
            return CUDA_SUCCESS;
        // High marks may only be set back.
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            if (*bytes != 0) return CUDA_ERROR_INVALID_VALUE;
            reserved_high_ = reserved_;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            if (*bytes != 0) return CUDA_ERROR_INVALID_VALUE;
            used_high_ = used_;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace simgpu::driver
