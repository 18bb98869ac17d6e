// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runner.hpp"

#include <cstdio>
#include <thread>

namespace random_programs {

Runner::Runner(const Program& program, bool verbose) : program_(program), verbose_(verbose) {
    if (!program.steps.empty() && program.steps[0].op == Op::program)
        setting_ = Setting(program.steps[0]);
}

void Runner::expect(Thread& t, cudaError_t error) {
    if (error == cudaSuccess) return;
    t.errors.emplace_back(t.step, error);
    t.digest.word(static_cast<std::uint64_t>(error));
    if (verbose_)
        std::fprintf(stderr, "%s: step %zu, %s: %s\n", program_.name.c_str(), t.step,
                     to_text(program_.steps[t.step]).c_str(), cudaGetErrorName(error));
    cudaGetLastError();
}

void Runner::use_device(Thread& t, unsigned device) {
    if (t.device == device) return;
    expect(t, cudaSetDevice(static_cast<int>(device)));
    t.device = device;
}

void Runner::begin() {
    for (unsigned i = 0; i < setting_.threads; ++i) {
        Thread& t = threads_[i];
        t.index = i;
        for (unsigned k = kStreamsPerThread; k-- > 0;) {
            const unsigned id = i * kStreamsPerThread + k;
            use_device(t, device_of(id));
            if (k == 0 && setting_.first_stream == 1)
                streams_[id] = cudaStreamPerThread;
            else if (k == 0 && setting_.first_stream == 2)
                streams_[id] = cudaStreamLegacy;
            else
                expect(t, cudaStreamCreateWithFlags(
                              &streams_[id], k == 2 ? cudaStreamDefault : cudaStreamNonBlocking));
        }
        for (unsigned device = setting_.devices; device-- > 0;) {
            use_device(t, device);
            expect(t, cudaEventCreateWithFlags(&t.events[device], cudaEventDisableTiming));
        }
        expect(t, cudaEventCreateWithFlags(&t.fork_event, cudaEventDisableTiming));
        // Not blocking: the legacy stream is used meanwhile.
        expect(t, cudaStreamCreateWithFlags(&t.capture_stream, cudaStreamNonBlocking));
        expect(t, cudaStreamCreateWithFlags(&t.fork_stream, cudaStreamNonBlocking));
        expect(t, cudaMallocHost(reinterpret_cast<void**>(&t.pinned), kPinnedBytes));
        t.pageable.resize(kPinnedBytes);
        Buffer& module = buffers_[kSlots + i];
        module.kind = Kind::Module;
        module.is_table = true;
        module.bytes = kTableEntries * sizeof(void*);
        void* at = nullptr;
        expect(t, module_table(i, &at));
        module.at = static_cast<char*>(at);
    }
    if (!setting_.pool) return;
    Thread& t = threads_[0];
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    expect(t, cudaMemPoolCreate(&pool_, &properties));
    int follow = setting_.follow;
    int opportunistic = setting_.opportunistic;
    std::uint64_t threshold = std::uint64_t{setting_.threshold_mib} << 20;
    expect(t, cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseFollowEventDependencies, &follow));
    expect(t, cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowOpportunistic, &opportunistic));
    expect(t, cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold));
    if (setting_.devices < 2) return;
    cudaMemAccessDesc access{{cudaMemLocationTypeDevice, {1}}, cudaMemAccessFlagsProtReadWrite};
    expect(t, cudaMemPoolSetAccess(pool_, &access, 1));
}

void Runner::run() {
    begin();
    std::size_t first = 0;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
        if (program_.steps[i].op != Op::barrier) continue;
        run_section(first, i);
        meet();
        first = i + 1;
    }
    run_section(first, program_.steps.size());
    meet();
    finish();
}

void Runner::run_section(std::size_t first, std::size_t last) {
    std::vector<std::size_t> steps[kThreads];
    for (std::size_t i = first; i < last; ++i) {
        const unsigned slot = program_.steps[i].slot(1);
        steps[owner(slot)].push_back(i);
    }
    std::vector<std::thread> others;
    for (unsigned i = 1; i < setting_.threads; ++i)
        if (!steps[i].empty()) others.emplace_back([&, i] { run_steps(threads_[i], steps[i]); });
    run_steps(threads_[0], steps[0]);
    for (std::thread& other : others) other.join();
}

