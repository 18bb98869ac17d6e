// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// The simulation: what happens at which simulated time. The threads that drive it are in
// timeline_threads.cpp.

#include "simgpu/device/timeline.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "simgpu/device/activity.hpp"

namespace simgpu {

namespace {

constexpr double kUsToNs = 1000.0;
/// Copies up to this are done by the conductor itself: waking another thread would take longer.
constexpr std::uint64_t kBigCopyBytes = 4u << 20;
constexpr std::uint64_t kWriteValueNs = 1000;

std::uint64_t ns_of(double ns) { return ns <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(ns)); }

/// Time for `amount` at `per_ns`; a profile without that ceiling has none.
double time_for(double amount, double per_ns) { return per_ns > 0 ? amount / per_ns : 0; }

bool is_compute(const Op& op) {
    return op.kind == Op::Kind::Kernel || op.kind == Op::Kind::Memset ||
           (op.kind == Op::Kind::Copy && op.op_class == OpClass::D2d);
}

bool is_transfer(const Op& op) {
    return op.kind == Op::Kind::Copy &&
           (op.op_class == OpClass::H2d || op.op_class == OpClass::D2h);
}

LinkModel::Direction direction_of(const Op& op) {
    return op.op_class == OpClass::H2d ? LinkModel::ToDevice : LinkModel::ToHost;
}

}  // namespace

bool Timeline::ByPriority::operator()(const OpPtr& a, const OpPtr& b) const {
    const int pa = a->stream->priority;
    const int pb = b->stream->priority;
    if (pa != pb) return pa < pb;  // Lower numbers are more urgent.
    if (a->ready_ns != b->ready_ns) return a->ready_ns < b->ready_ns;
    return a->sequence < b->sequence;
}

Timeline::DeviceState::DeviceState(const MachineProfile& profile)
    : link(profile.h2d_gbps, profile.d2h_gbps, profile.h2d_duplex_gbps, profile.d2h_duplex_gbps) {}

void Timeline::add_timer(std::uint64_t at_ns, TimerKind kind, OpPtr op) {
    timers_.push(Timer{at_ns, sequence_++, kind, std::move(op)});
}

void Timeline::depend(const OpPtr& op, const OpPtr& earlier) {
    if (earlier == nullptr || earlier->done) return;
    earlier->dependents.push_back(op);
    ++op->unmet;
}

void Timeline::admit(const OpPtr& op) {
    op->sequence = sequence_++;
    if (op->correlation == 0) op->correlation = t_current_call;
    if (op->unmet == 0) ready_.push_back(op);
}

void Timeline::place(const OpPtr& op, const std::vector<OpPtr>& after) {
    StreamState& stream = *op->stream;
    depend(op, stream.last);
    for (const auto& earlier : after) depend(op, earlier);
    if (stream.legacy) {
        for (const auto& weak : op->context->streams) {
            const auto other = weak.lock();
            if (other != nullptr && other.get() != &stream && other->blocking())
                depend(op, other->last);
        }
    } else if (stream.blocking() && op->context->legacy != nullptr) {
        depend(op, op->context->legacy->last);
    }
    stream.last = op;
    admit(op);
}

void Timeline::submit(Call& call, const OpPtr& op, const std::vector<OpPtr>& after) {
    call.self_->local_ns += ns_of(profile_.host_call_us * kUsToNs);
    op->submit_ns = call.self_->local_ns;
    place(op, after);
    process_due();
    if (conductor_idle_) conductor_wake_.notify_one();
}

bool Timeline::frozen() const { return kernels_undone_ != 0 || overdue_ != 0 || parked_; }

std::uint64_t Timeline::next_event_ns() const {
    std::uint64_t next = timers_.empty() ? kNever : timers_.top().at_ns;
    for (const auto& device : devices_) {
        for (const auto direction : {LinkModel::ToDevice, LinkModel::ToHost}) {
            next = std::min(next, device->link.finish_ns(direction));
        }
    }
    return next;
}

void Timeline::process_due() {
    for (;;) {
        if (!ready_.empty()) {
            const OpPtr op = std::move(ready_.front());
            ready_.pop_front();
            begin(op);
        } else if (!timers_.empty() && timers_.top().at_ns <= now_ns()) {
            const Timer timer = timers_.top();
            timers_.pop();
            handle(timer);
        } else if (!end_link_transfers() && !poll_values()) {
            return;
        }
    }
}

