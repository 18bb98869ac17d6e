// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/machine.hpp"
#include "simgpu/device/op.hpp"
#include "simgpu/device/timeline.hpp"

namespace simgpu {

Event::Event(std::shared_ptr<EventState> state) : state_(std::move(state)) {}
Event::~Event() = default;

unsigned Event::flags() const { return state_->flags; }
Context& Event::context() const { return *state_->context->context; }

Status Event::query() {
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(timeline);
    if (state_->context->error != CUDA_SUCCESS) return state_->context->error;
    return timeline.poll(call, state_->record);
}

bool Event::complete() const {
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return true;
    Timeline::Call call(timeline);
    return state_->record == nullptr || state_->record->done;
}

Status Event::synchronize() {
    auto& timeline = *state_->context->timeline;
    if (timeline.dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(timeline);
    timeline.wait(call, {state_->record});
    return state_->context->error;
}

Result<float> Event::elapsed_ms(const Event& start, const Event& end) {
    auto& timeline = *start.state_->context->timeline;
    if (timeline.dead()) return failed(CUDA_ERROR_DEINITIALIZED);
    Timeline::Call call(timeline);
    const auto& from = start.state_->record;
    const auto& to = end.state_->record;
    if (((start.flags() | end.flags()) & CU_EVENT_DISABLE_TIMING) != 0 || from == nullptr ||
        to == nullptr) {
        return failed(CUDA_ERROR_INVALID_HANDLE);
    }
    if (!from->done || !to->done) return failed(CUDA_ERROR_NOT_READY);
    const auto ns = static_cast<std::int64_t>(to->end_ns) - static_cast<std::int64_t>(from->end_ns);
    return static_cast<float>(static_cast<double>(ns) / 1e6);
}

}  // namespace simgpu
