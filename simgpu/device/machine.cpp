// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/machine.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <unistd.h>

#include "simgpu/device/op.hpp"
#include "simgpu/device/timeline.hpp"

namespace simgpu {

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

std::uint64_t cost_ns(double call_us, double us_per_gib, std::uint64_t bytes) {
    return static_cast<std::uint64_t>(1000.0 *
                                      (call_us + us_per_gib * static_cast<double>(bytes) / kGib));
}

/// Waits for all work submitted to `device`, or to all when it is negative.
void wait_for_device(Timeline& timeline, int device) {
    if (timeline.dead()) return;
    Timeline::Call call(timeline);
    std::vector<std::shared_ptr<Op>> ops;
    for (const auto& weak : timeline.contexts()) {
        const auto context = weak.lock();
        if (context == nullptr || (device >= 0 && context->device != device)) continue;
        for (const auto& stream : context->streams) {
            if (const auto alive = stream.lock()) ops.push_back(alive->last);
        }
    }
    timeline.wait(call, ops);
}

}  // namespace

Machine::Machine(const MachineConfig& config) : memory_(std::make_unique<Memory>(config.memory)) {
    timeline_ = std::make_shared<Timeline>(config.profile, *memory_, config.memory.device_count,
                                           config.host_speed);
    timeline_->delays().parse(config.delays, nullptr);
    timeline_->start();
}

Machine::~Machine() {
    if (timeline_->dead()) return;
    wait_for_device(*timeline_, -1);
    timeline_->stop();
}

const MachineProfile& Machine::profile() const { return timeline_->profile(); }
Memory& Machine::memory() { return *memory_; }
std::uint64_t Machine::now_ns() const { return timeline_->now_ns(); }
void Machine::park() { timeline_->park(); }
void Machine::after_fork_in_child() { timeline_->after_fork_in_child(); }

Result<HandleId> Machine::create(std::uint64_t bytes, Location location) {
    Timeline::OwnWork work(*timeline_);
    const auto handle = memory_->create(bytes, location);
    if (handle) work.costs(cost_ns(profile().create_us, profile().create_us_per_gib, bytes));
    return handle;
}

Status Machine::map(std::uint64_t va, std::uint64_t bytes, std::uint64_t offset, HandleId handle) {
    Timeline::OwnWork work(*timeline_);
    const Status status = memory_->map(va, bytes, offset, handle);
    if (status == CUDA_SUCCESS)
        work.costs(cost_ns(profile().map_us, profile().map_us_per_gib, bytes));
    return status;
}

Status Machine::unmap(std::uint64_t va, std::uint64_t bytes) {
    Timeline::OwnWork work(*timeline_);
    const Status status = memory_->unmap(va, bytes);
    if (status == CUDA_SUCCESS)
        work.costs(cost_ns(profile().unmap_us, profile().unmap_us_per_gib, bytes));
    return status;
}

Status Machine::set_access(std::uint64_t va, std::uint64_t bytes,
                           std::span<const AccessGrant> grants) {
    Timeline::OwnWork work(*timeline_);
    const Status status = memory_->set_access(va, bytes, grants);
    if (status == CUDA_SUCCESS)
        work.costs(cost_ns(profile().set_access_us, profile().set_access_us_per_gib, bytes));
    return status;
}

Result<std::uint64_t> Machine::allocate(int device, std::uint64_t bytes) {
    Timeline::OwnWork work(*timeline_);
    const auto va = memory_->allocate(device, bytes);
    if (va) work.costs(cost_ns(profile().create_us, profile().create_us_per_gib, bytes));
    return va;
}

Status Machine::free(std::uint64_t va) {
    const PointerInfo info = memory_->find(va);
    if (info.kind != PointerKind::Device || info.base != va) return CUDA_ERROR_INVALID_VALUE;
    wait_for_device(*timeline_, info.location.id);
    const Timeline::OwnWork work(*timeline_);
    return memory_->free(va);
}

Result<void*> Machine::host_allocate(std::uint64_t bytes, unsigned flags) {
    Timeline::OwnWork work(*timeline_);
    auto pointer = memory_->host_allocate(bytes, flags);
    if (pointer) work.costs(cost_ns(0, profile().host_alloc_us_per_gib, bytes));
    return pointer;
}

Status Machine::host_free(void* pointer) {
    wait_for_device(*timeline_, -1);
    return memory_->host_free(pointer);
}

Status Machine::host_register(void* pointer, std::uint64_t bytes, unsigned flags) {
    Timeline::OwnWork work(*timeline_);
    const Status status = memory_->host_register(pointer, bytes, flags);
    if (status == CUDA_SUCCESS) work.costs(cost_ns(0, profile().host_alloc_us_per_gib, bytes));
    return status;
}

Status Machine::host_unregister(void* pointer) {
    wait_for_device(*timeline_, -1);
    return memory_->host_unregister(pointer);
}

bool Machine::set_delays(std::string_view spec, std::string* error) {
    Timeline::Call call(*timeline_);
    return timeline_->delays().parse(spec, error);
}

OpStatistics Machine::statistics(OpClass op_class) const {
    Timeline::Call call(*timeline_);
    return timeline_->statistics(op_class);
}

std::string Machine::statistics_json() const {
    std::string text = fmt::format("{{\"simulated_ns\": {}", now_ns());
    for (int i = 0; i < kOpClasses; ++i) {
        const auto op_class = static_cast<OpClass>(i);
        const OpStatistics s = statistics(op_class);
        text += fmt::format(", \"{}\": {{\"count\": {}, \"bytes\": {}, \"busy_ns\": {}}}",
                            op_class_name(op_class), s.count, s.bytes, s.busy_ns);
    }
    const auto usage = memory_->usage(0);
    return text + fmt::format(", \"device_bytes\": {}, \"device_peak_bytes\": {}}}", usage.total,
                              usage.peak);
}

std::unique_ptr<Context> Machine::create_context(int device) {
    auto state = std::make_shared<ContextState>();
    state->machine = this;
    state->timeline = timeline_;
    state->device = device;
    std::unique_ptr<Context> context(new Context(state));
    Timeline::Call call(*timeline_);
    std::erase_if(timeline_->contexts(), [](const auto& weak) { return weak.expired(); });
    timeline_->contexts().push_back(state);
    return context;
}

}  // namespace simgpu
