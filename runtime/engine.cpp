// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The engine's life, contexts, streams and events.

#include "runtime/engine.hpp"

#include <unistd.h>

#include "runtime/context_scope.hpp"
#include "runtime/engine_impl.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/kernel_times.hpp"
#include "runtime/log.hpp"
#include "runtime/summary.hpp"

namespace libswap {
namespace {

constinit std::atomic<Engine*> g_engine{nullptr};

std::unique_ptr<EventLog> open_log(const Driver& driver, const Config& config) {
    if (config.trace_file.empty()) return nullptr;
    EventLogHeader header;
    header.libswap_version = "0.1.0";
    LIBSWAP_CU_IGNORE(driver.cuDriverGetVersion(&header.driver_version));
    CUdevice first = 0;
    std::size_t total = 0;
    char name[256] = "";
    if (driver.cuDeviceGet(&first, 0) == CUDA_SUCCESS &&
        driver.cuDeviceTotalMem(&total, first) == CUDA_SUCCESS) {
        header.device_bytes = total;
        header.budget_bytes = config.budget.resolve(total, total);
        if (driver.cuDeviceGetName &&
            driver.cuDeviceGetName(name, sizeof name, first) == CUDA_SUCCESS)
            header.device_name = name;
    }
    std::string path = config.trace_file;
    if (const auto at = path.find("%p"); at != std::string::npos)
        path.replace(at, 2, std::to_string(getpid()));
    auto log = EventLog::open(path, header);
    if (log) return std::move(*log);
    LIBSWAP_LOG(Warning, "{}; no trace is written", log.error());
    return nullptr;
}

}  // namespace

std::uint64_t mix_signature(std::uint64_t hash, std::uint64_t value) noexcept {
    hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccd;
}

Engine* Engine::get() noexcept { return g_engine.load(std::memory_order_acquire); }

Engine* Engine::start(const Driver& driver, const Config& config) noexcept try {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    if (Engine* engine = get()) return engine;
    if (config.mode == Mode::Off) return nullptr;
    if (config.ipc) {
        LIBSWAP_LOG(Info, "LIBSWAP_IPC is set: all memory is the driver's own, nothing is swapped");
        return nullptr;
    }
    auto* impl = new Impl(driver, config);
    impl->log = open_log(driver, config);
    auto* engine = new Engine(impl);
    g_engine.store(engine, std::memory_order_release);
    return engine;
} catch (...) {
    return nullptr;
}

void Engine::forget() noexcept {
    g_engine.store(nullptr, std::memory_order_release);
    KernelTimes::forget();
}

void Engine::at_exit() noexcept {
    if (impl_->ended.exchange(true)) return;
    impl_->for_each_device([](Device& device) { device.park(); });
    try {
        SummaryInput input;
        impl_->for_each_device([&](Device& device) { input.devices.push_back(&device); });
        input.passed_through = impl_->passed_through;
        input.hook_time = impl_->hook_time;
        write_summary(impl_->config, input);
        if (impl_->log) {
            impl_->for_each_device([&](Device& device) { log_models(device, *impl_->log); });
            impl_->log->close();
        }
    } catch (...) {
        LIBSWAP_LOG(Warning, "the summary could not be written");
    }
}

void Engine::set_passed_through(PassedThroughSource source) noexcept {
    impl_->passed_through = source;
}

void Engine::set_hook_time(HookTimeSource source) noexcept { impl_->hook_time = source; }

Device* Engine::Impl::current(CUcontext* context, bool look) noexcept {
    thread_local struct {
        const Impl* impl = nullptr;
        CUcontext context = nullptr;
        std::uint32_t epoch = 0;
        Device* device = nullptr;
    } recent;
    *context = nullptr;
    if (driver.cuCtxGetCurrent(context) != CUDA_SUCCESS || !*context) return nullptr;
    const std::uint32_t epoch = context_epoch.load(std::memory_order_acquire);
    if (recent.impl == this && recent.context == *context && recent.epoch == epoch)
        return recent.device;
    CUdevice ordinal = 0;
    if (driver.cuCtxGetDevice(&ordinal) != CUDA_SUCCESS) return nullptr;
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= kMaxDevices) return nullptr;
    Device* device = devices[ordinal].load(std::memory_order_acquire);
    const bool decided = device || passes_through[ordinal].load();
    if (!decided && !look) return nullptr;
    if (!decided) device = open(ordinal, *context);
    recent = {this, *context, epoch, device};
    return device;
}

Device* Engine::Impl::open(CUdevice ordinal, CUcontext context) noexcept {
    std::lock_guard lock(open_mutex);
    if (Device* device = devices[ordinal].load()) return device;
    if (passes_through[ordinal].load()) return nullptr;
    // Leaked, as the devices are.
    if (!host_limit.load()) host_limit.store(new HostLimit(host_limit_of(config)));
    Device* device =
        Device::open(driver, config, log.get(), ordinal, context, host_limit.load(), &edges)
            .release();
    if (device) for_each_device([&](Device&) { many_devices.store(true); });
    devices[ordinal].store(device, std::memory_order_release);
    const auto end = static_cast<std::size_t>(ordinal) + 1;
    if (device && end > device_end.load()) device_end.store(end, std::memory_order_release);
    passes_through[ordinal].store(device == nullptr);
    return device;
}

Device* Engine::Impl::owner(std::uint64_t address) noexcept {
    const std::size_t end = device_end.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < end; ++i) {
        Device* device = devices[i].load(std::memory_order_acquire);
        if (device && device->owns(address)) return device;
    }
    return nullptr;
}

void Engine::stream_created(CUstream) noexcept {}

