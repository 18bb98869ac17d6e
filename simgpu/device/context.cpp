// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <algorithm>

#include <unistd.h>

#include "simgpu/device/machine.hpp"
#include "simgpu/device/op.hpp"
#include "simgpu/device/timeline.hpp"

namespace simgpu {

namespace {

std::shared_ptr<StreamState> make_stream(const std::shared_ptr<ContextState>& context,
                                         unsigned flags, int priority) {
    auto stream = std::make_shared<StreamState>();
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = context->timeline->next_id();
    context->streams.push_back(stream);
    return stream;
}

}  // namespace

Context::Context(std::shared_ptr<ContextState> state) : state_(std::move(state)) {
    state_->context = this;
    Timeline::Call call(*state_->timeline);
    state_->legacy = make_stream(state_, CU_STREAM_DEFAULT, 0);
    state_->legacy->legacy = true;
    legacy_.reset(new Stream(state_->legacy));
}

Context::~Context() {
    if (state_->timeline->dead()) return;
    synchronize();
    legacy_.reset();
    per_thread_.clear();
    Timeline::Call call(*state_->timeline);
    state_->legacy.reset();
}

Machine& Context::machine() const { return *state_->machine; }
int Context::device() const { return state_->device; }
Stream& Context::legacy_stream() { return *legacy_; }

Stream& Context::per_thread_stream() {
    std::lock_guard guard(per_thread_lock_);
    auto& stream = per_thread_[gettid()];
    if (stream == nullptr) stream = create_stream(CU_STREAM_DEFAULT, 0);
    return *stream;
}

std::unique_ptr<Stream> Context::create_stream(unsigned flags, int priority) {
    Timeline::Call call(*state_->timeline);
    std::erase_if(state_->streams, [](const auto& weak) { return weak.expired(); });
    return std::unique_ptr<Stream>(new Stream(make_stream(state_, flags, priority)));
}

std::unique_ptr<Event> Context::create_event(unsigned flags) {
    auto event = std::make_shared<EventState>();
    event->context = state_;
    event->flags = flags;
    return std::unique_ptr<Event>(new Event(std::move(event)));
}

Status Context::synchronize() {
    if (state_->timeline->dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(*state_->timeline);
    std::vector<std::shared_ptr<Op>> ops;
    for (const auto& weak : state_->streams) {
        if (const auto stream = weak.lock()) ops.push_back(stream->last);
    }
    state_->timeline->wait(call, ops);
    return state_->error;
}

Status Context::sticky_error() const {
    if (state_->timeline->dead()) return CUDA_ERROR_DEINITIALIZED;
    Timeline::Call call(*state_->timeline);
    return state_->error;
}

std::string Context::fault_detail() const {
    Timeline::Call call(*state_->timeline);
    return state_->error_detail;
}

void Context::fail(Status status, std::string detail) {
    Timeline::Call call(*state_->timeline);
    state_->timeline->fail(*state_, status, detail);
}

}  // namespace simgpu