void Timeline::begin(const OpPtr& op) {
    if (op->submit_ns > now_ns()) {
        add_timer(op->submit_ns, TimerKind::Submit, op);
        return;
    }
    op->ready_ns = op->start_ns = now_ns();
    if (op->context->error != CUDA_SUCCESS && !op->function_in_any_case) {
        finish(op, op->context->error);
        return;
    }
    switch (op->kind) {
        case Op::Kind::Marker:
            if (op->latency_ns == 0) {
                finish(op, CUDA_SUCCESS);
            } else {
                op->work_done = true;
                add_timer(now_ns() + op->latency_ns, TimerKind::End, op);
            }
            return;
        case Op::Kind::Choice:
            choose(op);
            return;
        case Op::Kind::Copy:
            begin_copy(op);
            return;
        case Op::Kind::Kernel:
        case Op::Kind::Memset:
            op->delay_ns = delays_.next(op->op_class).delay_ns;
            add_timer(now_ns() + launch_latency_ns(*op) + op->delay_ns, TimerKind::WantCompute, op);
            return;
        case Op::Kind::Function:
            functions_.push_back(op);
            function_wake_.notify_one();
            return;
        case Op::Kind::WriteValue:
            add_timer(now_ns() + kWriteValueNs, TimerKind::End, op);
            return;
        case Op::Kind::WaitValue:
            value_waits_.push_back(op);
            return;
    }
}

OpClass Timeline::classify(const CopyRequest& copy) const {
    const auto on_device = [&](std::uint64_t va) {
        const PointerInfo info = memory_.find(va);
        const bool ours = info.kind == PointerKind::Device || info.kind == PointerKind::Vmm;
        return ours && info.location.kind == Location::Kind::Device;
    };
    const bool from_device = on_device(copy.src);
    const bool to_device = on_device(copy.dst);
    if (from_device) return to_device ? OpClass::D2d : OpClass::D2h;
    return to_device ? OpClass::H2d : OpClass::H2h;
}

void Timeline::begin_copy(const OpPtr& op) {
    op->op_class = classify(op->copy);
    const Disturbance disturbance = delays_.next(op->op_class);
    op->delay_ns = disturbance.delay_ns;
    op->loses_page = disturbance.loses_page;
    if (op->op_class == OpClass::D2d) {
        add_timer(now_ns() + launch_latency_ns(*op) + op->delay_ns, TimerKind::WantCompute, op);
    } else if (is_transfer(*op)) {
        auto& device = device_of(*op);
        device.copy[direction_of(*op)].queue.insert(op);
        start_copy(device, direction_of(*op));
    } else {
        // Host to host: no engine of the device.
        const double ns = time_for(static_cast<double>(op->bytes()), profile_.host_gbps);
        queue_work(op);
        add_timer(now_ns() + op->delay_ns + ns_of(ns), TimerKind::End, op);
    }
}

/// Where the next in the queue would run, nullptr if it has to wait.
Timeline::OpPtr* Timeline::place_of_next(Engine& engine) {
    if (engine.queue.empty() || engine.before != nullptr) return nullptr;
    if (engine.current == nullptr) return &engine.current;
    const int priority = (*engine.queue.begin())->stream->priority;
    return priority < engine.current->stream->priority ? &engine.before : nullptr;
}

void Timeline::start_compute(DeviceState& device) {
    auto& engine = device.compute;
    OpPtr* const place = place_of_next(engine);
    if (place == nullptr) return;
    *place = *engine.queue.begin();
    engine.queue.erase(engine.queue.begin());
    const OpPtr op = *place;
    if (op->context->error != CUDA_SUCCESS) {
        finish(op, op->context->error);
        return;
    }
    op->start_ns = now_ns();
    // The end is known when the work has been counted.
    ++kernels_undone_;
    queue_work(op);
}

void Timeline::start_copy(DeviceState& device, LinkModel::Direction direction) {
    auto& engine = device.copy[direction];
    if (engine.current != nullptr || engine.queue.empty()) return;
    engine.current = *engine.queue.begin();
    engine.queue.erase(engine.queue.begin());
    const OpPtr op = engine.current;
    if (op->context->error != CUDA_SUCCESS) {
        finish(op, op->context->error);
        return;
    }
    op->start_ns = now_ns();
    queue_work(op);
    add_timer(now_ns() + ns_of(profile_.transfer_latency_us * kUsToNs) + op->delay_ns,
              TimerKind::BytesBegin, op);
}

