// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// How a device is looked at, put together and taken apart.

#include "runtime/device.hpp"

#include <algorithm>

#include "runtime/call_roles.hpp"
#include "runtime/context_scope.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/kernel_times.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

constexpr int kOldestDriver = 12040;
constexpr std::uint64_t kCollectEvery = 512;
constexpr std::uint64_t kHeadroomBytes = std::uint64_t{512} << 20;

int attribute(const Driver& driver, CUdevice device, CUdevice_attribute which) {
    int value = 0;
    if (driver.cuDeviceGetAttribute(&value, which, device) != CUDA_SUCCESS) return 0;
    return value;
}

/// Why a device is not swapped, or null.
const char* unsuitable(const Driver& driver, CUdevice device) {
    int version = 0;
    if (driver.cuDriverGetVersion(&version) != CUDA_SUCCESS || version < kOldestDriver)
        return "its driver is older than CUDA 12.4";
    if (attribute(driver, device, CU_DEVICE_ATTRIBUTE_INTEGRATED))
        return "it shares the host's memory";
    if (!attribute(driver, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
        return "it has no virtual memory management";
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    std::size_t granularity = 0;
    if (driver.cuMemGetAllocationGranularity(&granularity, &prop,
                                             CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS)
        return "it refuses virtual memory management";
    if (granularity == 0 || granularity > kPageBytes || kPageBytes % granularity != 0)
        return "its memory comes in pieces of an unknown size";
    // Some virtual GPUs claim the attribute and refuse the calls.
    HandlePool probe(driver, {HandlePool::Kind::Device, device, 0, kChunkBytes[0], nullptr});
    if (!probe.grow(0, 1)) return "its memory cannot be mapped";
    return nullptr;
}

/// What an operation's times are like: cuDNN's calls and kernels by their names.
OperationClass class_of(const Operation& op) {
    switch (op.kind) {
        case OpKind::Copy:
            return OperationClass::Copy;
        case OpKind::Memset:
            return OperationClass::Memset;
        case OpKind::Graph:
            return OperationClass::Graph;
        case OpKind::Launch:
            break;
    }
    if (const CallRoles* const call = CallRoles::current(); call != nullptr)
        if (const auto kind = kernel_class(call->name()); kind != OperationClass::Other)
            return kind;
    return op.function ? kernel_class(op.function->text) : OperationClass::Other;
}

/// Whether memory at a HOST_NUMA location can be made and mapped here.
bool host_memory_maps(const Driver& driver, CUdevice device, int numa_node) {
    if (!attribute(driver, device,
                   CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
        return false;
    HandlePool probe(driver, {HandlePool::Kind::Host, device, numa_node, kChunkBytes[0], nullptr});
    return probe.grow(0, 1).has_value();
}

}  // namespace

std::unique_ptr<Device> Device::open(const Driver& driver, const Config& config, EventLog* log,
                                     CUdevice ordinal, CUcontext context, HostLimit* host_limit,
                                     PointerEdges* edges) try {
    if (const char* why = unsuitable(driver, ordinal)) {
        LIBSWAP_LOG(Warning, "device {} is not swapped: {}; passing through", ordinal, why);
        return nullptr;
    }
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (driver.cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) return nullptr;
    Shape shape;
    shape.host_limit = host_limit;
    shape.edges = edges;
    const std::uint64_t headroom = std::min<std::uint64_t>(kHeadroomBytes, free_bytes / 20);
    shape.budget = config.budget.resolve(total_bytes, free_bytes - headroom);
    if (shape.budget > total_bytes) {
        LIBSWAP_LOG(Warning, "LIBSWAP_BUDGET of {} MiB is more than device {} has, using {} MiB",
                    shape.budget >> 20, ordinal, (free_bytes - headroom) >> 20);
        shape.budget = free_bytes - headroom;
    }
    if (shape.budget < kPageBytes)
        LIBSWAP_LOG(Warning, "a budget of {} bytes for device {} keeps everything on the host",
                    shape.budget, ordinal);
    if (config.mode == Mode::Observe) shape.budget = total_bytes;
    shape.budget = shape.budget / kPageBytes * kPageBytes;
    if (host_limit->total_bytes() <= 2 * largest_run(shape.budget).bytes())
        LIBSWAP_LOG(Warning,
                    "host memory for device {} is limited to {} MiB (LIBSWAP_HOST_LIMIT): too "
                    "little to swap anything",
                    ordinal, host_limit->total_bytes() >> 20);
    shape.numa_node = std::max(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 0);
    if (!host_memory_maps(driver, ordinal, shape.numa_node)) {
        shape.host_kind = HandlePool::Kind::Pinned;
        LIBSWAP_LOG(Warning,
                    "device {} cannot map host memory (HOST_NUMA): only buffers whose every use is "
                    "explained are swapped",
                    ordinal);
    }
    std::unique_ptr<Device> device(new Device(driver, config, log, ordinal, context, shape));
    device->worker_->start(context);
    if (device->tracking()) device->worker_->ensure_thread();
    LIBSWAP_LOG(Info, "device {}: budget {} MiB of {} MiB, host memory up to {} MiB", ordinal,
                shape.budget >> 20, total_bytes >> 20, host_limit->total_bytes() >> 20);
    return device;
} catch (const std::bad_alloc&) {
    return nullptr;
}

Device::Device(const Driver& driver, const Config& config, EventLog* log, CUdevice ordinal,
               CUcontext home, const Shape& shape)
    : driver_(driver),
      config_(config),
      log_(log),
      ordinal_(ordinal),
      home_(home),
      budget_bytes_(shape.budget),
      host_limit_(*shape.host_limit),
      largest_block_(largest_run(shape.budget)),
      machine_(device_machine(driver, ordinal)),
      copy_times_(driver, machine_.machine.link),
      link_drift_(machine_.machine.link),
      space_(driver, std::max<std::uint64_t>(4 * (shape.budget + shape.host_limit->total_bytes()),
                                             std::uint64_t{64} << 30)),
      device_pool_(driver,
                   {HandlePool::Kind::Device, ordinal, shape.numa_node, shape.budget, nullptr}),
      host_pool_(driver, {shape.host_kind, ordinal, shape.numa_node,
                          shape.host_limit->total_bytes(), shape.host_limit}),
      remapper_(driver, ordinal),
      streams_(driver),
      functions_(driver),
      edges_(*shape.edges),
      trials_(driver, streams_, blocks_, space_) {
    Learning::Parts parts;
    parts.driver = &driver_;
    parts.streams = &streams_;
    parts.counters = &counters_;
    parts.log = log_;
    parts.device = ordinal;
    parts.cupti = config.cupti;
    parts.policy = config.policy;
    parts.max_slowdown = config.max_slowdown;
    parts.launch_us = machine_.machine.ceilings.launch_us;
    parts.block_bytes = largest_block_.bytes();
    parts.plan_file = config.plan_file;
    parts.host_limit_bytes = shape.host_limit->total_bytes();
    learning_ = std::make_unique<Learning>(parts);
    learning_->plan_budget = [this] { return plan_budget(); };
    learning_->plan_machine = [this] { return plan_machine(); };
    worker_ = std::make_unique<Worker>(driver_, swap_parts(), worker_host());
    if (may_be_measured()) measuring_ = std::make_unique<Measuring>();
    if (log_ || config.mode == Mode::Observe || config.verify) start_tracking();
}

Device::~Device() { stop(false); }

SwapEngine::Parts Device::swap_parts() {
    SwapEngine::Parts parts;
    parts.driver = &driver_;
    parts.device_pool = &device_pool_;
    parts.host_pool = &host_pool_;
    parts.streams = &streams_;
    parts.blocks = &blocks_;
    parts.space = &space_;
    parts.remapper = &remapper_;
    parts.gate = &gate_;
    parts.believed = &believed_gate_;
    parts.counters = &counters_;
    parts.log = log_;
    parts.copy_times = &copy_times_;
    parts.verify = config_.verify;
    return parts;
}

Worker::Host Device::worker_host() {
    Worker::Host host;
    host.op_complete = [this](std::uint64_t serial) { return learning_->is_complete(serial); };
    host.reclaim_cached = [this] { return reclaim_cached(); };
    host.plan_run = [this] { return learning_->plan_run(); };
    host.follows_plan = [this] { return learning_->follows_plan(); };
    host.device_idle = [this] { return device_idle(); };
    host.careful = [this] { return careful(); };
    host.explained_way = [this](bool planned) {
        if (config_.move == Move::Plain) return SwapEngine::Way::Plain;
        const bool hands_over = config_.move == Move::HandOver || !planned;
        return hands_over ? SwapEngine::Way::HandOver : SwapEngine::Way::Early;
    };
    host.capturing = [this] { return capturing(); };
    host.guard_hit = [this] { Counters::add(counters_.hidden_functions); };
    host.thread_starts = [this] {
        tracking_.store(true, std::memory_order_seq_cst);
        stillness_.end();
    };
    host.may_begin = [this] { return end_stillness(); };
    host.background = [this] {
        const bool more = trials_.settle();
        watch_link();
        look_at_room();
        look_at_measuring();
        return learning_->collect_times() || more;
    };
    return host;
}

bool Device::device_idle() {
    bool idle = true;
    for (StreamIndex i = 0; i < streams_.count(); ++i) {
        const Use last = Use::make(i, streams_.last_place(i));
        if (last.place() != 0) idle &= streams_.look(last);
    }
    return idle;
}

bool Device::careful() {
    if (config_.move == Move::Careful) return true;
    // Unexplained launches come in runs: what follows one soon may be another.
    constexpr std::uint64_t kSoon = 64;
    const std::uint64_t last = last_unexplained_op_.load(std::memory_order_relaxed);
    return gate_.maybe_busy(streams_) || (last != 0 && stillness_.number() - last < kSoon);
}

std::uint64_t Device::plan_budget() {
    // What is not in the loop takes memory all the same.
    const std::uint64_t fixed = slabs_.mapped_bytes() + counters_.for_good_bytes.load();
    const std::uint64_t limit = std::min(device_pool_.limit_bytes(), reachable_bytes_.load());
    return limit > fixed ? limit - fixed : 0;
}

Step Device::learn(Operation& op, bool* event_wanted) {
    for (std::size_t i = 0; i < op.brought(); ++i) {
        Block& block = blocks_.block(op.blocks[i]);
        const bool writes = op.writes && (i >= op.changes.size() || op.changes[i]);
        op.operands.push_back(
            {block.id.load(std::memory_order_relaxed), block.bytes(), true, writes});
    }
    const Step step = learning_->observe(op.signature, op.operands, &op.commands, event_wanted);
    if (!op.commands.empty()) worker_->give_commands(op.commands);
    // The worker collects the times of operations; it may be asleep.
    if (step.locked || step.serial % kCollectEvery == 0) worker_->kick();
    if (log_) {
        if (op.function && op.function->name == 0)
            op.function->name = log_->name(op.function->text);
        OpEvent event;
        event.serial = step.serial;
        event.kind = op.kind;
        event.name = op.function ? op.function->name : 0;
        if (const CallRoles* const call = CallRoles::current(); call && op.function)
            event.name = log_->name(fmt::format("{}: {}", call->name(), op.function->text));
        event.signature = op.signature;
        event.explained = op.trusted();
        log_->op(event, op.operands);
    }
    return step;
}

void Device::note_issued(const Step& step, Use use) noexcept { learning_->note_issued(step, use); }

Learning::Timing Device::begin_timing(StreamIndex stream, const Step& step, const Operation& op) {
    if (!learning_->wants_time(step) || capturing()) return Learning::Timing::None;
    return learning_->begin_timing(stream, step, class_of(op), worker_->waits());
}

cost::Machine Device::plan_machine() const {
    std::lock_guard lock(machine_mutex_);
    cost::Machine machine = machine_.machine;
    machine.link = link_drift_.link();
    return machine;
}

/// Copies that have become, or always were, slower or faster than the model says: it is scaled, and
/// planned with anew.
void Device::watch_link() {
    copy_times_.collect();
    if (!link_drift_.look(copy_times_)) return;
    copy_times_.plan_with(link_drift_.link());
    const auto ratio = [this](cost::Direction direction) {
        return fmt::format("{:.2f} ({:.2f} where both move)", link_drift_.ratio(direction, false),
                           link_drift_.ratio(direction, true));
    };
    LIBSWAP_LOG(Info,
                "device {}: copies to the host take {} times what the link's model says, to the "
                "device {}; planning with that",
                ordinal_, ratio(cost::Direction::ToHost), ratio(cost::Direction::ToDevice));
    learning_->plan_again();
}

void Device::note_block_free(std::uint64_t block) {
    if (tracking()) learning_->note_free(block);
}

void Device::settle(CUcontext context) {
    const ContextScope scope(driver_, context);
    LIBSWAP_CU_IGNORE(driver_.cuCtxSynchronize());
    if (context != home_) return;
    stop(false);
}

void Device::revive(CUcontext context) {
    if (worker_->running() || !context) return;
    std::lock_guard lock(revival_);
    if (worker_->running()) return;
    home_ = context;
    worker_->start(context);
    if (tracking()) worker_->ensure_thread();
}

void Device::purge(CUcontext context) {
    streams_.forget_context(context);
    slabs_.purge(context);
    for (BlockIndex i = 0; i < blocks_.end();) {
        Block& block = blocks_.block(i);
        Buffer& buffer = blocks_.buffer_of(block);
        const bool dies = buffer.context == context && buffer.live.exchange(false);
        if (dies) free_now(buffer);
        // A block that is in no buffer any more names one that lies elsewhere.
        const bool inside = i - buffer.first < buffer.count;
        i = inside ? buffer.first + buffer.count : i + 1;
    }
    host_pool_.forget_context(context);
}

void Device::stop(bool context_gone) {
    // The worker first: it reads the times of operations that `learning_` drops.
    if (worker_) worker_->stop(context_gone);
    if (learning_) learning_->stop(context_gone);
    trials_.stop(context_gone);
    // A capture that is still open ends with its context.
    for (auto open = captures_.exchange(0); open > 0; --open) KernelTimes::instance().end_capture();
}

bool Device::is_valid() {
    return space_.is_valid() && device_pool_.is_valid() && host_pool_.is_valid() &&
           slabs_.is_valid() && blocks_.is_valid();
}

}  // namespace libswap
