// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>

#include "tests/simgpu/exec/flat_memory.hpp"

namespace simgpu::exec {

namespace {

ptx::Module load_kernels() {
    std::ifstream file(std::string(SIMGPU_TEST_PTX) + "/kernels.compute_80.ptx");
    std::stringstream text;
    text << file.rdbuf();
    return std::move(ptx::parse(text.str()).value());
}

void count(benchmark::State& state, std::uint64_t instructions) {
    state.counters["thread_instructions"] =
        benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}

void launch_repeatedly(benchmark::State& state, const char* name, LaunchGeometry geometry,
                       const ptx::Module& module, FlatMemory& memory, const Params& parameters) {
    const ptx::SymbolAddresses none;
    std::uint64_t instructions = 0;
    for (auto _ : state) {
        const RunResult result =
            run(module, *module.find_kernel(name), geometry, parameters.bytes(), memory, none);
        if (!result.ok()) state.SkipWithError("the kernel failed");
        instructions += result.counters.thread_instructions;
    }
    count(state, instructions);
}

void saxpy(benchmark::State& state) {
    const ptx::Module module = load_kernels();
    FlatMemory memory;
    const int n = 1 << 18;
    const auto x = memory.upload(std::vector<float>(n, 1.0F));
    const auto y = memory.upload(std::vector<float>(n, 2.0F));
    launch_repeatedly(state, "saxpy", {{n / 256, 1, 1}, {256, 1, 1}, 0}, module, memory,
                      params(y, x, 1.5F, n));
}
BENCHMARK(saxpy);

void block_reduction(benchmark::State& state) {
    const ptx::Module module = load_kernels();
    FlatMemory memory;
    const int n = 1 << 18;
    const auto in = memory.upload(std::vector<float>(n, 1.0F));
    const auto out = memory.allocate(4096);
    launch_repeatedly(state, "block_sum", {{64, 1, 1}, {256, 1, 1}, 0}, module, memory,
                      params(in, out, n));
}
BENCHMARK(block_reduction);

void tree_reduction(benchmark::State& state) {
    const ptx::Module module = load_kernels();
    FlatMemory memory;
    const int n = 1 << 18;
    const auto in = memory.upload(std::vector<float>(n, 1.0F));
    const auto out = memory.allocate(4096);
    launch_repeatedly(state, "tree_sum", {{n / 256, 1, 1}, {256, 1, 1}, 1024}, module, memory,
                      params(in, out));
}
BENCHMARK(tree_reduction);

void tiled_matmul(benchmark::State& state) {
    const ptx::Module module = load_kernels();
    FlatMemory memory;
    const int n = 128;
    const auto a = memory.upload(std::vector<float>(n * n, 1.0F));
    const auto b = memory.upload(std::vector<float>(n * n, 1.0F));
    const auto c = memory.allocate(n * n * 4);
    launch_repeatedly(state, "matmul_tiled", {{n / 16, n / 16, 1}, {16, 16, 1}, 0}, module, memory,
                      params(a, b, c, n, n, n));
}
BENCHMARK(tiled_matmul);

void parse_module(benchmark::State& state) {
    std::ifstream file(std::string(SIMGPU_TEST_PTX) + "/kernels.compute_80.ptx");
    std::stringstream stream;
    stream << file.rdbuf();
    const std::string text = stream.str();
    for (auto _ : state) benchmark::DoNotOptimize(ptx::parse(text));
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(parse_module);

}  // namespace

}  // namespace simgpu::exec

BENCHMARK_MAIN();