CUresult Engine::stream_destroy(CUstream stream, RealCall real) noexcept {
    return guarded([&] {
        // Whichever device is current, and whichever others saw the stream.
        impl_->for_each_device([&](Device& device) {
            // An event would become the capture's. The driver refuses, and the stream stays.
            if (device.capturing() && device.is_captured(stream)) return;
            device.streams().retire_handle(stream);
        });
        return real();
    });
}

CUresult Engine::event_record(CUevent event, CUstream stream, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        const StreamIndex index = device ? device->streams().find(context, stream) : kNoStream;
        if (index == kNoStream) return real();
        const std::uint64_t last = device->streams().last_place(index);
        const CUresult result = real();
        if (result != CUDA_SUCCESS) return result;
        if (device->capturing() && device->is_captured(stream))
            device->event_order().forget(event);
        else
            device->event_order().recorded(event, index, last);
        return result;
    });
}

CUresult Engine::stream_wait_event(CUstream stream, CUevent event, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        const StreamIndex index = device ? device->streams().find(context, stream) : kNoStream;
        const CUresult result = real();
        if (index == kNoStream || result != CUDA_SUCCESS) return result;
        if (device->capturing() && device->is_captured(stream)) return result;
        // A place of its own: until it is complete, so may what it waits for not be.
        (void)device->streams().take_place(index);
        device->event_order().waited(index, event);
        return result;
    });
}

CUresult Engine::event_destroy(CUevent event, RealCall real) noexcept {
    return guarded([&] {
        impl_->for_each_device([&](Device& device) { device.event_order().forget(event); });
        return real();
    });
}

CUresult Engine::stream_synchronize(CUstream stream, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        if (!device) return real();
        const StreamIndex index = device->streams().find(context, stream);
        const std::uint64_t last = index == kNoStream ? 0 : device->streams().last_place(index);
        const CUresult result = real();
        if (result != CUDA_SUCCESS) return result;
        if (index != kNoStream) device->streams().mark_complete(index, last);
        device->release_unused();
        return result;
    });
}

CUresult Engine::context_synchronize(RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        if (!device) return real();
        StreamTable& streams = device->streams();
        std::array<std::uint64_t, 64> last{};
        const std::size_t count = std::min<std::size_t>(streams.count(), last.size());
        for (std::size_t i = 0; i < count; ++i)
            last[i] = streams.last_place(static_cast<StreamIndex>(i));
        const CUresult result = real();
        if (result != CUDA_SUCCESS) return result;
        for (std::size_t i = 0; i < count; ++i)
            if (streams.context(static_cast<StreamIndex>(i)) == context)
                streams.mark_complete(static_cast<StreamIndex>(i), last[i]);
        device->release_unused();
        return result;
    });
}

CUresult Engine::enable_peer(CUcontext peer, RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        CUdevice user = 0;
        if (result != CUDA_SUCCESS || impl_->driver.cuCtxGetDevice(&user) != CUDA_SUCCESS)
            return result;
        const ContextScope scope(impl_->driver, peer);
        CUcontext context = nullptr;
        if (Device* owner = impl_->current(&context, true)) owner->add_peer(user);
        return result;
    });
}

CUresult Engine::context_destroy(CUcontext context, RealCall real) noexcept {
    return guarded([&] {
        impl_->for_each_device([&](Device& device) { device.settle(context); });
        const CUresult result = real();
        if (result == CUDA_SUCCESS)
            impl_->for_each_device([&](Device& device) { device.purge(context); });
        impl_->context_epoch.fetch_add(1);
        return result;
    });
}

CUresult Engine::Impl::end_primary(CUdevice ordinal, bool always, RealCall real) {
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= kMaxDevices) return real();
    Device* device = devices[ordinal].load();
    unsigned flags = 0;
    int active = 0;
    if (!device || !driver.cuDevicePrimaryCtxGetState || !driver.cuDevicePrimaryCtxRetain ||
        driver.cuDevicePrimaryCtxGetState(ordinal, &flags, &active) != CUDA_SUCCESS || !active)
        return real();
    // Its name, by one more count that is given back at once.
    CUcontext primary = nullptr;
    if (driver.cuDevicePrimaryCtxRetain(&primary, ordinal) != CUDA_SUCCESS) return real();
    LIBSWAP_CU_IGNORE(driver.cuDevicePrimaryCtxRelease(ordinal));
    device->settle(primary);
    const CUresult result = real();
    const bool asked = driver.cuDevicePrimaryCtxGetState(ordinal, &flags, &active) == CUDA_SUCCESS;
    if ((always && result == CUDA_SUCCESS) || (asked && !active)) {
        device->purge(primary);
        // Streams of it may have worked on memory of others.
        for_each_device([&](Device& other) { other.streams().forget_context(primary); });
        program_memory.remove_of(device,
                                 [&](const ProgramAllocation& freed) { account(freed, false); });
    }
    context_epoch.fetch_add(1);
    return result;
}

CUresult Engine::primary_reset(CUdevice ordinal, RealCall real) noexcept {
    return guarded([&] { return impl_->end_primary(ordinal, true, real); });
}

CUresult Engine::primary_release(CUdevice ordinal, RealCall real) noexcept {
    return guarded([&] { return impl_->end_primary(ordinal, false, real); });
}

CUresult Engine::module_unload(RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        impl_->for_each_device([](Device& device) { device.functions().invalidate(); });
        return result;
    });
}

void Engine::module_global(CUdeviceptr ptr, std::size_t bytes) noexcept {
    guarded([&] {
        CUcontext context = nullptr;
        if (Device* device = impl_->current(&context, true)) device->add_global(ptr, bytes);
        return CUDA_SUCCESS;
    });
}

}  // namespace libswap
