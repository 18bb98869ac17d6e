// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Launches that name parts of big buffers. While it is not known that a launch of this kind keeps
// to the extents it is believed to have, it holds all of each buffer: blocks that are there, and
// blocks on the host, which it would reach over the link. So none of them moves under it, whatever
// it does.

#include <algorithm>

#include "runtime/device.hpp"
#include "runtime/engine_impl.hpp"

namespace libswap {
namespace {

/// The first launches of a function are looked at for what they change.
constexpr std::uint32_t kLaunchesLookedAt = 64;

}  // namespace

bool Device::names_parts(const Operation& op) noexcept {
    // Spans of a buffer that was named in pieces may cover it all the same; that is rare, and the
    // trial that follows holds nothing more.
    return op.by_parts &&
           std::any_of(op.spans.begin(), op.spans.end(), [&](const NamedSpan& named) {
               return named.span.count != blocks_.buffer(named.buffer).count;
           });
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
    if (op.belief == Belief::Confirmed) return;
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
    if (!unknown && op.function->launches.load(std::memory_order_relaxed) >= kLaunchesLookedAt)
        return Trials::kNoTicket;
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
    for (const auto& operand : op.operands_named) {
        if (count == watches.size() || !op.function->worth_a_look(operand.word)) continue;
        if (!holds(operand.block, 0)) continue;
        watches[count++] = {operand.block, operand.chunk, static_cast<std::uint8_t>(operand.word)};
    }
    if (!unknown && count == 0) return Trials::kNoTicket;
    if (op.launch_kind == 0) op.launch_kind = op.signature;
    return trials_.begin(op.launch_kind, unknown, op.function, {watches.data(), count}, stream);
}

}  // namespace libswap