void Timeline::queue_work(const OpPtr& op) {
    op->access = std::make_unique<AccessSet>(memory_, op->context->device);
    const bool big_copy =
        op->kind == Op::Kind::Copy && !is_compute(*op) && op->bytes() > kBigCopyBytes;
    (big_copy ? carrier_work_ : conductor_work_).push_back(op);
    (big_copy ? carrier_wake_ : conductor_wake_).notify_one();
}

void Timeline::handle(const Timer& timer) {
    switch (timer.kind) {
        case TimerKind::WantCompute: {
            auto& device = device_of(*timer.op);
            timer.op->ready_ns = now_ns();
            device.compute.queue.insert(timer.op);
            start_compute(device);
            return;
        }
        case TimerKind::BytesBegin: {
            const double limit =
                timer.op->pageable ? profile_.pageable_gbps : profile_.h2d_gbps + profile_.d2h_gbps;
            device_of(*timer.op).link.begin(direction_of(*timer.op), now_ns(),
                                            static_cast<double>(timer.op->bytes()), limit);
            return;
        }
        case TimerKind::End:
            if (timer.op->kind == Op::Kind::WriteValue) {
                finish(timer.op, write_value(*timer.op));
            } else {
                end_reached(timer.op);
            }
            return;
        case TimerKind::Submit:
            begin(timer.op);
            return;
    }
}

bool Timeline::end_link_transfers() {
    for (const auto& device : devices_) {
        for (const auto direction : {LinkModel::ToDevice, LinkModel::ToHost}) {
            if (device->link.finish_ns(direction) > now_ns()) continue;
            device->link.end(direction, now_ns());
            const OpPtr op = device->copy[direction].current;
            end_reached(op);
            return true;
        }
    }
    return false;
}

void Timeline::end_reached(const OpPtr& op) {
    if (op->stood_ns != 0) {
        add_timer(now_ns() + std::exchange(op->stood_ns, 0), TimerKind::End, op);
        return;
    }
    op->end_reached = true;
    if (op->work_done) {
        finish(op, op->status);
    } else {
        ++overdue_;
    }
}

std::uint64_t Timeline::body_ns(const Op& op) const {
    const double bytes = static_cast<double>(op.bytes());
    if (op.kind == Op::Kind::Memset) return ns_of(time_for(bytes, profile_.mem_gbps));
    if (op.kind == Op::Kind::Copy) return ns_of(time_for(2 * bytes, profile_.mem_gbps));
    double over_link_in = op.access->host_read_bytes();
    double over_link_out = op.access->host_write_bytes();
    double ns = op.outcome.duration_ns;
    if (ns == 0) {
        over_link_in = std::min(over_link_in, bytes);
        over_link_out = std::min(over_link_out, bytes);
        ns = std::max(
            {time_for(op.outcome.flops, profile_.fp32_tflops * 1e3),
             time_for(bytes, profile_.mem_gbps),
             time_for(op.outcome.thread_instructions, profile_.thread_instructions_per_ns)});
    }
    return ns_of(std::max({ns, time_for(over_link_in, profile_.h2d_gbps),
                           time_for(over_link_out, profile_.d2h_gbps)}));
}

void Timeline::work_finished(const OpPtr& op) {
    op->work_done = true;
    if (is_compute(*op)) {
        --kernels_undone_;
        const std::uint64_t ns = body_ns(*op);
        const Engine& engine = device_of(*op).compute;
        if (engine.before == op && engine.current != nullptr) engine.current->stood_ns += ns;
        add_timer(now_ns() + ns, TimerKind::End, op);
    } else if (op->end_reached) {
        --overdue_;
        finish(op, op->status);
    }
}

void Timeline::leave_engine(const OpPtr& op) {
    using Kind = Op::Kind;
    if (op->kind == Kind::Function || op->kind == Kind::Marker || op->kind == Kind::Choice) return;
    auto& device = device_of(*op);
    for (Engine* engine : {&device.compute, &device.copy[0], &device.copy[1]}) {
        if (engine->current != op) continue;
        engine->current = nullptr;
    }
    if (device.compute.before == op) device.compute.before = nullptr;
    start_compute(device);
    start_copy(device, LinkModel::ToDevice);
    start_copy(device, LinkModel::ToHost);
}

void Timeline::fail(ContextState& context, Status status, const std::string& detail) {
    if (context.error != CUDA_SUCCESS) return;
    context.error = status;
    context.error_detail = detail;
}

