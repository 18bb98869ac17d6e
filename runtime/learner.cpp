// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/learner.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/sized_signature.hpp"

namespace libswap {

namespace {

constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15ULL;  // odd: powers never become 0
constexpr std::uint64_t kCreditPerOp = 8;
/// Fewer operations that repeat are no iteration yet: a layer may be a dozen launches of one
/// kernel.
constexpr std::uint64_t kLeastStretch = 64;
/// Of a stretch that repeats, as an iteration.
constexpr std::uint64_t kMostMultiple = 128;

std::uint64_t scramble(std::uint64_t v) {
    v ^= v >> 33;
    v *= 0xff51afd7ed558ccdULL;
    v ^= v >> 33;
    v *= 0xc4ceb9fe1a85ec53ULL;
    return v ^ (v >> 33);
}

std::uint64_t power(std::uint64_t exponent) {
    std::uint64_t result = 1;
    for (std::uint64_t base = kBase; exponent > 0; exponent >>= 1, base *= base) {
        if (exponent & 1) result *= base;
    }
    return result;
}

std::size_t table_slot(std::uint64_t hash, std::size_t table_size) {
    return scramble(hash) & (table_size - 1);
}

}  // namespace

Learner::Learner(const LearnerLimits& limits) : limits_(limits) {
    // Two periods for a snapshot, and what is being issued meanwhile.
    const std::size_t ops = std::bit_ceil(2 * limits_.max_period + limits_.max_period / 2);
    ring_.resize(ops);
    ring_mask_ = ops - 1;
    const std::size_t operands = std::bit_ceil(limits_.max_operands);
    operands_.resize(operands);
    operand_mask_ = operands - 1;
    const std::size_t frees = ops;
    frees_.resize(frees);
    frees_mask_ = frees - 1;
    freed_.reserve(frees);
    for (std::size_t o = 0; o < kOrders.size(); ++o) {
        contexts_[o].resize(ops);
        places_[o].resize(std::bit_ceil(2 * limits_.max_period));
        order_powers_[o] = power(kOrders[o]);
    }
    loops_.resize(limits_.max_loops);
    for (Loop& loop : loops_) loop.signatures.reserve(limits_.max_period);
}

Step Learner::observe(std::uint64_t signature, std::span<const cost::TracedOperand> operands) {
    Step step;
    step.serial = next_;
    const bool on_loop = follow_loop(signature, step);
    const bool expected = match_ > 0 && at(cursor_).signature == signature;
    remember(signature, operands);
    credit_ = std::min<std::uint64_t>(credit_ + kCreditPerOp, 4 * limits_.max_period);
    if (expected) {
        follow_cursor();
    } else {
        find_cursor();
    }
    index_contexts();
    if (on_loop && step.phase == 0) look_for_cycle(step);
    if (!on_loop) resume_loop(step);
    lock_loop(step);
    off_loop_ = current_ == kNoLoop ? off_loop_ + 1 : 0;
    return step;
}

void Learner::remember(std::uint64_t signature, std::span<const cost::TracedOperand> operands) {
    Remembered& op = at(next_);
    const std::uint64_t before = next_ == 0 ? 0 : at(next_ - 1).prefix_hash;
    op.signature = signature;
    op.prefix_hash = before * kBase + scramble(signature);
    op.workspace_bytes = 0;
    op.duration_us = -1;
    op.late_us = -1;
    for (const cost::TracedOperand& operand : operands) {
        operands_[operands_end_++ & operand_mask_] = operand;
    }
    op.operands_end = operands_end_;
    op.frees_end = frees_end_;
    ++next_;
}

/// Hash of the `order` signatures before `end`.
std::uint64_t Learner::context_hash(std::uint64_t end, std::size_t order) const {
    const std::uint64_t length = kOrders[order];
    const std::uint64_t before = end == length ? 0 : at(end - length - 1).prefix_hash;
    return at(end - 1).prefix_hash - before * order_powers_[order];
}

void Learner::follow_cursor() {
    ++cursor_;
    ++match_;
}

void Learner::find_cursor() {
    match_ = 0;
    for (std::size_t o = kOrders.size(); o-- > 0;) {
        if (next_ < kOrders[o]) continue;
        const std::uint64_t hash = context_hash(next_, o);
        const Context& context = contexts_[o][table_slot(hash, contexts_[o].size())];
        const bool remembered = context.end > 0 && next_ - context.end <= limits_.max_period;
        if (!remembered || context.hash != hash) continue;
        cursor_ = context.end;
        extend_back();
        if (match_ > 0) return;
    }
}

/// How far back the past at the cursor equals the present. The work is paid for by operations
/// since.
void Learner::extend_back() {
    const std::uint64_t distance = next_ - cursor_;
    const std::uint64_t oldest = next_ > ring_.size() ? next_ - ring_.size() : 0;
    while (credit_ > 0 && cursor_ - match_ > oldest && match_ < std::max(distance, kLeastStretch) &&
           at(cursor_ - 1 - match_).signature == at(next_ - 1 - match_).signature) {
        ++match_;
        --credit_;
    }
}

void Learner::index_contexts() {
    for (std::size_t o = 0; o < kOrders.size(); ++o) {
        if (next_ < kOrders[o]) return;
        const std::uint64_t hash = context_hash(next_, o);
        contexts_[o][table_slot(hash, contexts_[o].size())] = {hash, next_};
    }
}

/// True while the operation is the one that the current loop has next.
bool Learner::follow_loop(std::uint64_t signature, Step& step) {
    if (current_ == kNoLoop) return false;
    Loop* loop = find_loop(current_);
    if (loop->signatures[phase_] == signature) {
        step.loop = current_;
        step.phase = phase_;
        phase_ = phase_ + 1 == loop->signatures.size() ? 0 : phase_ + 1;
        ++on_loop_;
        loop->last_used = next_;
        return true;
    }
    step.lost = true;
    current_ = kNoLoop;
    on_loop_ = 0;
    return false;
}

/// Takes up a known loop where the last operations are found in one place of it only.
void Learner::resume_loop(Step& step) {
    for (std::size_t o = kOrders.size(); o-- > 0;) {
        if (next_ < kOrders[o]) continue;
        const std::uint64_t hash = context_hash(next_, o);
        const Place& place = places_[o][table_slot(hash, places_[o].size())];
        if (place.loop == kNoLoop || place.hash != hash || place.ambiguous) continue;
        Loop* loop = find_loop(place.loop);
        if (loop == nullptr) continue;
        current_ = place.loop;
        on_loop_ = 1;
        cycle_.restart();
        step.loop = place.loop;
        step.phase = place.phase;
        step.entered = true;
        phase_ = place.phase + 1 == loop->signatures.size() ? 0 : place.phase + 1;
        loop->last_used = next_;
        return;
    }
}

/// The last operations equal those before them, a whole distance long: that is a loop, unless it is
/// the one we are in.
void Learner::lock_loop(Step& step) {
    if (match_ == 0) return;
    const std::uint64_t distance = next_ - cursor_;
    if (match_ < distance || next_ < recheck_at_) return;
    // What repeats a few times inside an iteration is short beside what has been seen around it.
    if (match_ + distance < std::max(kLeastStretch, off_loop_ / 4)) return;
    // Of a stretch that repeats with other blocks, such as a layer, a multiple may be the
    // iteration: one more each time we come here.
    const std::uint64_t multiple = (match_ + distance) / (2 * distance);
    const std::uint64_t period = distance * std::min(multiple, kMostMultiple);
    if (already_served(distance) || period > limits_.max_period) return;
    std::uint64_t found = distance;
    if (!uses_same_blocks(found) && (found = period, !uses_same_blocks(found))) {
        recheck_at_ = next_ + 2 * distance;
        return;
    }
    lock_period(found, step);
}

void Learner::lock_period(std::uint64_t period, Step& step) {
    Loop& loop = add_loop();
    for (std::uint64_t s = next_ - period; s < next_; ++s) {
        loop.signatures.push_back(at(s).signature);
    }
    index_loop(loop);
    current_ = loop.id;
    phase_ = 0;
    on_loop_ = period;
    cycle_.restart();
    step.loop = loop.id;
    step.phase = static_cast<std::uint32_t>(period - 1);
    step.locked = true;
    step.entered = true;
}

/// In place of the one that has not been used for the longest time.
Learner::Loop& Learner::add_loop() {
    Loop& loop = *std::min_element(loops_.begin(), loops_.end(), [](const Loop& a, const Loop& b) {
        return a.last_used < b.last_used;
    });
    forget_loop(loop);
    loop.id = next_loop_++;
    loop.last_used = next_;
    return loop;
}

/// The last operation is the first of an iteration. What was freed in the one before is known now.
void Learner::look_for_cycle(Step& step) {
    const std::uint64_t period = this->period(current_);
    if (on_loop_ <= period) return;  // it was not whole
    const std::uint64_t begin = next_ - 1;
    cycle_.add(hash_of_frees(begin - period, begin), frees_behind(begin - 1));
    const std::size_t length = cycle_.length();
    if (length > 1 && length * period <= limits_.max_period && cycle_.ends(length))
        enter_cycle(length, step);
}

std::uint64_t Learner::frees_behind(std::uint64_t serial) const {
    return at(serial).frees_end - (serial == 0 ? 0 : at(serial - 1).frees_end);
}

std::uint64_t Learner::hash_of_frees(std::uint64_t begin, std::uint64_t end) const {
    std::uint64_t hash = 0;
    for (std::uint64_t s = begin; s < end; ++s) hash = hash * kBase + scramble(frees_behind(s) + 1);
    return hash;
}

/// So many iterations of the current loop are one from now on. After something else the program is
/// found in the current loop first, as it cannot be told at once in which of them it is.
void Learner::enter_cycle(std::uint64_t length, Step& step) {
    Loop* known = find_cycle(length);
    step.locked = known == nullptr;
    if (!known) {
        const std::uint64_t period = this->period(current_);
        known = &add_loop();
        for (std::uint64_t i = 0; i < length * period; ++i)
            known->signatures.push_back(at(next_ - 1 - period + i % period).signature);
    }
    known->last_used = next_;
    current_ = known->id;
    phase_ = 1;
    on_loop_ = known->signatures.size() + 1;
    cycle_.restart();
    step.loop = current_;
    step.entered = true;
}

Learner::Loop* Learner::find_cycle(std::uint64_t length) {
    const std::vector<std::uint64_t>& one = find_loop(current_)->signatures;
    for (Loop& loop : loops_) {
        if (loop.id == kNoLoop || loop.signatures.size() != length * one.size()) continue;
        std::size_t i = 0;
        while (i < loop.signatures.size() && loop.signatures[i] == one[i % one.size()]) ++i;
        if (i == loop.signatures.size()) return &loop;
    }
    return nullptr;
}

/// Whether the operations of the last period named the same blocks as those of the one before, but
/// for those freed meanwhile. The layers of a network are alike too, but have weights of their own
/// each; and where none is named, as in updates of small parameters, there is nothing to plan.
bool Learner::uses_same_blocks(std::uint64_t period) {
    if (next_ < 2 * period) return false;
    const std::uint64_t begin = next_ - 2 * period;
    const std::uint64_t first_free = begin == 0 ? 0 : at(begin - 1).frees_end;
    if (frees_end_ - first_free > frees_.size()) return false;
    freed_.clear();
    for (std::uint64_t f = first_free; f < frees_end_; ++f)
        freed_.push_back(frees_[f & frees_mask_]);
    std::sort(freed_.begin(), freed_.end());
    std::uint64_t named = 0;
    std::uint64_t same = 0;
    std::uint64_t other = 0;
    for (std::uint64_t s = begin; s < begin + period; ++s) {
        const std::uint64_t a = s == 0 ? 0 : at(s - 1).operands_end;
        const std::uint64_t b = at(s + period - 1).operands_end;
        const std::uint64_t before_count = at(s).operands_end - a;
        const std::uint64_t now_count = at(s + period).operands_end - b;
        if (operands_end_ - a > operands_.size()) return false;
        // Behind the first one, operands of other numbers do not lie side by side.
        const std::uint64_t count = before_count == now_count
                                        ? now_count
                                        : std::min<std::uint64_t>({before_count, now_count, 1});
        named += count;
        for (std::uint64_t k = 0; k < count; ++k) {
            const std::uint64_t before = operands_[(a + k) & operand_mask_].block;
            const std::uint64_t now = operands_[(b + k) & operand_mask_].block;
            if (before == now) {
                ++same;
            } else if (!std::binary_search(freed_.begin(), freed_.end(), before)) {
                ++other;
            }
        }
    }
    return named != 0 && same >= other;
}

/// A loop of this period would bring nothing: it is the one we are in, or that one several times
/// over.
bool Learner::already_served(std::uint64_t period) const {
    const std::uint64_t current = this->period(current_);
    if (current == 0) return false;
    if (period == current || on_loop_ >= period) return true;
    return period % current == 0 && on_loop_ >= period / 2;
}

Learner::Loop* Learner::find_loop(LoopId id) {
    return const_cast<Loop*>(std::as_const(*this).find_loop(id));
}

const Learner::Loop* Learner::find_loop(LoopId id) const {
    if (id == kNoLoop) return nullptr;
    for (const Loop& loop : loops_) {
        if (loop.id == id) return &loop;
    }
    return nullptr;
}

/// Enters every context of the loop, which goes round. Called when the last operations are the
/// loop's second time, so the ring has them.
void Learner::index_loop(const Loop& loop) {
    const std::uint64_t period = loop.signatures.size();
    for (std::size_t o = 0; o < kOrders.size(); ++o) {
        for (std::uint64_t phase = 0; phase < period; ++phase) {
            const std::uint64_t end = next_ - period + phase + 1;
            const std::uint64_t oldest = next_ - 2 * period;
            if (end < oldest + kOrders[o]) continue;
            const std::uint64_t hash = context_hash(end, o);
            Place& place = places_[o][table_slot(hash, places_[o].size())];
            const bool same = place.loop == loop.id && place.hash == hash;
            place = {hash, loop.id, static_cast<std::uint32_t>(phase), same};
        }
    }
}

void Learner::forget_loop(Loop& loop) {
    loop.id = kNoLoop;
    loop.signatures.clear();
}

void Learner::note_free(std::uint64_t block) {
    if (next_ == 0) return;
    frees_[frees_end_++ & frees_mask_] = block;
    at(next_ - 1).frees_end = frees_end_;
}

void Learner::set_duration(std::uint64_t serial, double duration_us, double late_us) {
    if (serial < next_ && next_ - serial <= ring_.size()) {
        at(serial).duration_us = static_cast<float>(duration_us);
        at(serial).late_us = static_cast<float>(late_us);
    }
}

void Learner::set_workspace(std::uint64_t serial, std::uint64_t bytes) {
    if (serial < next_ && next_ - serial <= ring_.size()) at(serial).workspace_bytes = bytes;
}

std::uint64_t Learner::signature_of(std::uint64_t serial) const {
    return serial < next_ && next_ - serial <= ring_.size() ? at(serial).signature : 0;
}

std::uint64_t Learner::sized_signature_of(std::uint64_t serial) const {
    SizedSignature sized(signature_of(serial));
    if (sized.value() == 0) return 0;
    const std::uint64_t end = at(serial).operands_end;
    const bool follows = serial > 0 && next_ - (serial - 1) <= ring_.size();
    const std::uint64_t begin = follows ? at(serial - 1).operands_end : (serial == 0 ? 0 : end);
    if (operands_end_ - begin > operands_.size()) return sized.value();
    for (std::uint64_t k = begin; k < end; ++k) sized.add(operands_[k & operand_mask_].bytes);
    return sized.value();
}

std::size_t Learner::period(LoopId loop) const {
    const Loop* known = find_loop(loop);
    return known == nullptr ? 0 : known->signatures.size();
}

bool Learner::snapshot(cost::Trace& out) const {
    out = {};
    const Loop* loop = find_loop(current_);
    if (loop == nullptr) return false;
    const std::uint64_t period = loop->signatures.size();
    const std::uint64_t end = next_ - phase_;  // the last whole iteration ends here
    if (end < 2 * period || next_ - (end - 2 * period) > ring_.size()) return false;
    const std::uint64_t begin = end - 2 * period;
    for (std::uint64_t i = 0; i < 2 * period; ++i) {
        if (at(begin + i).signature != loop->signatures[i % period]) return false;
    }
    const std::uint64_t first_operand = begin == 0 ? 0 : at(begin - 1).operands_end;
    const std::uint64_t first_free = begin == 0 ? 0 : at(begin - 1).frees_end;
    if (operands_end_ - first_operand > operands_.size()) return false;
    if (frees_end_ - first_free > frees_.size()) return false;
    out.ops.reserve(2 * period);
    for (std::uint64_t s = begin; s < end; ++s) {
        const Remembered& op = at(s);
        out.ops.push_back({op.signature,
                           op.duration_us,
                           op.workspace_bytes,
                           static_cast<std::uint32_t>(op.operands_end - first_operand),
                           static_cast<std::uint32_t>(op.frees_end - first_free),
                           {},
                           op.late_us});
    }
    for (std::uint64_t k = first_operand; k < at(end - 1).operands_end; ++k) {
        out.operands.push_back(operands_[k & operand_mask_]);
    }
    for (std::uint64_t k = first_free; k < at(end - 1).frees_end; ++k) {
        out.frees.push_back(frees_[k & frees_mask_]);
    }
    return true;
}

}  // namespace libswap
