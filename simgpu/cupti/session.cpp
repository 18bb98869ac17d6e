// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cupti/session.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace simgpu::cupti {

namespace {

/// Kernels, copies and memsets are launched by calls whose numbers are all below.
struct DriverCall {
    const char* name;
    std::uint32_t number;
};
constexpr DriverCall kCalls[] = {
#define DRIVER_CALL(name, number) {#name, number},
#include "simgpu/cupti/driver_calls.def"
#undef DRIVER_CALL
};

std::uint64_t real_ns() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

/// What a thread has pushed of one kind. Without a destructor: static objects of the program make
/// calls after those of the thread were run.
struct ExternalIds {
    static constexpr std::size_t kMost = 64;
    std::array<std::uint64_t, kMost> ids;
    std::size_t count;
};
thread_local constinit std::array<ExternalIds, kExternalKinds> t_external_ids{};

thread_local std::uint64_t t_call_begun_ns = 0;
thread_local std::uint64_t t_correlation_data = 0;

void hear_operation(const SimgpuOperation* operation) {
    Session::instance().on_operation(*operation);
}
void hear_call(int at_exit, const char* name, std::uint32_t correlation, int result) {
    Session::instance().on_call(at_exit != 0, name, correlation, result);
}

constexpr std::uint8_t copy_kind(int from, int to) {
    constexpr std::uint8_t kToDevice = 1, kToHost = 2, kOnDevice = 8, kOnHost = 9;
    if (from == SimgpuDevice) return to == SimgpuDevice ? kOnDevice : kToHost;
    return to == SimgpuDevice ? kToDevice : kOnHost;
}

}  // namespace

std::uint32_t call_number(const char* name) {
    static const auto* kNumbers = [] {
        auto* map = new std::unordered_map<std::string_view, std::uint32_t>;
        for (const DriverCall& call : kCalls) map->emplace(call.name, call.number);
        return map;
    }();
    const auto found = kNumbers->find(name);
    return found == kNumbers->end() ? 0 : found->second;
}

const char* call_name(std::uint32_t number) {
    for (const DriverCall& call : kCalls)
        if (call.number == number) return call.name;
    return nullptr;
}

Session& Session::instance() {
    static auto* session = new Session;  // leaked: operations may end after static destructors
    return *session;
}

bool Session::records() const {
    const auto on = [](const std::atomic<bool>& flag) { return flag.load(); };
    return std::any_of(kinds_.begin(), kinds_.end(), on) ||
           std::any_of(calls_.begin(), calls_.end(), on);
}

bool Session::listens() const {
    const auto on = [](const std::atomic<bool>& flag) { return flag.load(); };
    return records() || (callback_ != nullptr &&
                         (domain_ || std::any_of(callbacks_.begin(), callbacks_.end(), on)));
}

void Session::listen() {
    recording_ = records();
    const DriverSide& driver = driver_side();
    if (!driver) return;
    if (!listens()) {
        driver.listen(nullptr, nullptr);
        return;
    }
    if (offset_ns_ == 0) {
        const Timestamp source = source_;
        offset_ns_ = (source != nullptr ? source() : real_ns()) - driver.clock_ns();
    }
    driver.listen(hear_operation, hear_call);
}

Result Session::enable(std::uint32_t kind, bool on) {
    if (kind == 0 || kind >= kKindCount) return kInvalidKind;
    std::lock_guard lock(mutex_);
    kinds_[kind] = on;
    // As documented: the kind overrides what was said of single calls before.
    if (kind == kDriver) std::fill(calls_.begin(), calls_.end(), false);
    listen();
    return kSuccess;
}

Result Session::enable_call(std::uint32_t number, bool on) {
    if (number == 0 || number >= kMostCalls) return kInvalidParameter;
    std::lock_guard lock(mutex_);
    calls_[number] = on;
    listen();
    return kSuccess;
}

Result Session::set_client(BufferRequested requested, BufferCompleted completed) {
    if (requested == nullptr || completed == nullptr) return kInvalidParameter;
    buffers_.set_client(requested, completed);
    return kSuccess;
}

Result Session::flush() {
    if (!buffers_.has_client()) return kInvalidOperation;
    buffers_.deliver();
    return kSuccess;
}

Result Session::set_timestamp(Timestamp timestamp) {
    if (timestamp == nullptr) return kInvalidParameter;
    std::lock_guard lock(mutex_);
    source_ = timestamp;
    source_began_ = timestamp();
    source_began_ns_ = real_ns();
    offset_ns_ = 0;
    listen();
    return kSuccess;
}

