// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cstring>
#include <unordered_set>
#include <vector>

#include "simgpu/device/machine.hpp"
#include "simgpu/device/op.hpp"
#include "simgpu/device/timeline.hpp"

namespace simgpu {

namespace {

/// As documented for copies from pageable memory: up to this they are staged, and the call returns
/// before they are done.
constexpr std::uint64_t kStagedBytes = 64u << 10;

using OpPtr = std::shared_ptr<Op>;

OpPtr make_op(const std::shared_ptr<StreamState>& stream, Op::Kind kind, OpClass op_class) {
    auto op = std::make_shared<Op>();
    op->kind = kind;
    op->op_class = op_class;
    op->stream = stream;
    op->context = stream->context;
    return op;
}

/// Submits unless the context has failed.
Status submit(const OpPtr& op, const std::vector<OpPtr>& after = {}, bool wait = false) {
    auto& timeline = *op->context->timeline;
    if (timeline.dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(timeline);
    if (op->context->error != CUDA_SUCCESS) return op->context->error;
    timeline.submit(call, op, after);
    if (!wait) return CUDA_SUCCESS;
    timeline.wait(call, {op});
    return op->context->error;
}

/// Takes the source's bytes now, so that the program may change them as soon as the call returns.
void stage(Op& op) {
    CopyRequest& copy = op.copy;
    op.staged.resize(copy.bytes());
    std::byte* to = op.staged.data();
    for (std::uint64_t slice = 0; slice < copy.depth; ++slice) {
        for (std::uint64_t row = 0; row < copy.height; ++row, to += copy.width) {
            const std::uint64_t from =
                copy.src + slice * copy.src_slice_pitch + row * copy.src_pitch;
            std::memcpy(to, reinterpret_cast<const void*>(from), copy.width);
        }
    }
    copy.src = reinterpret_cast<std::uint64_t>(op.staged.data());
    copy.src_pitch = copy.width;
    copy.src_slice_pitch = copy.width * copy.height;
}

bool on_device(const PointerInfo& info) {
    const bool ours = info.kind == PointerKind::Device || info.kind == PointerKind::Vmm;
    return ours && info.location.kind == Location::Kind::Device;
}

}  // namespace

bool is_pageable(const Memory& memory, std::uint64_t va) {
    const bool inside = va - memory.window_base() < memory.window_bytes();
    return !inside && memory.find(va).kind == PointerKind::None;
}

Stream::Stream(std::shared_ptr<StreamState> state) : state_(std::move(state)) {}

// Submitted operations keep the stream's state, and with it the stream's place among those that are
// waited for.
Stream::~Stream() = default;

unsigned Stream::flags() const { return state_->flags; }
int Stream::priority() const { return state_->priority; }
std::uint64_t Stream::id() const { return state_->id; }
Context& Stream::context() const { return *state_->context->context; }

Status Stream::launch(KernelLaunch launch) {
    const auto op = make_op(state_, Op::Kind::Kernel, OpClass::Kernel);
    op->launch = std::move(launch);
    return submit(op);
}

Status Stream::copy_async(const CopyRequest& request) {
    if (request.bytes() == 0) return state_->context->error;
    auto& memory = state_->context->timeline->memory();
    const auto op = make_op(state_, Op::Kind::Copy, OpClass::Other);
    op->copy = request;
    const bool from_pageable = is_pageable(memory, request.src);
    const bool to_pageable = is_pageable(memory, request.dst);
    op->pageable = from_pageable || to_pageable;
    if (from_pageable && !to_pageable && request.bytes() <= kStagedBytes) {
        stage(*op);
        return submit(op);
    }
    return submit(op, {}, op->pageable);
}

Status Stream::copy(const CopyRequest& request) {
    if (request.bytes() == 0) return state_->context->error;
    auto& memory = state_->context->timeline->memory();
    const bool between_devices =
        on_device(memory.find(request.src)) && on_device(memory.find(request.dst));
    const auto op = make_op(state_, Op::Kind::Copy, OpClass::Other);
    op->copy = request;
    op->pageable = is_pageable(memory, request.src) || is_pageable(memory, request.dst);
    return submit(op, {}, !between_devices);
}

Status Stream::memset_async(const MemsetRequest& request) {
    if (request.width * request.height == 0) return state_->context->error;
    const auto op = make_op(state_, Op::Kind::Memset, OpClass::Memset);
    op->memset = request;
    return submit(op);
}

Status Stream::memset(const MemsetRequest& request) {
    if (request.width * request.height == 0) return state_->context->error;
    const bool device = on_device(state_->context->timeline->memory().find(request.dst));
    const auto op = make_op(state_, Op::Kind::Memset, OpClass::Memset);
    op->memset = request;
    return submit(op, {}, !device);
}

Status Stream::host_function(std::function<void()> function) {
    const auto op = make_op(state_, Op::Kind::Function, OpClass::HostFunction);
    op->function = [function = std::move(function)](Status) { function(); };
    return submit(op);
}

Status Stream::callback(std::function<void(Status)> function) {
    const auto op = make_op(state_, Op::Kind::Function, OpClass::HostFunction);
    op->function = std::move(function);
    op->function_in_any_case = true;
    return submit(op);
}

Status Stream::record(Event& event) {
    const auto op = make_op(state_, Op::Kind::Marker, OpClass::Other);
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(timeline);
    if (op->context->error != CUDA_SUCCESS) return op->context->error;
    timeline.submit(call, op, {});
    event.state_->record = op;
    return CUDA_SUCCESS;
}

Status Stream::wait(const Event& event) {
    const auto op = make_op(state_, Op::Kind::Marker, OpClass::Other);
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(timeline);
    if (op->context->error != CUDA_SUCCESS) return op->context->error;
    if (event.state_->record == nullptr || event.state_->record->done) return CUDA_SUCCESS;
    timeline.submit(call, op, {event.state_->record});
    return CUDA_SUCCESS;
}

Status Stream::write_value(std::uint64_t va, std::uint64_t value, unsigned value_bytes) {
    const auto op = make_op(state_, Op::Kind::WriteValue, OpClass::Other);
    op->va = va;
    op->value = value;
    op->value_bytes = value_bytes;
    return submit(op);
}

Status Stream::wait_value(std::uint64_t va, std::uint64_t value, unsigned value_bytes,
                          WaitCompare compare) {
    const auto op = make_op(state_, Op::Kind::WaitValue, OpClass::Other);
    op->va = va;
    op->value = value;
    op->value_bytes = value_bytes;
    op->compare = compare;
    return submit(op);
}

Status Stream::query() {
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(timeline);
    if (state_->context->error != CUDA_SUCCESS) return state_->context->error;
    return timeline.poll(call, state_->last);
}

Status Stream::synchronize() {
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(timeline);
    timeline.wait(call, {state_->last});
    return state_->context->error;
}

bool Stream::follows(const Event& event) const {
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return true;
    Timeline::Call call(timeline);
    const OpPtr& record = event.state_->record;
    if (record == nullptr || record->done) return true;
    // Along what waits for what, to any operation of the stream.
    std::unordered_set<const Op*> seen;
    std::vector<const Op*> open{record.get()};
    while (!open.empty()) {
        const Op* op = open.back();
        open.pop_back();
        if (!seen.insert(op).second) continue;
        if (op->stream == state_) return true;
        for (const OpPtr& later : op->dependents) open.push_back(later.get());
    }
    return false;
}

}  // namespace simgpu
