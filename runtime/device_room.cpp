// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory of the device that is not ours: what the program has from the driver itself, and what the
// driver takes (modules, stacks of kernels, printf buffers). Both leave less for buffers.

#include <algorithm>

#include "runtime/capture_scope.hpp"
#include "runtime/clock.hpp"
#include "runtime/device.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kRoomWaitNs = 2'000'000'000;
constexpr std::uint64_t kLookAtRoomEveryNs = 100'000'000;

}  // namespace

void Device::update_limit() noexcept {
    const std::uint64_t fixed = counters_.external_bytes.load() + counters_.driver_bytes.load();
    const std::uint64_t budget = budget_bytes_ + exceeded_bytes_.load();
    std::uint64_t left = budget > fixed ? budget - fixed : 0;
    // The driver moves managed memory to the host where there is too much of it: it takes half of
    // what is there at most.
    left -= std::min(counters_.managed_bytes.load(), left / 2);
    device_pool_.set_limit(left);
}

// Where no host memory can be mapped, all of an operation must be on the device at once, and small
// buffers never leave it. Better more than the budget than an error that the program would not have
// seen without us.
bool Device::exceed_budget(const Operation& op) noexcept {
    std::uint64_t missing = 0;
    for (const BlockIndex index : op.blocks) {
        const Block& block = blocks_.block(index);
        if (block.cell.load().state() == Residency::Host) missing += block.bytes();
    }
    return missing != 0 && exceed_budget(missing, "an operation needs more at once");
}

bool Device::exceed_budget(std::uint64_t bytes, const char* why) noexcept {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (driver_.cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS || free_bytes < bytes)
        return false;
    // Of a budget that holds no chunk it was said that it leaves nothing.
    if (exceeded_bytes_.fetch_add(bytes) == 0 && budget_bytes_ >= kChunkBytes[0])
        LIBSWAP_LOG(Warning, "{} than the budget of {} MiB leaves: device memory beyond it is used",
                    why, budget_bytes_ >> 20);
    update_limit();
    return true;
}

// The budget was right when the process began. Once the driver refuses memory within it, others
// have taken some, and plans go by what there is, until all of the budget can be had again.
void Device::look_at_room() noexcept {
    const std::uint64_t before = reachable_bytes_.load();
    if (!device_pool_.refused() && before == UINT64_MAX) return;
    const std::uint64_t now = now_ns();
    if (now - looked_at_room_ns_ < kLookAtRoomEveryNs) return;
    looked_at_room_ns_ = now;
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (driver_.cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) return;
    const std::uint64_t limit = device_pool_.limit_bytes();
    const std::uint64_t reachable = device_pool_.existing_bytes() + free_bytes;
    reachable_bytes_.store(reachable < limit ? reachable : UINT64_MAX);
    if (reachable < limit && !said_room_) {
        said_room_ = true;
        LIBSWAP_LOG(Warning,
                    "device {} has {} MiB for this process, the rest of its budget of {} MiB is "
                    "taken by others: going on with less",
                    ordinal_, reachable >> 20, budget_bytes_ >> 20);
    }
}

std::uint64_t Device::taken_bytes() noexcept {
    return counters_.span_bytes.load() + slabs_.mapped_bytes() + counters_.external_bytes.load() +
           counters_.managed_bytes.load();
}

void Device::external_allocated(std::uint64_t bytes, MemoryPlace place) noexcept {
    Counters::add(
        place == MemoryPlace::Managed ? counters_.managed_bytes : counters_.external_bytes, bytes);
    Counters::add(counters_.asked_bytes, bytes);
    Counters::raise(counters_.peak_asked_bytes, counters_.asked_bytes.load());
    update_limit();
    // Only what lies ready: what is in use leaves when somebody needs the memory.
    if (!capturing()) device_pool_.trim(device_pool_.limit_bytes());
}

void Device::external_freed(std::uint64_t bytes, MemoryPlace place) noexcept {
    Counters::subtract(
        place == MemoryPlace::Managed ? counters_.managed_bytes : counters_.external_bytes, bytes);
    Counters::subtract(counters_.asked_bytes, bytes);
    update_limit();
}

bool Device::give_room(std::uint64_t bytes) {
    if (capturing() || !worker_->running() || worker_->lost()) return false;
    const std::uint64_t before = device_pool_.existing_bytes();
    const std::uint64_t goal = before > bytes ? before - bytes : 0;
    device_pool_.set_limit(goal);
    const std::uint64_t deadline = now_ns() + kRoomWaitNs;
    const std::uint64_t ticket = worker_->new_ticket();
    while (device_pool_.trim(goal), device_pool_.existing_bytes() > goal) {
        if (reclaim_cached()) continue;
        if (worker_->lost() || worker_->gave_up() || worker_->refused_memory(ticket) ||
            now_ns() > deadline)
            break;
        const std::uint32_t seen = worker_->progress();
        const std::uint64_t missing =
            std::min(device_pool_.existing_bytes() - goal, largest_block_.bytes());
        worker_->want_memory(ticket, 0, static_cast<std::uint32_t>(missing / kChunkBytes[0]));
        worker_->wait_progress(seen, 10'000);
    }
    worker_->end_want(ticket);
    if (device_pool_.existing_bytes() < before) return true;
    update_limit();
    return false;
}

void Device::add_peer(int peer) {
    if (!remapper_.add_peer(peer)) return;
    const CaptureScope relaxed(driver_, capturing());
    // What is mapped from here on is mapped for the peer too. A pin keeps a block's mapping as it
    // is, wherever it lies.
    for (BlockIndex i = 0; i < blocks_.end(); ++i) {
        Block& block = blocks_.block(i);
        PinResult pinned = PinResult::Busy;
        while ((pinned = block.cell.pin(true)) == PinResult::Busy && !worker_->lost()) {
            const std::uint32_t seen = worker_->progress();
            worker_->wait_progress(seen, 1000);
        }
        if (pinned == PinResult::Gone || pinned == PinResult::Busy) continue;
        (void)remapper_.grant(block.base, block.bytes());
        block.cell.unpin();
    }
    slabs_.for_each_page([&](std::uint64_t base) { (void)remapper_.grant(base, kPageBytes); });
}

/// Of memory that was free while peers came.
void Device::grant_peers(Buffer& buffer) {
    buffer.peers = remapper_.peers();
    for (std::uint32_t i = 0; i < buffer.count; ++i) {
        const Block& block = blocks_.block(buffer.first + i);
        (void)remapper_.grant(block.base, block.bytes());
    }
}

void Device::look_at_graph_memory() noexcept {
    cuuint64_t now = 0;
    if (!driver_.cuDeviceGetGraphMemAttribute ||
        driver_.cuDeviceGetGraphMemAttribute(ordinal_, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                             &now) != CUDA_SUCCESS)
        return;
    const std::uint64_t before = graph_memory_.exchange(now);
    if (now > before) external_allocated(now - before, MemoryPlace::Device);
    if (now < before) external_freed(before - now, MemoryPlace::Device);
}

void Device::keep_room(std::uint64_t driver_bytes) noexcept {
    Counters::add(counters_.driver_bytes, driver_bytes);
    update_limit();
}

}  // namespace libswap