std::uint64_t Session::Moment::of(std::uint64_t other_ns) const {
    const auto away = static_cast<std::int64_t>(other_ns - simulated_ns);
    return recorded + static_cast<std::uint64_t>(std::llround(rate * static_cast<double>(away)));
}

/// A client's clock goes on while the simulated one stands still, and may count in other units.
/// What is recorded has just happened: from here it is counted back. So what happens in a span of
/// the client's clock lies in it, as on a GPU.
Session::Moment Session::moment(std::uint64_t simulated_ns) const {
    constexpr std::uint64_t kLongEnoughNs = 1'000'000;
    constexpr double kSame = 0.01;
    const Timestamp source = source_;
    if (source == nullptr) return {simulated_ns, offset_ns_ + simulated_ns, 1};
    Moment moment{simulated_ns, source(), 1};
    const std::uint64_t since_ns = real_ns() - source_began_ns_;
    if (since_ns < kLongEnoughNs) return moment;
    const double rate =
        static_cast<double>(moment.recorded - source_began_) / static_cast<double>(since_ns);
    if (std::abs(rate - 1) > kSame) moment.rate = rate;
    return moment;
}

std::uint64_t Session::timestamp() {
    const DriverSide& driver = driver_side();
    std::lock_guard lock(mutex_);
    if (!driver || offset_ns_ == 0) {
        const Timestamp source = source_;
        return source != nullptr ? source() : real_ns();
    }
    return moment(driver.clock_ns()).recorded;
}

Result Session::push_external(std::uint32_t kind, std::uint64_t id) {
    if (kind == 0 || kind >= kExternalKinds) return kInvalidParameter;
    ExternalIds& pushed = t_external_ids[kind];
    if (pushed.count == ExternalIds::kMost) return kOutOfMemory;
    pushed.ids[pushed.count++] = id;
    return kSuccess;
}

Result Session::pop_external(std::uint32_t kind, std::uint64_t* last) {
    if (kind == 0 || kind >= kExternalKinds) return kInvalidParameter;
    ExternalIds& pushed = t_external_ids[kind];
    if (pushed.count == 0) return kQueueEmpty;
    const std::uint64_t id = pushed.ids[--pushed.count];
    if (last != nullptr) *last = id;
    return kSuccess;
}

Result Session::subscribe(void** subscriber, Callback callback, void* userdata) {
    if (subscriber == nullptr || callback == nullptr) return kInvalidParameter;
    std::lock_guard lock(mutex_);
    if (callback_ != nullptr) return kMultipleSubscribers;
    userdata_ = userdata;
    callback_ = callback;
    *subscriber = this;
    return kSuccess;
}

Result Session::unsubscribe(void* subscriber) {
    std::lock_guard lock(mutex_);
    if (subscriber != this || callback_ == nullptr) return kInvalidParameter;
    callback_ = nullptr;
    domain_ = false;
    std::fill(callbacks_.begin(), callbacks_.end(), false);
    listen();
    return kSuccess;
}

Result Session::enable_callback(void* subscriber, std::uint32_t domain, std::uint32_t number,
                                bool on) {
    if (subscriber != this || domain == 0 || domain >= kDomainCount || number >= kMostCalls)
        return kInvalidParameter;
    std::lock_guard lock(mutex_);
    if (callback_ == nullptr) return kInvalidParameter;
    // Of other domains nothing is told here.
    if (domain == kDriverDomain) callbacks_[number] = on;
    listen();
    return kSuccess;
}

Result Session::enable_domain(void* subscriber, std::uint32_t domain, bool on) {
    if (subscriber != this || domain == 0 || domain >= kDomainCount) return kInvalidParameter;
    std::lock_guard lock(mutex_);
    if (callback_ == nullptr) return kInvalidParameter;
    if (domain == kDriverDomain) {
        domain_ = on;
        std::fill(callbacks_.begin(), callbacks_.end(), on);
    }
    listen();
    return kSuccess;
}

void Session::finalize() {
    {
        std::lock_guard lock(mutex_);
        std::fill(kinds_.begin(), kinds_.end(), false);
        std::fill(calls_.begin(), calls_.end(), false);
        std::fill(callbacks_.begin(), callbacks_.end(), false);
        domain_ = false;
        callback_ = nullptr;
        source_ = nullptr;
        offset_ns_ = 0;
        listen();
    }
    buffers_.stop();
    buffers_.take_dropped();
}

const char* Session::kept(const char* name) {
    std::lock_guard lock(names_mutex_);
    return names_.emplace(name).first->c_str();
}

