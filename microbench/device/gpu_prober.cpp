// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/device/gpu_prober.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "microbench/device/probe_ptx.hpp"
#include "microbench/hierarchy/statistics.hpp"

namespace libswap::bench {

namespace {

constexpr std::size_t kOverheadLooks = 64;
constexpr std::size_t kHeaderWords = 2;

std::size_t index_of(LoadPath path) { return static_cast<std::size_t>(path); }

}  // namespace

GpuProber::GpuProber(Session& session, std::uint64_t bytes)
    : session_(session),
      memory_(session.driver(), bytes + kAlignment),
      sequence_(session.driver(), kMostSamples * sizeof(std::uint64_t)),
      out_(session.driver(), (kHeaderWords + 2 * kMostSamples) * sizeof(std::uint32_t)),
      module_(session.driver(), probe_ptx().c_str()) {
    constexpr std::array<const char*, 3> kNames{"ca", "cg", "nc"};  // by LoadPath
    for (std::size_t k = 0; k < kNames.size(); ++k) {
        sweeps_[k] = module_.function((std::string("bench_sweep_") + kNames[k]).c_str());
        probes_[k] = module_.function((std::string("bench_probe_") + kNames[k]).c_str());
    }
    skipped_bytes_ = (kAlignment - memory_.address % kAlignment) % kAlignment;
    measure_overhead();
}

GpuProber::~GpuProber() = default;

void GpuProber::launch(CUfunction function, void** parameters) {
    BENCH_CU(session_.driver(),
             cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, session_.stream(), parameters, nullptr));
}

template <typename T>
void GpuProber::read_back(T* into, std::size_t count) {
    BENCH_CU(session_.driver(), cuStreamSynchronize(session_.stream()));
    BENCH_CU(session_.driver(), cuMemcpyDtoH(into, out_.address, count * sizeof(T)));
}

void GpuProber::measure_overhead() {
    void* parameters[] = {&out_.address};
    launch(module_.function("bench_overhead"), parameters);
    std::vector<std::uint32_t> cycles(kOverheadLooks);
    read_back(cycles.data(), cycles.size());
    overhead_cycles_ = median({cycles.begin() + 1, cycles.end()});
}

std::uint32_t GpuProber::without_overhead(std::uint32_t cycles) const {
    const auto overhead = static_cast<std::uint32_t>(std::lround(overhead_cycles_));
    return cycles > overhead ? cycles - overhead : 0;
}

SweepResult GpuProber::sweep(const Sweep& sweep) {
    SweepResult result;
    if (!error_.empty()) return result;
    CUdeviceptr base = memory_.address + skipped_bytes_ + sweep.start_bytes;
    std::uint64_t length = sweep.length_bytes;
    std::uint64_t step = sweep.step_bytes;
    std::uint32_t skip = sweep.skip;
    std::uint32_t count = sweep.count;
    std::uint32_t threshold =
        sweep.threshold_cycles + static_cast<std::uint32_t>(std::lround(overhead_cycles_));
    std::uint32_t companion = sweep.companion_bytes;
    std::uint32_t zero = 0;
    void* parameters[] = {&base,      &length,    &step, &skip,        &count,
                          &threshold, &companion, &zero, &out_.address};
    try {
        launch(sweeps_[index_of(sweep.path)], parameters);
        std::vector<std::uint32_t> words(kHeaderWords + 2 * kMostSamples);
        read_back(words.data(), words.size());
        result.flagged = words[0];
        const std::size_t told = std::min<std::size_t>(words[0], kMostSamples);
        for (std::size_t k = 0; k < told; ++k) {
            const std::size_t at = kHeaderWords + 2 * k;
            result.samples.push_back({words[at], without_overhead(words[at + 1])});
        }
    } catch (const CudaError& failure) {
        error_ = failure.what();
    }
    return result;
}

std::vector<std::uint32_t> GpuProber::probe(LoadPath path, std::span<const std::uint64_t> offsets,
                                            std::uint32_t companion_bytes) {
    if (!error_.empty() || offsets.size() > kMostSamples) return {};
    CUdeviceptr base = memory_.address + skipped_bytes_;
    auto count = static_cast<std::uint32_t>(offsets.size());
    std::uint32_t zero = 0;
    void* parameters[] = {&base, &sequence_.address, &count, &companion_bytes,
                          &zero, &out_.address};
    std::vector<std::uint32_t> cycles(count);
    try {
        BENCH_CU(session_.driver(),
                 cuMemcpyHtoD(sequence_.address, offsets.data(), offsets.size_bytes()));
        launch(probes_[index_of(path)], parameters);
        read_back(cycles.data(), cycles.size());
    } catch (const CudaError& failure) {
        error_ = failure.what();
        return {};
    }
    for (std::uint32_t& c : cycles) c = without_overhead(c);
    return cycles;
}

}  // namespace libswap::bench
