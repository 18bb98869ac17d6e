// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Launches that name parts of big buffers. While it is not known that a launch of this kind keeps
// to the extents it is believed to have, and where its numbers may take it beyond them, it holds
// all of each buffer: blocks that are there, and blocks on the host, which it would reach over the
// link. So none of them moves under it, whatever it does.

#include <algorithm>

#include "runtime/device.hpp"
#include "runtime/engine_impl.hpp"

namespace libswap {
namespace {

/// Launches of a function that are looked at for what they change. Two looks at an operand are
/// enough, so most need fewer.
constexpr std::uint32_t kMostLooks = 128;

}  // namespace

Reach Device::reach_of(const NamedPart& part) noexcept {
    const Buffer& buffer = blocks_.buffer(part.buffer);
    const Block& last = blocks_.block(buffer.first + part.span.end() - 1);
    return {part.address, blocks_.block(buffer.first + part.span.first).base,
            last.base + last.bytes(), buffer.base, buffer.base + buffer.span_bytes};
}

/// It is how many elements one of the operands has.
bool Device::is_count(const Operation& op, std::int64_t number) noexcept {
    return std::any_of(op.parts.begin(), op.parts.end(),
                       [&](const NamedPart& part) {
                           return part.next != 0 &&
                                  counts_elements(part.next - part.address, number);
                       }) ||
           std::any_of(op.spans.begin(), op.spans.end(), [&](const NamedSpan& named) {
               const Buffer& buffer = blocks_.buffer(named.buffer);
               return named.span.count == buffer.count &&
                      counts_elements(buffer.asked_bytes, number);
           });
}

void Device::look_at_numbers(Operation& op, const LaunchRequest& request) {
    if (op.parts.empty()) return;
    std::array<Reach, Trials::kMaxWatches> reaches;
    const std::size_t count = std::min(op.parts.size(), reaches.size());
    for (std::size_t i = 0; i < count; ++i) reaches[i] = reach_of(op.parts[i]);
    bool further = op.parts.size() > reaches.size();
    NumbersHash hash;
    std::size_t parameter = 0;
    const auto look = [&](const LaunchNumber& number) {
        bool leaves = false;
        bool leaves_from_base = false;
        for (std::size_t i = 0; i < count && !is_small(number.value); ++i) {
            if (!reaches[i].is_left_by(number.value)) continue;
            leaves = true;
            leaves_from_base |= reaches[i].pointer == reaches[i].buffer_low;
        }
        // A zero may be of either kind: it becomes a factor of 1.0 without being an index.
        if (!number.again && number.value != 0 && (!number.like_float || leaves))
            hash.add(parameter + number.offset, number.value);
        if (leaves && !number.like_float)
            further |= leaves_from_base || !is_count(op, number.value);
    };
    const auto is_address = [&](std::uint64_t word) { return space_.find(word) != 0; };
    for_each_parameter(*op.function, request.params, request.extra,
                       [&](const void* memory, const ParamSlot& slot) {
                           parameter = slot.offset;
                           for_each_number(memory, slot.bytes, is_address, look);
                       });
    // Another grid is another size of memory that is used again, or another use of a function.
    std::uint64_t use = reinterpret_cast<std::uintptr_t>(op.function);
    for (int i = 0; i < 3; ++i)
        use = mix_signature(use, std::uint64_t{request.grid[i]} << 32 | request.block[i]);
    for (const NamedPart& part : op.parts) {
        const std::uint64_t place = mix_signature(part.address, blocks_.buffer(part.buffer).id);
        further |=
            seen_numbers_.may_have_index(mix_signature(mix_signature(use, part.word), place), hash);
    }
    op.may_reach_further = further;
}

void Device::look_at_parts(Operation& op) {
    // Functions may have no names here, so that their signatures are the same.
    op.launch_kind = mix_signature(op.signature, reinterpret_cast<std::uintptr_t>(op.function));
    for (const NamedSpan& named : op.spans) {
        const Buffer& buffer = blocks_.buffer(named.buffer);
        op.launch_kind = mix_signature(op.launch_kind, buffer.id);
        op.launch_kind =
            mix_signature(op.launch_kind, std::uint64_t{named.span.first} << 32 | named.span.count);
    }
    op.belief = trials_.look(op.launch_kind);
    if (op.belief == Belief::Confirmed && !op.may_reach_further) return;
    add_rest(op);
    // It uses all of what it names a part of.
    if (op.belief == Belief::Refuted) op.rest = 0;
}

void Device::add_rest(Operation& op) {
    const std::size_t named = op.blocks.size();
    const std::size_t spans = op.spans.size();
    for (std::size_t i = 0; i < spans; ++i) {
        const Buffer& buffer = blocks_.buffer(op.spans[i].buffer);
        name_span(op, buffer, {0, buffer.count}, true);
    }
    op.rest = static_cast<std::uint32_t>(op.blocks.size() - named);
}

std::uint32_t Device::begin_trial(Operation& op, CUcontext context, CUstream stream) {
    if (!op.by_parts || !op.function || context != home_ || capturing()) return Trials::kNoTicket;
    const bool unknown = op.belief == Belief::Unknown;
    const bool may_look = op.function->looks.load(std::memory_order_relaxed) < kMostLooks;
    if (!unknown && !may_look) return Trials::kNoTicket;
    std::array<Watch, Trials::kMaxWatches> watches;
    std::size_t count = 0;
    const std::size_t named = op.brought();
    // What was freed meanwhile is held no more.
    const auto holds = [&](BlockIndex block, std::size_t from) {
        return std::find(op.blocks.begin() + static_cast<std::ptrdiff_t>(from), op.blocks.end(),
                         block) != op.blocks.end();
    };
    if (unknown)
        for (const NamedSpan& span : op.spans) {
            const Buffer& buffer = blocks_.buffer(span.buffer);
            const BlockIndex next = buffer.first + span.span.end();
            if (span.place >= named || span.span.end() >= buffer.count || !holds(next, named))
                continue;
            if (count == watches.size()) return Trials::kNoTicket;
            watches[count++] = {next, 0, Watch::kBeyond};
        }
    const std::size_t beyond = count;
    for (const auto& operand : op.operands_named) {
        if (!may_look || count == watches.size() || !op.function->worth_a_look(operand.word))
            continue;
        if (!holds(operand.block, 0)) continue;
        watches[count++] = {operand.block, operand.chunk, static_cast<std::uint8_t>(operand.word)};
    }
    if (!unknown && count == 0) return Trials::kNoTicket;
    if (op.launch_kind == 0) op.launch_kind = op.signature;
    const std::uint32_t ticket =
        trials_.begin(op.launch_kind, unknown, op.function, {watches.data(), count}, stream);
    // A program that is ahead of the device launches many alike while the first is watched: these
    // tell nothing, and may not use looks up.
    if (ticket != Trials::kNoTicket && count != beyond)
        op.function->looks.fetch_add(1, std::memory_order_relaxed);
    return ticket;
}

}  // namespace libswap