void Session::on_operation(const SimgpuOperation& operation) {
    switch (operation.kind) {
        case SimgpuKernel:
            return add_kernel(operation);
        case SimgpuCopy:
            return add_copy(operation);
        default:
            return add_memset(operation);
    }
}

/// With what records of all operations have.
template <typename Record>
Record Session::record_of(std::uint32_t kind, const SimgpuOperation& operation) const {
    Record record{};
    record.kind = kind;
    const Moment ended = moment(operation.end_ns);
    record.start = ended.of(operation.start_ns);
    record.end = ended.recorded;
    record.device_id = operation.device;
    record.context_id = operation.context;
    record.stream_id = operation.stream;
    record.correlation_id = operation.correlation;
    record.graph_id = operation.in_graph != 0 ? 1 : 0;
    return record;
}

void Session::add_kernel(const SimgpuOperation& operation) {
    const bool serial = kinds_[kKernel];
    if (!serial && !kinds_[kConcurrentKernel]) return;
    auto record = record_of<KernelRecord>(serial ? kKernel : kConcurrentKernel, operation);
    record.completed = record.end;
    record.grid_x = static_cast<std::int32_t>(operation.grid[0]);
    record.grid_y = static_cast<std::int32_t>(operation.grid[1]);
    record.grid_z = static_cast<std::int32_t>(operation.grid[2]);
    record.block_x = static_cast<std::int32_t>(operation.block[0]);
    record.block_y = static_cast<std::int32_t>(operation.block[1]);
    record.block_z = static_cast<std::int32_t>(operation.block[2]);
    record.dynamic_shared_memory = static_cast<std::int32_t>(operation.dynamic_shared_bytes);
    record.name = kept(operation.name);
    buffers_.add(record);
}

void Session::add_copy(const SimgpuOperation& operation) {
    if (!kinds_[kMemcpy]) return;
    auto record = record_of<MemcpyRecord>(kMemcpy, operation);
    record.copy_kind = copy_kind(operation.from, operation.to);
    record.src_kind = static_cast<std::uint8_t>(operation.from);
    record.dst_kind = static_cast<std::uint8_t>(operation.to);
    record.bytes = operation.bytes;
    record.copy_count = 1;
    buffers_.add(record);
}

void Session::add_memset(const SimgpuOperation& operation) {
    if (!kinds_[kMemset]) return;
    auto record = record_of<MemsetRecord>(kMemset, operation);
    record.value = operation.value;
    record.bytes = operation.bytes;
    record.memory_kind = SimgpuDevice;
    buffers_.add(record);
}

/// The record of a call, behind those of what the program calls it.
void Session::add_call(std::uint32_t number, std::uint32_t correlation, std::uint64_t start_ns,
                       int result) {
    if (kinds_[kExternalCorrelation]) {
        for (std::uint32_t kind = 1; kind < kExternalKinds; ++kind) {
            const ExternalIds& pushed = t_external_ids[kind];
            if (pushed.count == 0) continue;
            ExternalCorrelationRecord record{};
            record.kind = kExternalCorrelation;
            record.external_kind = kind;
            record.external_id = pushed.ids[pushed.count - 1];
            record.correlation_id = correlation;
            buffers_.add(record);
        }
    }
    ApiRecord record{};
    record.kind = kDriver;
    record.cbid = number;
    const Moment now = moment(driver_side().clock_ns());
    record.start = now.of(start_ns);
    record.end = now.recorded;
    record.process_id = static_cast<std::uint32_t>(getpid());
    record.thread_id = static_cast<std::uint32_t>(gettid());
    record.correlation_id = correlation;
    record.return_value = static_cast<std::uint32_t>(result);
    buffers_.add(record);
}

void Session::on_call(bool at_exit, const char* name, std::uint32_t correlation, int result) {
    const std::uint32_t number = call_number(name);
    if (number == 0) return;
    if (!at_exit && recording_) buffers_.ask_ahead();
    if (!at_exit) t_call_begun_ns = driver_side().clock_ns();
    if (at_exit && (kinds_[kDriver] || calls_[number]))
        add_call(number, correlation, t_call_begun_ns, result);
    const Callback callback = callback_;
    if (callback == nullptr || !callbacks_[number]) return;
    if (!at_exit) t_correlation_data = 0;
    CallbackData data{};
    data.site = at_exit ? 1 : 0;
    data.function_name = name;
    data.function_return_value = at_exit ? &result : nullptr;
    data.context_uid = 1;
    data.correlation_data = &t_correlation_data;
    data.correlation_id = correlation;
    callback(userdata_, kDriverDomain, number, &data);
}

}  // namespace simgpu::cupti
