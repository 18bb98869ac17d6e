// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Graphs on the timeline: a marker that pays for the launch, the steps in the order of their edges
// alone, and a marker that the stream's later work is behind.

#include "simgpu/device/graph.hpp"

#include <cmath>

#include "simgpu/device/machine.hpp"
#include "simgpu/device/op.hpp"
#include "simgpu/device/timeline.hpp"

namespace simgpu {

namespace {

using OpPtr = std::shared_ptr<Op>;

/// From a node's last dependency to its begin: the device goes from node to node by itself.
constexpr std::uint64_t kNodeLatencyNs = 1000;
constexpr double kUsToNs = 1000.0;

OpPtr make_marker(const std::shared_ptr<StreamState>& stream) {
    auto op = std::make_shared<Op>();
    op->stream = stream;
    op->context = stream->context;
    return op;
}

Op::Kind kind_of(GraphStep::Kind kind) {
    switch (kind) {
        case GraphStep::Kind::Kernel:
            return Op::Kind::Kernel;
        case GraphStep::Kind::Copy:
            return Op::Kind::Copy;
        case GraphStep::Kind::Memset:
            return Op::Kind::Memset;
        case GraphStep::Kind::Function:
            return Op::Kind::Function;
        case GraphStep::Kind::WriteValue:
            return Op::Kind::WriteValue;
        case GraphStep::Kind::WaitValue:
            return Op::Kind::WaitValue;
        case GraphStep::Kind::Choice:
            return Op::Kind::Choice;
        default:
            return Op::Kind::Marker;
    }
}

OpClass class_of(GraphStep::Kind kind) {
    switch (kind) {
        case GraphStep::Kind::Kernel:
            return OpClass::Kernel;
        case GraphStep::Kind::Memset:
            return OpClass::Memset;
        case GraphStep::Kind::Function:
            return OpClass::HostFunction;
        default:
            return OpClass::Other;
    }
}

OpPtr make_step(const std::shared_ptr<StreamState>& stream, const GraphStep& step, Memory& memory) {
    OpPtr op = make_marker(stream);
    op->kind = kind_of(step.kind);
    op->op_class = class_of(step.kind);
    op->in_graph = true;
    op->launch = step.launch;
    op->copy = step.copy;
    op->memset = step.memset;
    op->va = step.va;
    op->value = step.value;
    op->value_bytes = step.value_bytes;
    op->compare = step.compare;
    op->next = step.next;
    if (step.function) op->function = [function = step.function](Status) { function(); };
    if (step.kind == GraphStep::Kind::Copy) {
        op->pageable = is_pageable(memory, step.copy.src) || is_pageable(memory, step.copy.dst);
    }
    return op;
}

}  // namespace

std::uint64_t Timeline::launch_latency_ns(const Op& op) const {
    const auto alone = static_cast<std::uint64_t>(std::ceil(profile_.launch_latency_us * kUsToNs));
    return op.in_graph ? std::min(alone, kNodeLatencyNs) : alone;
}

std::vector<OpPtr> Timeline::place_steps(const std::shared_ptr<StreamState>& stream,
                                         const std::vector<GraphStep>& steps, const OpPtr& start,
                                         std::uint64_t submit_ns) {
    std::vector<OpPtr> ops;
    ops.reserve(steps.size());
    for (const GraphStep& step : steps) {
        OpPtr op = make_step(stream, step, memory_);
        if (step.context != nullptr) op->context = step.context->state_;
        op->submit_ns = submit_ns;
        for (const std::uint32_t earlier : step.after) depend(op, ops[earlier]);
        if (step.after.empty()) depend(op, start);
        if (step.kind == GraphStep::Kind::Wait) depend(op, step.event->state_->record);
        if (step.kind == GraphStep::Kind::Record) step.event->state_->record = op;
        admit(op);
        ops.push_back(std::move(op));
    }
    return ops;
}

OpPtr Timeline::submit_graph(Call& call, const std::shared_ptr<StreamState>& stream,
                             const std::vector<GraphStep>& steps, const OpPtr& previous) {
    call.self_->local_ns += static_cast<std::uint64_t>(std::ceil(profile_.host_call_us * kUsToNs));
    OpPtr start = make_marker(stream);
    start->submit_ns = call.self_->local_ns;
    start->latency_ns = static_cast<std::uint64_t>(std::ceil(profile_.launch_latency_us * kUsToNs));
    place(start, {previous});
    std::vector<OpPtr> ops = place_steps(stream, steps, start, start->submit_ns);
    OpPtr end = make_marker(stream);
    end->submit_ns = start->submit_ns;
    place(end, ops);
    process_due();
    if (conductor_idle_) conductor_wake_.notify_one();
    return end;
}

void Timeline::choose(const OpPtr& op) {
    const std::vector<GraphStep>* body = op->next();
    if (body == nullptr) {
        finish(op, CUDA_SUCCESS);
        return;
    }
    const std::vector<OpPtr> ops = place_steps(op->stream, *body, nullptr, now_ns());
    OpPtr end = make_marker(op->stream);
    end->context = op->context;
    end->submit_ns = now_ns();
    // A turn takes time even where its body is empty, so that the clock goes on.
    end->latency_ns = kNodeLatencyNs;
    end->resumes = op;
    for (const OpPtr& step : ops) {
        step->correlation = op->correlation;
        depend(end, step);
    }
    admit(end);
}

Status Stream::launch_graph(const std::vector<GraphStep>& steps, GraphRun& run) {
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(timeline);
    if (state_->context->error != CUDA_SUCCESS) return state_->context->error;
    run.end = timeline.submit_graph(call, state_, steps, run.end);
    return CUDA_SUCCESS;
}

}  // namespace simgpu
