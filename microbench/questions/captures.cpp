// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What calls beside captures, and on them, answer, and what they do to the capture.
#include <functional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "microbench/device/chunks.hpp"
#include "microbench/device/work_ptx.hpp"
#include "microbench/questions/answers.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kBytes = 2 << 20;

struct Call {
    const char* name;
    std::function<CUresult()> call;
    std::function<void()> undo = [] {};
};

/// A capture of one launch, in a stream of its own.
class Capture {
  public:
    explicit Capture(Session& session)
        : driver_(session.driver()), module_(driver_, kEmptyPtx), stream_(driver_) {}

    void begin(CUstreamCaptureMode mode) {
        BENCH_CU(driver_, cuStreamBeginCapture(stream(), mode));
        BENCH_CU(driver_, cuLaunchKernel(module_.function("bench_empty"), 1, 1, 1, 1, 1, 1, 0,
                                         stream(), nullptr, nullptr));
    }
    CUresult end() {
        CUgraph graph = nullptr;
        const CUresult code = driver_.cuStreamEndCapture(stream(), &graph);
        if (graph != nullptr) driver_.cuGraphDestroy(graph);
        return code;
    }
    CUstream stream() const { return stream_.handle; }
    CUfunction kernel() const { return module_.function("bench_empty"); }

  private:
    const Driver& driver_;
    Module module_;
    Stream stream_;
};

std::string outcome(const Driver& driver, CUresult call, CUresult end) {
    const std::string fate = end == CUDA_SUCCESS
                                 ? "the capture goes on"
                                 : fmt::format("the capture ends with {}", code_name(driver, end));
    return fmt::format("{}; {}", code_name(driver, call), fate);
}

/// The call, by a thread of its own while this one captures.
CUresult call_beside(Session& session, const Call& call, bool relaxed) {
    CUresult code = CUDA_SUCCESS;
    std::thread beside([&] {
        const Driver& driver = session.driver();
        driver.cuCtxSetCurrent(session.context());
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        if (relaxed) driver.cuThreadExchangeStreamCaptureMode(&mode);
        code = call.call();
    });
    beside.join();
    return code;
}

/// Memory, streams and events for the calls, made before any capture.
struct Subjects {
    explicit Subjects(Session& session)
        : driver(session.driver()),
          chunks(session, kBytes, 2),
          stream(driver),
          event(driver),
          device(driver, kBytes),
          host(driver, kBytes) {
        chunks.create(0);
        chunks.make(1);
        BENCH_CU(driver, cuEventRecord(event.handle, stream.handle));
        session.synchronize();
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {session.device()}};
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    const Driver& driver;
    Chunks chunks;  ///< 0 is not mapped, 1 is
    Stream stream;
    Event event;
    DeviceBuffer device;
    PinnedBuffer host;
    CUmemAllocationProp properties{};
    CUmemAccessDesc access{};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr pointer = 0;
    void* pinned = nullptr;
};

/// In this order: what one maps the next unmaps.
std::vector<Call> calls_beside(Subjects& s, CUfunction kernel) {
    const Driver& d = s.driver;
    const auto forget_handle = [&] {
        if (s.handle != 0) d.cuMemRelease(s.handle);
        s.handle = 0;
    };
    const auto forget_pointer = [&] {
        if (s.pointer != 0) d.cuMemFree(s.pointer);
        s.pointer = 0;
    };
    const auto forget_pinned = [&] {
        if (s.pinned != nullptr) d.cuMemFreeHost(s.pinned);
        s.pinned = nullptr;
    };
    const CUdeviceptr free_at = s.chunks.at(0);
    return {
        {"cuMemCreate", [&] { return d.cuMemCreate(&s.handle, kBytes, &s.properties, 0); },
         forget_handle},
        {"cuMemMap",
         [&s, &d, free_at] { return d.cuMemMap(free_at, kBytes, 0, s.chunks.handle(0), 0); },
         [&d, free_at] { d.cuMemUnmap(free_at, kBytes); }},
        {"cuMemSetAccess", [&] { return d.cuMemSetAccess(s.chunks.at(1), kBytes, &s.access, 1); }},
        {"cuMemUnmap", [&] { return d.cuMemUnmap(s.chunks.at(1), kBytes); },
         [&] {
             d.cuMemMap(s.chunks.at(1), kBytes, 0, s.chunks.handle(1), 0);
             d.cuMemSetAccess(s.chunks.at(1), kBytes, &s.access, 1);
         }},
        {"cuMemAlloc", [&] { return d.cuMemAlloc(&s.pointer, kBytes); }, forget_pointer},
        {"cuMemHostAlloc", [&] { return d.cuMemHostAlloc(&s.pinned, kBytes, 0); }, forget_pinned},
        {"cuEventQuery of an event recorded before",
         [&] { return d.cuEventQuery(s.event.handle); }},
        {"cuEventSynchronize of an event recorded before",
         [&] { return d.cuEventSynchronize(s.event.handle); }},
        {"cuStreamQuery of another stream", [&] { return d.cuStreamQuery(s.stream.handle); }},
        {"cuStreamSynchronize of another stream",
         [&] { return d.cuStreamSynchronize(s.stream.handle); }},
        {"cuEventRecord in another stream",
         [&] { return d.cuEventRecord(s.event.handle, s.stream.handle); }},
        {"cuMemcpyHtoDAsync, pinned, in another stream",
         [&] {
             return d.cuMemcpyHtoDAsync(s.device.address, s.host.pointer, kBytes, s.stream.handle);
         }},
        {"cuMemcpyDtoHAsync, pinned, in another stream",
         [&] {
             return d.cuMemcpyDtoHAsync(s.host.pointer, s.device.address, kBytes, s.stream.handle);
         }},
        {"cuLaunchKernel in another stream",
         [&s, &d, kernel] {
             return d.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, s.stream.handle, nullptr,
                                     nullptr);
         }},
        {"cuCtxSynchronize", [&] { return d.cuCtxSynchronize(); }},
    };
}