void Timeline::finish(const OpPtr& op, Status status) {
    op->done = true;
    op->end_ns = now_ns();
    if (op->access != nullptr && op->access->revoked() && status == CUDA_SUCCESS) {
        status = CUDA_ERROR_ILLEGAL_ADDRESS;
        op->outcome.fault_va = op->access->revoked_va();
        op->outcome.detail = "unmapped while in use";
    }
    op->status = status;
    if (status != CUDA_SUCCESS && op->context->error == CUDA_SUCCESS) {
        const std::string what = op->kind == Op::Kind::Kernel ? "kernel " + op->launch.name
                                                              : op_class_name(op->op_class);
        fail(*op->context, status,
             fmt::format("{}: error {} at address {:#x}{}{}", what, static_cast<int>(status),
                         op->outcome.fault_va, op->outcome.detail.empty() ? "" : ", ",
                         op->outcome.detail));
    }
    auto& statistics = statistics_[static_cast<int>(op->op_class)];
    ++statistics.count;
    statistics.bytes += op->bytes();
    statistics.busy_ns += op->end_ns - op->start_ns;
    log_.note(*op);
    if (const auto observer = g_operation_observer.load(std::memory_order_acquire)) observer(*op);
    leave_engine(op);
    if (op->stream->last == op) op->stream->last = nullptr;
    for (const auto& dependent : op->dependents) {
        if (--dependent->unmet == 0) ready_.push_back(dependent);
    }
    if (op->resumes != nullptr) ready_.push_back(std::move(op->resumes));
    for (HostThread* waiter : op->waiters) {
        if (--waiter->waiting_for == 0) wake(*waiter);
    }
    // Events keep their record's operation for its time: let go of the rest.
    op->dependents.clear();
    op->waiters.clear();
    op->launch = {};
    op->function = nullptr;
    op->next = nullptr;
    op->staged = {};
    op->access = nullptr;
    op->stream = nullptr;
}

namespace {

bool satisfied(std::uint64_t have, std::uint64_t want, unsigned bytes, WaitCompare compare) {
    switch (compare) {
        case WaitCompare::GreaterEqual:
            // Cyclic, as documented: the difference's sign decides.
            return bytes == 4
                       ? static_cast<std::int32_t>(static_cast<std::uint32_t>(have - want)) >= 0
                       : static_cast<std::int64_t>(have - want) >= 0;
        case WaitCompare::Equal:
            return bytes == 4 ? static_cast<std::uint32_t>(have) == static_cast<std::uint32_t>(want)
                              : have == want;
        case WaitCompare::And:
            return (have & want) != 0;
        case WaitCompare::Nor:
            return bytes == 4 ? static_cast<std::uint32_t>(~(have | want)) != 0
                              : ~(have | want) != 0;
    }
    return true;
}

std::uint64_t load(std::byte* host, unsigned bytes) {
    if (bytes == 4) return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(host)).load();
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(host)).load();
}

void store(std::byte* host, unsigned bytes, std::uint64_t value) {
    if (bytes == 4) {
        std::atomic_ref(*reinterpret_cast<std::uint32_t*>(host))
            .store(static_cast<std::uint32_t>(value));
    } else {
        std::atomic_ref(*reinterpret_cast<std::uint64_t*>(host)).store(value);
    }
}

}  // namespace

bool Timeline::poll_values() {
    bool any = false;
    for (std::size_t i = 0; i < value_waits_.size();) {
        const OpPtr op = value_waits_[i];
        const Access access = memory_.resolve(op->context->device, op->va, op->value_bytes, false);
        const bool over =
            op->context->error != CUDA_SUCCESS || !access.ok || memory_.without_data() ||
            satisfied(load(access.host, op->value_bytes), op->value, op->value_bytes, op->compare);
        if (!over) {
            ++i;
            continue;
        }
        value_waits_.erase(value_waits_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!access.ok) op->outcome.fault_va = access.fault_va;
        finish(op, access.ok ? op->context->error : CUDA_ERROR_ILLEGAL_ADDRESS);
        any = true;
    }
    return any;
}

Status Timeline::write_value(Op& op) {
    const Access access = memory_.resolve(op.context->device, op.va, op.value_bytes, true);
    if (!access.ok) {
        op.outcome.fault_va = access.fault_va;
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (!memory_.without_data()) store(access.host, op.value_bytes, op.value);
    return CUDA_SUCCESS;
}

}  // namespace simgpu
