// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/gpu.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "simgpu/driver/cache_timing.hpp"
#include "simgpu/driver/calls.hpp"
#include "simgpu/driver/environment.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/pools.hpp"
#include "simgpu/driver/statistics.hpp"

namespace simgpu::driver {

namespace {

/// Everything that cuInit makes; leaked, since calls may come until the very end of the process.
struct Process {
    Options options;
    std::unique_ptr<Machine> machine;
    std::vector<std::unique_ptr<Gpu>> gpus;
};

std::atomic<Process*> g_process{nullptr};

void at_exit() {
    write_statistics();
    deinitialise();
    machine().park();
}

void after_fork_in_child() {
    Process* process = g_process.load();
    if (process == nullptr) return;
    // A context does not survive fork: the driver answers NOT_INITIALIZED to all calls of the
    // child.
    process->machine->after_fork_in_child();
    refuse_after_fork();
}

Process* build() {
    auto process = std::make_unique<Process>();
    process->options = read_options();
    if (process->options.devices.empty()) return nullptr;
    MachineConfig config = machine_config(process->options);
    set_up_cache_timing(config.profile, config.memory.device_count);
    std::string delays = std::exchange(config.delays, "");
    process->machine = std::make_unique<Machine>(config);
    std::string error;
    if (!delays.empty() && !process->machine->set_delays(delays, &error))
        say("SIMGPU_DELAYS: {}, ignored", error);
    for (int number : process->options.devices) {
        const int ordinal = static_cast<int>(process->gpus.size());
        process->gpus.push_back(std::make_unique<Gpu>(ordinal, number));
    }
    return process.release();
}

}  // namespace

Gpu::Gpu(int ordinal_of, int number_of)
    : ordinal(ordinal_of),
      number(number_of),
      primary(*this),
      pools(std::make_unique<Pools>(*this)) {}
Gpu::~Gpu() = default;

CUresult initialise(unsigned flags) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    if (initialised()) return CUDA_SUCCESS;
    Process* process = build();
    if (process == nullptr) return CUDA_ERROR_NO_DEVICE;
    g_process.store(process, std::memory_order_release);
    std::atexit(at_exit);
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    return CUDA_SUCCESS;
}

bool initialised() noexcept { return g_process.load(std::memory_order_acquire) != nullptr; }

Machine& machine() { return *g_process.load(std::memory_order_acquire)->machine; }

const Options& options() { return g_process.load(std::memory_order_acquire)->options; }

int gpu_count() { return static_cast<int>(g_process.load(std::memory_order_acquire)->gpus.size()); }

Gpu* gpu_at(int ordinal) {
    auto& gpus = g_process.load(std::memory_order_acquire)->gpus;
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= gpus.size()) return nullptr;
    return gpus[static_cast<std::size_t>(ordinal)].get();
}

CUresult find_gpu(CUdevice device, Gpu*& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = gpu_at(device);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace simgpu::driver
