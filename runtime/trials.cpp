// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/trials.hpp"

#include <algorithm>

namespace libswap {

Trials::Trials(const Driver& driver, StreamTable& streams, BlockTable& blocks,
               const AddressSpace& space) noexcept
    : streams_(streams), blocks_(blocks), space_(space), digester_(driver) {}

Belief Trials::look(std::uint64_t kind) const noexcept {
    kind &= ~kBeliefMask;
    for (std::size_t i = 0; i < kProbes; ++i) {
        const std::uint64_t entry =
            table_[((kind >> 8) + i) % table_.size()].load(std::memory_order_acquire);
        if (entry == 0) return Belief::Unknown;
        if ((entry & ~kBeliefMask) == kind) return static_cast<Belief>(entry & kBeliefMask);
    }
    return Belief::Unknown;
}

void Trials::believe(std::uint64_t kind, Belief belief) noexcept {
    kind &= ~kBeliefMask;
    std::atomic<std::uint64_t>* place = &table_[(kind >> 8) % table_.size()];
    for (std::size_t i = 0; i < kProbes; ++i) {
        auto& entry = table_[((kind >> 8) + i) % table_.size()];
        const std::uint64_t old = entry.load(std::memory_order_relaxed);
        if (old != 0 && (old & ~kBeliefMask) != kind) continue;
        place = &entry;
        break;
    }
    // Where all places are taken, another kind is forgotten, and tried again.
    place->store(kind | static_cast<std::uint64_t>(belief), std::memory_order_release);
}

std::uint32_t Trials::begin(std::uint64_t kind, bool decides, FunctionInfo* function,
                            std::span<const Watch> watches, CUstream stream) noexcept {
    (void)settle();
    std::lock_guard lock(mutex_);
    if (failures_ >= kMaxFailures || watches.size() > kMaxWatches) return kNoTicket;
    Trial* free = nullptr;
    for (Trial& trial : trials_) {
        if (trial.state == Trial::State::Free)
            free = &trial;
        else if (trial.kind == kind)
            return kNoTicket;  // its verdict is on its way
    }
    if (!free) return kNoTicket;
    if (!started_) {
        if (!digester_.start()) {
            failures_ = kMaxFailures;
            return kNoTicket;
        }
        started_ = true;
    }
    Trial& trial = *free;
    trial.kind = kind;
    trial.decides = decides;
    trial.function = function;
    trial.count = watches.size();
    trial.use = {};
    std::copy(watches.begin(), watches.end(), trial.watches.begin());
    trial.slots.fill(Digester::kNoSlot);
    trial.state = Trial::State::Begun;
    trial.good = submit(trial, 0, stream);
    open_.fetch_add(1, std::memory_order_relaxed);
    return static_cast<std::uint32_t>(free - trials_.data());
}

bool Trials::submit(Trial& trial, std::size_t first_slot, CUstream stream) noexcept {
    const std::uint64_t low = space_.low();
    for (std::size_t i = 0; i < trial.count; ++i) {
        const Watch& watch = trial.watches[i];
        const Block& block = blocks_.block(watch.block);
        const Chunk* chunk =
            block.has_device() ? block.device[watch.chunk] : block.host[watch.chunk];
        std::uint32_t& slot = trial.slots[first_slot + i];
        slot = digester_.take_slot();
        if (slot == Digester::kNoSlot) return false;
        if (digester_.add(slot, chunk->alias, kChunkBytes[chunk->size_class], 0, low,
                          space_.high() - low, true, stream))
            continue;
        ++failures_;
        return false;
    }
    return true;
}

void Trials::end(std::uint32_t ticket, CUstream stream, bool launched) noexcept {
    std::lock_guard lock(mutex_);
    Trial& trial = trials_[ticket];
    trial.good = trial.good && launched && submit(trial, kMaxWatches, stream);
    trial.state = Trial::State::Ended;
}

void Trials::note_place(std::uint32_t ticket, Use use) noexcept {
    std::lock_guard lock(mutex_);
    trials_[ticket].use = use;
    trials_[ticket].state = Trial::State::Placed;
}

bool Trials::ready(Trial& trial) noexcept {
    if (trial.state != Trial::State::Placed) return false;
    return !trial.use || streams_.is_complete(trial.use);
}

void Trials::judge(Trial& trial) noexcept {
    if (!trial.good || !trial.use) return;
    Belief belief = Belief::Confirmed;
    for (std::size_t i = 0; i < trial.count; ++i) {
        const Digest before = digester_.result(trial.slots[i]);
        const Digest behind = digester_.result(trial.slots[kMaxWatches + i]);
        if (!before.known() || !behind.known()) return;
        const bool same = before == behind;
        if (trial.watches[i].word != Watch::kBeyond) {
            trial.function->note_operand(trial.watches[i].word, !same);
        } else if (!same) {
            belief = Belief::Refuted;
            blocks_.buffer_of(blocks_.block(trial.watches[i].block)).shifts.store(true);
        }
    }
    if (trial.decides) believe(trial.kind, belief);
}

void Trials::release(Trial& trial) noexcept {
    for (std::uint32_t slot : trial.slots) digester_.give_slot(slot);
    trial.state = Trial::State::Free;
    open_.fetch_sub(1, std::memory_order_relaxed);
}

bool Trials::settle() noexcept {
    if (open_.load(std::memory_order_relaxed) == 0) return false;
    std::lock_guard lock(mutex_);
    for (Trial& trial : trials_) {
        if (!ready(trial)) continue;
        judge(trial);
        release(trial);
    }
    return open_.load(std::memory_order_relaxed) != 0;
}

void Trials::stop(bool context_gone) noexcept {
    std::lock_guard lock(mutex_);
    for (Trial& trial : trials_)
        if (trial.state != Trial::State::Free) release(trial);
    if (started_) digester_.stop(context_gone);
    started_ = false;
}

}  // namespace libswap