/// An event that was recorded in a capture which has ended.
void ask_ended_events(Session& session, Answer& answer) {
    const Driver& driver = session.driver();
    Capture capture(session);
    Event event(driver);
    Stream other(driver);
    capture.begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    BENCH_CU(driver, cuEventRecord(event.handle, capture.stream()));
    answer.fact("cuEventQuery of an event of an open capture",
                outcome(driver, driver.cuEventQuery(event.handle), capture.end()));
    capture.begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    BENCH_CU(driver, cuEventRecord(event.handle, capture.stream()));
    capture.end();
    answer.fact("cuEventQuery of an event of an ended capture",
                code_name(driver, driver.cuEventQuery(event.handle)));
    answer.fact("cuEventSynchronize of it",
                code_name(driver, driver.cuEventSynchronize(event.handle)));
    answer.fact("cuStreamWaitEvent for it",
                code_name(driver, driver.cuStreamWaitEvent(other.handle, event.handle, 0)));
    BENCH_CU(driver, cuEventRecord(event.handle, other.handle));
    answer.fact("cuEventSynchronize after it was recorded anew",
                code_name(driver, driver.cuEventSynchronize(event.handle)));
}

void ask_captured_streams(Session& session, Answer& answer) {
    const Driver& driver = session.driver();
    for (const auto& [name, call] : {std::pair<const char*, std::function<CUresult(CUstream)>>{
                                         "cuStreamQuery of a stream that captures",
                                         [&](CUstream s) { return driver.cuStreamQuery(s); }},
                                     {"cuStreamSynchronize of a stream that captures",
                                      [&](CUstream s) { return driver.cuStreamSynchronize(s); }},
                                     {"cuCtxSynchronize while this thread captures",
                                      [&](CUstream) { return driver.cuCtxSynchronize(); }},
                                     {"cuStreamIsCapturing of the legacy stream", [&](CUstream) {
                                          CUstreamCaptureStatus status{};
                                          return driver.cuStreamIsCapturing(nullptr, &status);
                                      }}}) {
        Capture capture(session);
        capture.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
        const CUresult code = call(capture.stream());
        answer.fact(name, outcome(driver, code, capture.end()));
    }
}

/// Last: what it leaves behind is not known.
void ask_destroyed_streams(Session& session, Answer& answer) {
    const Driver& driver = session.driver();
    CUstream stream = nullptr;
    BENCH_CU(driver, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    BENCH_CU(driver, cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    answer.fact("cuStreamDestroy of a stream that captures",
                code_name(driver, driver.cuStreamDestroy(stream)));
    answer.fact("cuCtxSynchronize after that", code_name(driver, driver.cuCtxSynchronize()));
}

}  // namespace

Answer ask_mapping_in_captures(Session& session, const AskOptions&) {
    Answer answer;
    Subjects subjects(session);
    Capture capture(session);
    const auto calls = calls_beside(subjects, capture.kernel());
    std::size_t safe = 0;
    for (const bool relaxed : {false, true}) {
        for (const Call& call : calls) {
            capture.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
            const CUresult code = call_beside(session, call, relaxed);
            const CUresult end = capture.end();
            call.undo();
            session.driver().cuCtxSynchronize();
            answer.fact(fmt::format("{}{}", call.name, relaxed ? ", RELAXED" : ""),
                        outcome(session.driver(), code, end));
            if (relaxed && code == CUDA_SUCCESS && end == CUDA_SUCCESS) ++safe;
        }
    }
    answer.in_short =
        fmt::format("{} of {} calls are safe for a RELAXED thread", safe, calls.size());
    return answer;
}

Answer ask_capture_codes(Session& session, const AskOptions&) {
    Answer answer;
    ask_ended_events(session, answer);
    ask_captured_streams(session, answer);
    ask_destroyed_streams(session, answer);
    answer.in_short = fmt::format("{} codes", answer.facts.size());
    return answer;
}

}  // namespace libswap::bench
