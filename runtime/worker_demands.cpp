// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What operations and allocations wait for: blocks, and memory.

#include <algorithm>

#include "runtime/worker.hpp"

namespace libswap {
namespace {

constexpr std::uint32_t kMaxFetchFailures = 8;

}  // namespace

void Worker::refuse(Demand& demand) {
    Block& block = parts_.blocks->block(demand.block);
    block.refused.store(true);
    note_progress();
}

void Worker::refuse_ticket(std::uint64_t ticket) noexcept {
    if (ticket > refused_ticket_.load(std::memory_order_relaxed))
        refused_ticket_.store(ticket, std::memory_order_release);
}

void Worker::refuse_memory() noexcept {
    for (const MemoryDemand& demand : memory_wanted_) refuse_ticket(demand.ticket);
    memory_wanted_.clear();
}

bool Worker::serve_demands() {
    bool changed = false;
    std::erase_if(demands_, [&](Demand& demand) {
        Block& block = parts_.blocks->block(demand.block);
        const ResidencyWord word = block.cell.load();
        if (block.id.load() != demand.id || word.state() == Residency::Free) return true;
        if (word.remapping() || word.state() == Residency::Coming ||
            word.state() == Residency::HandedOver)
            return false;
        if (word.state() == Residency::Resident || word.state() == Residency::Leaving) return true;
        if (block.wanted.load() == 0) return true;  // nobody waits any more
        if (host_.capturing()) {
            refuse(demand);
            return true;
        }
        // The plan brings it when there is room. Earlier it would take the place of what is needed
        // before it.
        if (planned_to_come(block) && room_will_come()) return false;
        switch (fetch(block, demand.serial)) {
            case SwapEngine::Start::Started:
                changed = true;
                return false;
            case SwapEngine::Start::NoDeviceMemory:
                needed_bytes_ += block.bytes();
                return false;
            case SwapEngine::Start::Failed:
                if (!swap_.gave_up() && ++demand.failures < kMaxFetchFailures) return false;
                refuse(demand);
                return true;
            default:
                return false;
        }
    });
    const bool all_patient = std::all_of(memory_wanted_.begin(), memory_wanted_.end(),
                                         [](const MemoryDemand& demand) { return demand.patient; });
    kept_bytes_ = 0;
    std::erase_if(memory_wanted_, [&](MemoryDemand& demand) {
        const bool was_served = demand.served;
        const bool over = serve_memory(demand, all_patient);
        changed |= over || demand.served != was_served;
        return over;
    });
    return changed;
}

/// True where it is refused. What lies ready is kept from planned fetches until it is taken.
bool Worker::serve_memory(MemoryDemand& demand, bool all_patient) {
    const ChunkRun& run = demand.run;
    demand.served = parts_.device_pool->free_count(run.size_class) >= run.count ||
                    parts_.device_pool->grow(run.size_class, run.count).has_value();
    if (demand.served) {
        kept_bytes_ += run.bytes();
        return false;
    }
    if (demand.patient && all_patient && !room_will_come() && !host_.reclaim_cached()) {
        refuse_ticket(demand.ticket);
        return true;
    }
    needed_bytes_ += run.bytes();
    return false;
}

/// By a plan all that an operation needs is there in time. So nothing else leaves for one that is
/// issued long before it can run, or the plan no longer holds: what is leaving, and the operations
/// under way, free memory by themselves.
bool Worker::room_will_come() {
    // Nothing may be asked of the streams then, and who waits for memory sees it and goes on.
    if (host_.capturing()) return true;
    return host_.follows_plan() && (swap_.jobs() != 0 || !host_.device_idle());
}

SwapEngine::Start Worker::fetch(Block& block, std::uint64_t after_serial) {
    auto way = SwapEngine::Way::Plain;
    if (host_.careful())
        way = SwapEngine::Way::Careful;
    else if (!host_.capturing() && parts_.gate->waiters.load() == 0 &&
             !parts_.blocks->buffer_of(block).in_parts.load())
        way = host_.explained_way(follows_plan());
    return swap_.fetch(block, way, after_serial);
}

}  // namespace libswap
