// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Streams, and what orders them: nothing that touches the same memory runs at the same time.

#include <algorithm>
#include <thread>

#include "runner.hpp"

namespace random_programs {

unsigned Runner::device_of(unsigned stream) const {
    return setting_.devices > 1 && stream % kStreamsPerThread == kStreamsPerThread - 1 ? 1 : 0;
}

int Runner::stream_of(const Thread& t, const Step& step) const {
    return static_cast<int>(t.index * kStreamsPerThread + step.stream() % kStreamsPerThread);
}

/// The current device becomes that of `stream`, which waits for the others.
void Runner::wait_for(Thread& t, std::uint32_t streams, int stream) {
    for (unsigned id = 0; id < kStreams; ++id) {
        if (!(streams & bit(static_cast<int>(id)))) continue;
        const cudaEvent_t event = t.events[device_of(id)];
        // The thread's own stream and the legacy one are those of the current device.
        use_device(t, device_of(id));
        expect(t, cudaEventRecord(event, streams_[id]));
        use_device(t, device_of(static_cast<unsigned>(stream)));
        expect(t, cudaStreamWaitEvent(streams_[stream], event, 0));
    }
    use_device(t, device_of(static_cast<unsigned>(stream)));
}

void Runner::synchronize(Thread& t, unsigned stream) {
    use_device(t, device_of(stream));
    expect(t, cudaStreamSynchronize(streams_[stream]));
}

void Runner::settle(Thread& t, std::uint32_t streams) {
    for (unsigned id = 0; id < kStreams; ++id)
        if (streams & bit(static_cast<int>(id))) synchronize(t, id);
}

std::optional<cudaStream_t> Runner::order(Thread& t, const Step& step, const Regions& regions) {
    for (const Region& region : regions)
        if (region.bytes == 0) return std::nullopt;
    if (t.capture) return order_captured(t, step.stream() % 2 && t.capture->may_fork, regions);
    const int id = stream_of(t, step);
    wait_for(t, touch(buffers_, regions, id), id);
    return streams_[id];
}

/// While a stream is captured the order is that of the steps, but for one at a time that runs
/// beside those behind it with which it shares nothing.
cudaStream_t Runner::order_captured(Thread& t, bool forks, const Regions& regions) {
    Capture& capture = *t.capture;
    for (const Region& region : regions) {
        capture.regions.push_back(region);
        capture.generations.push_back(buffers_[region.slot].generation);
    }
    const bool conflicts = std::any_of(regions.begin(), regions.end(), [&](const Region& a) {
        return std::any_of(capture.forked.begin(), capture.forked.end(),
                           [&](const Region& b) { return a.conflicts(b); });
    });
    if (conflicts || forks) join_fork(t);
    if (!forks || regions.empty()) return t.capture_stream;
    const cudaError_t recorded = cudaEventRecord(t.fork_event, t.capture_stream);
    expect(t, recorded);
    // A capture that was broken takes no other stream in: what is submitted there would run.
    if (recorded != cudaSuccess) return t.capture_stream;
    capture.forked = regions;
    expect(t, cudaStreamWaitEvent(t.fork_stream, t.fork_event, 0));
    return t.fork_stream;
}

void Runner::join_fork(Thread& t) {
    if (t.capture->forked.empty()) return;
    t.capture->forked.clear();
    expect(t, cudaEventRecord(t.fork_event, t.fork_stream));
    expect(t, cudaStreamWaitEvent(t.capture_stream, t.fork_event, 0));
}

void Runner::remake_stream(Thread& t, const Step& step) {
    const int id = stream_of(t, step);
    cudaStream_t& stream = streams_[id];
    if (t.capture || stream == cudaStreamPerThread || stream == cudaStreamLegacy) return;
    const cudaStream_t old = stream;
    use_device(t, device_of(static_cast<unsigned>(id)));
    expect(t, cudaStreamCreateWithFlags(
                  &stream, step.at(2) % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
    // With work in flight: it goes on, and what comes is ordered behind it.
    const cudaEvent_t event = t.events[t.device];
    expect(t, cudaEventRecord(event, old));
    expect(t, cudaStreamWaitEvent(stream, event, 0));
    expect(t, cudaStreamDestroy(old));
}

void Runner::wait(Thread& t, const Step& step) {
    if (t.capture) return;
    const int id = stream_of(t, step);
    use_device(t, device_of(static_cast<unsigned>(id)));
    const cudaEvent_t event = t.events[t.device];
    const auto poll = [&](auto&& query) {
        cudaError_t result = cudaErrorNotReady;
        while ((result = query()) == cudaErrorNotReady) std::this_thread::yield();
        cudaGetLastError();
        expect(t, result);
    };
    switch (step.at(2) % 5) {
        case 0:
            expect(t, cudaStreamSynchronize(streams_[id]));
            break;
        case 1:
            expect(t, cudaDeviceSynchronize());
            break;
        case 2:
            expect(t, cudaEventRecord(event, streams_[id]));
            poll([&] { return cudaEventQuery(event); });
            break;
        case 3:
            poll([&] { return cudaStreamQuery(streams_[id]); });
            break;
        default:
            expect(t, cudaEventRecord(event, streams_[id]));
            expect(t, cudaEventSynchronize(event));
    }
}

}  // namespace random_programs
