// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

#include "interposer/process.hpp"

#include "interposer/torch_environment.hpp"
#include "interposer/version.hpp"
#include "runtime/log.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

namespace libswap {
namespace {

constinit std::atomic<Engine*> g_engine{nullptr};

enum Start : int { kNotBegun, kUnderWay, kDone };
constinit std::atomic<int> g_start{kNotBegun};

/// The child of a fork has no worker and no usable CUDA: it passes through until it calls cuInit by
/// itself.
void begin_again_in_child() noexcept {
    g_engine.store(nullptr, std::memory_order_relaxed);
    g_start.store(kNotBegun, std::memory_order_relaxed);
    reset_call_counts();
    Engine::forget();
}

/// For LIBSWAP_VERBOSE=2: every hook that was called, and how often.
void list_calls() noexcept {
    for (unsigned i = 0; i < kHookCount; ++i) {
        const Hook hook = static_cast<Hook>(i);
        if (call_count(hook) != 0)
            LIBSWAP_LOG(Debug, "{} was called {} times", hook_info(hook).name, call_count(hook));
    }
}

void end_process() noexcept {
    note_process_exit();
    if (g_start.load() == kNotBegun) return;  // a forked child that never used CUDA
    if (log_enabled(LogLevel::Debug)) list_calls();
    if (Engine* engine = active_engine()) engine->at_exit();
}

/// Once per process. The exit handler runs before the driver's own, which cuInit has registered
/// already.
void register_handlers() noexcept {
    static constinit std::atomic<bool> registered{false};
    if (registered.exchange(true)) return;
    pthread_atfork(nullptr, nullptr, &begin_again_in_child);
    std::atexit(&end_process);
}

void report_passed_through(PassedThroughSink sink) {
    for (unsigned i = 0; i < kHookCount; ++i) {
        const Hook hook = static_cast<Hook>(i);
        if (hook_info(hook).is_reported && call_count(hook) != 0)
            sink(hook_info(hook).name, call_count(hook));
    }
}

void* look_up(const char* symbol, void*) noexcept { return driver_image().symbol(symbol); }

void say_hello(const Config& settings) {
    int version = 0;
    driver().cuDriverGetVersion(&version);
    LIBSWAP_LOG(Info, "version {}, driver {}.{}", kVersion, version / 1000, version % 1000 / 10);
    for (const std::string& line : describe_config(settings)) write_log_line(LogLevel::Info, line);
}

void start() {
    const Config& settings = config();
    register_handlers();
    if (settings.mode == Mode::Off) {
        LIBSWAP_LOG(Info, "version {}, LIBSWAP_MODE=off, passing through", kVersion);
        return;
    }
    Driver table;
    if (const Status loaded = load_driver(&look_up, nullptr, &table); !loaded) {
        LIBSWAP_LOG(Warning, "the driver has no {}, passing through", loaded.error().what);
        return;
    }
    set_driver(table);
    if (log_enabled(LogLevel::Info)) say_hello(settings);
    report_torch_environment();
    Engine* engine = Engine::start(driver(), settings);
    if (!engine) return;
    engine->set_passed_through(&report_passed_through);
    if (settings.mode == Mode::Observe) {
        engine->set_hook_time(&hook_time_ns);
        g_hooks_timed.store(true, std::memory_order_relaxed);
    }
    g_engine.store(engine, std::memory_order_release);
}

}  // namespace

Engine* active_engine() noexcept { return g_engine.load(std::memory_order_acquire); }

void start_after_init() noexcept {
    int seen = kNotBegun;
    if (!g_start.compare_exchange_strong(seen, kUnderWay)) {
        // Not before the engine is there: what this thread allocates next would be the driver's.
        g_start.wait(kUnderWay);
        return;
    }
    const HookScope scope;  // should the driver call itself, nobody waits for this thread
    settle_driver();
    try {
        start();
    } catch (...) {
        LIBSWAP_LOG(Warning, "no memory to start, passing through");
    }
    g_start.store(kDone);
    g_start.notify_all();
}

}  // namespace libswap

extern "C" CUresult cuInit(unsigned flags) {
    using namespace libswap;
    const auto real = [=] { return real_function<decltype(&::cuInit)>(Hook::cuInit)(flags); };
    const bool is_outermost = !HookScope::is_active();
    if (is_outermost) drop_closed_driver();
    const CUresult result = run_hook(Hook::cuInit, real, [&](Engine&) { return real(); });
    if (result == CUDA_SUCCESS && is_outermost) start_after_init();
    return result;
}