void Runner::run_steps(Thread& t, const std::vector<std::size_t>& steps) {
    if (t.index != 0) {
        t.device = 0;
        expect(t, cudaSetDevice(0));
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        t.step = steps[i];
        const Step& now = program_.steps[steps[i]];
        if (now.op == Op::graph || now.op == Op::update)
            i = make_graph(t, now, steps, i + 1) - 1;
        else
            step(t, now);
    }
    flush(t);
    // A stream of a thread ends with it.
    if (setting_.first_stream == 1) synchronize(t, t.index * kStreamsPerThread);
}

/// Between sections: slots change threads.
void Runner::meet() {
    ++shift_;
    if (setting_.first_stream != 1) return;
    std::uint32_t ended = 0;
    for (unsigned id = 0; id < kStreams; id += kStreamsPerThread)
        ended |= bit(static_cast<int>(id));
    for (Buffer& buffer : buffers_) forget(buffer, ended);
}

void Runner::finish() {
    Thread& t = threads_[0];
    const unsigned used = setting_.threads * kStreamsPerThread;
    for (unsigned id = used; id-- > 0;) synchronize(t, id);
    t.digest.word(host_calls_);
    std::vector<char> host;
    for (Buffer& buffer : buffers_) {
        forget(buffer, ~std::uint32_t{0});
        if (!buffer.is_data()) continue;
        host.resize(buffer.bytes);
        expect(t, cudaMemcpy(host.data(), buffer.at, host.size(), cudaMemcpyDefault));
        t.digest.add(host.data(), host.size());
    }
    for (Graph& graph : graphs_)
        if (graph.exec) expect(t, cudaGraphExecDestroy(graph.exec));
    for (Buffer& buffer : buffers_)
        if (buffer.exists() && buffer.kind != Kind::Module) give_back(t, buffer);
    for (Cache& cache : cache_) expect(t, cache.release_all());
    if (pool_) expect(t, cudaMemPoolDestroy(pool_));
    for (unsigned id = 0; id < used; ++id)
        if (streams_[id] != cudaStreamPerThread && streams_[id] != cudaStreamLegacy)
            expect(t, cudaStreamDestroy(streams_[id]));
    for (unsigned i = 0; i < setting_.threads; ++i) {
        Thread& each = threads_[i];
        expect(t, cudaStreamDestroy(each.capture_stream));
        expect(t, cudaStreamDestroy(each.fork_stream));
        for (cudaEvent_t event : each.events)
            if (event) expect(t, cudaEventDestroy(event));
        expect(t, cudaEventDestroy(each.fork_event));
        expect(t, cudaFreeHost(each.pinned));
    }
}

std::string Runner::line() const {
    Digest digest;
    std::size_t errors = 0;
    std::string first = "none";
    for (unsigned i = 0; i < setting_.threads; ++i) {
        const Thread& t = threads_[i];
        digest.word(t.digest.value());
        errors += t.errors.size();
        if (first == "none" && !t.errors.empty())
            first = "step " + std::to_string(t.errors[0].first) + " code " +
                    std::to_string(t.errors[0].second);
    }
    char text[200];
    std::snprintf(text, sizeof text, "program %s digest %016llx errors %zu first %s",
                  program_.name.c_str(), static_cast<unsigned long long>(digest.value()), errors,
                  first.c_str());
    return text;
}

bool let_devices_share() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) return false;
    for (int device = 1; device >= 0; --device) {
        if (cudaSetDevice(device) != cudaSuccess) return false;
        const int other = 1 - device;
        if (cudaDeviceEnablePeerAccess(other, 0) != cudaSuccess) return false;
        cudaMemPool_t pool = nullptr;
        const cudaMemAccessDesc access{{cudaMemLocationTypeDevice, {other}},
                                       cudaMemAccessFlagsProtReadWrite};
        if (cudaDeviceGetDefaultMemPool(&pool, device) != cudaSuccess ||
            cudaMemPoolSetAccess(pool, &access, 1) != cudaSuccess)
            return false;
    }
    return true;
}

}  // namespace random_programs
