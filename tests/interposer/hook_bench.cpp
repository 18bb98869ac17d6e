// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "look.hpp"

// What the hooks add to a launch of 16 parameters, 8 of them buffers that libswap manages, and to
// an allocation with its free. libnoop_calls.so stands between libswap and the driver with calls
// that do nothing, so that what is measured is ours:
//   LD_PRELOAD=build/libswap.so:build/tests/interposer/libnoop_calls.so scripts/simgpu --
//   build/tests/interposer/hook_bench
// Everything fits then. With LIBSWAP_BUDGET=24MiB it does not, and launches pin what they name.

namespace {

constexpr int kBuffers = 8;
constexpr int kParameters = 16;

const char kModule[] = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry libswap_launch_bench(
    .param .u64 a0, .param .u64 a1, .param .u64 a2, .param .u64 a3,
    .param .u64 a4, .param .u64 a5, .param .u64 a6, .param .u64 a7,
    .param .u64 n0, .param .u64 n1, .param .u64 n2, .param .u64 n3,
    .param .u32 n4, .param .u32 n5, .param .f32 n6, .param .f32 n7)
{
    ret;
}
)";

void check(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(result));
    std::exit(1);
}
#define CHECK(call) check((call), #call)

struct Kernel {
    CUfunction function = nullptr;
    CUstream stream = nullptr;
    std::uint64_t values[kParameters] = {};
    void* parameters[kParameters] = {};
};

Kernel prepare() {
    Kernel kernel;
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, kModule));
    CHECK(cuModuleGetFunction(&kernel.function, module, "libswap_launch_bench"));
    CHECK(cuStreamCreate(&kernel.stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < kParameters; ++i) {
        kernel.values[i] = 1000003U * static_cast<unsigned>(i);
        kernel.parameters[i] = &kernel.values[i];
    }
    for (int i = 0; i < kBuffers; ++i) {
        CUdeviceptr buffer = 0;
        CHECK(cuMemAlloc(&buffer, 2 << 20));
        kernel.values[i] = buffer;
    }
    return kernel;
}

Kernel& the_kernel() {
    static Kernel kernel = prepare();
    return kernel;
}

using Launch = decltype(&cuLaunchKernel);
void launch_by(benchmark::State& state, Launch launch) {
    Kernel& kernel = the_kernel();
    for (auto step : state)
        launch(kernel.function, 1, 1, 1, 32, 1, 1, 0, kernel.stream, kernel.parameters, nullptr);
    CHECK(cuStreamSynchronize(kernel.stream));
    state.SetLabel(look_at(launch));
}

using Allocate = decltype(&cuMemAlloc);
using Free = decltype(&cuMemFree);
void allocate_and_free_by(benchmark::State& state, Allocate allocate, Free free) {
    the_kernel();
    const auto bytes = static_cast<std::size_t>(state.range(0));
    CUdeviceptr buffer = 0;
    // What was freed lies ready.
    CHECK(allocate(&buffer, bytes));
    CHECK(free(buffer));
    CHECK(cuCtxSynchronize());
    for (auto step : state) {
        allocate(&buffer, bytes);
        free(buffer);
    }
    state.SetLabel(look_at(allocate));
}

template <class Function>
Function noop(const char* name) {
    void* library = dlopen("libnoop_calls.so", RTLD_NOW | RTLD_NOLOAD);
    return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

/// As the program calls it: the hook, where libswap is preloaded.
void launch_as_linked(benchmark::State& state) { launch_by(state, &cuLaunchKernel); }
void allocate_and_free_as_linked(benchmark::State& state) {
    allocate_and_free_by(state, &cuMemAlloc, &cuMemFree);
}

/// The function that does nothing, for what the call itself costs.
void launch_of_nothing(benchmark::State& state) {
    const auto launch = noop<Launch>("cuLaunchKernel");
    if (!launch) return state.SkipWithError("libnoop_calls.so is not preloaded");
    launch_by(state, launch);
}
void allocate_and_free_nothing(benchmark::State& state) {
    const auto allocate = noop<Allocate>("cuMemAlloc_v2");
    const auto free = noop<Free>("cuMemFree_v2");
    if (!allocate || !free) return state.SkipWithError("libnoop_calls.so is not preloaded");
    allocate_and_free_by(state, allocate, free);
}

/// On a machine with other work the least of many short runs is the time that the code takes.
void short_runs(benchmark::internal::Benchmark* bench) {
    bench->Repetitions(40)->MinTime(0.005)->ReportAggregatesOnly(true)->ComputeStatistics(
        "min", [](const std::vector<double>& times) {
            return *std::min_element(times.begin(), times.end());
        });
}
BENCHMARK(launch_as_linked)->Apply(short_runs);
BENCHMARK(launch_of_nothing)->Apply(short_runs);
BENCHMARK(allocate_and_free_as_linked)
    ->Arg(4 << 10)
    ->Arg(2 << 20)
    ->Arg(40 << 20)
    ->Apply(short_runs);
BENCHMARK(allocate_and_free_nothing)->Arg(2 << 20)->Apply(short_runs);

}  // namespace

BENCHMARK_MAIN();
