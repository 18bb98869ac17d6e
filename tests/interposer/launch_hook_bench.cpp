// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <benchmark/benchmark.h>
#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "look.hpp"

// What the hook adds to a launch of 16 parameters, 8 of them buffers that libswap manages.
// libnoop_launch.so stands between libswap and the driver with a cuLaunchKernel that does nothing,
// so that what is measured is ours:
//   LD_PRELOAD=build/libswap.so:build/tests/interposer/libnoop_launch.so scripts/simgpu --
//   build/tests/interposer/launch_hook_bench

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

using Launch = decltype(&cuLaunchKernel);

void launch_by(benchmark::State& state, Launch launch) {
    static Kernel kernel = prepare();
    for (auto step : state)
        launch(kernel.function, 1, 1, 1, 32, 1, 1, 0, kernel.stream, kernel.parameters, nullptr);
    CHECK(cuStreamSynchronize(kernel.stream));
    state.SetLabel(look_at(launch));
}

/// As the program calls it: the hook, where libswap is preloaded.
void launch_as_linked(benchmark::State& state) { launch_by(state, &cuLaunchKernel); }

/// The function that does nothing, for what the call itself costs.
void launch_of_nothing(benchmark::State& state) {
    void* library = dlopen("libnoop_launch.so", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return state.SkipWithError("libnoop_launch.so is not preloaded");
    launch_by(state, reinterpret_cast<Launch>(dlsym(library, "cuLaunchKernel")));
}

BENCHMARK(launch_as_linked)->Repetitions(5)->ReportAggregatesOnly(true);
BENCHMARK(launch_of_nothing)->Repetitions(5)->ReportAggregatesOnly(true);

}  // namespace

BENCHMARK_MAIN();
