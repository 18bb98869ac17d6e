// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Steps that capture other steps, and launch what came of it.

#include <algorithm>

#include "runner.hpp"

namespace random_programs {
namespace {

bool can_be_captured(Op op) {
    switch (op) {
        case Op::mix:
        case Op::in:
        case Op::copy:
        case Op::set:
        case Op::tmix:
        case Op::scratch:
        case Op::host:
        case Op::misuse:
            return true;
        default:
            return false;
    }
}

}  // namespace

/// Captures the steps that follow, and answers which is the next.
std::size_t Runner::make_graph(Thread& t, const Step& s, const std::vector<std::size_t>& steps,
                               std::size_t next) {
    constexpr cudaStreamCaptureMode kModes[] = {cudaStreamCaptureModeRelaxed,
                                                cudaStreamCaptureModeThreadLocal,
                                                cudaStreamCaptureModeGlobal};
    const std::size_t last = std::min(next + s.at(3) % 16, steps.size());
    const auto mode = kModes[s.at(2) % (setting_.threads == 1 ? 3 : 2)];
    Graph& graph = graphs_[s.slot(1) % kGraphs];
    if ((s.op == Op::graph) == (graph.exec != nullptr)) return last;

    Capture capture;
    // What a table points to may be other memory at the launch: nothing runs beside it.
    capture.may_fork =
        std::none_of(steps.begin() + static_cast<std::ptrdiff_t>(next),
                     steps.begin() + static_cast<std::ptrdiff_t>(last),
                     [&](std::size_t i) { return program_.steps[i].op == Op::tmix; });
    use_device(t, 0);
    expect(t, cudaStreamBeginCapture(t.capture_stream, mode));
    t.capture = &capture;
    for (; next < last; ++next) {
        t.step = steps[next];
        if (can_be_captured(program_.steps[t.step].op)) step(t, program_.steps[t.step]);
    }
    join_fork(t);
    t.capture = nullptr;
    cudaGraph_t captured = nullptr;
    expect(t, cudaStreamEndCapture(t.capture_stream, &captured));
    if (captured) {
        std::size_t nodes = 0;
        expect(t, cudaGraphGetNodes(captured, nullptr, &nodes));
        t.digest.word(nodes);
        cudaError_t result = cudaSuccess;
        if (s.op == Op::graph) {
            result = cudaGraphInstantiate(&graph.exec, captured, 0);
        } else {
            cudaGraphExecUpdateResultInfo info{};
            result = cudaGraphExecUpdate(graph.exec, captured, &info);
        }
        expect(t, result);
        if (result == cudaSuccess) graph.reach = std::move(capture);
        expect(t, cudaGraphDestroy(captured));
    }
    for (void* memory : t.allowed_in_capture) expect(t, cudaFree(memory));
    t.allowed_in_capture.clear();
    return last;
}

/// What a launch touches now; with a region of no bytes if something of it is gone.
Regions Runner::reach_of(const Capture& capture) const {
    Regions regions = capture.regions;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const Buffer& buffer = buffers_[regions[i].slot];
        if (!buffer.exists() || buffer.generation != capture.generations[i]) return {{}};
    }
    for (const auto& [slot, bytes] : capture.tables) {
        const auto behind = behind_table(slot, bytes);
        if (!behind) return {{}};
        regions.insert(regions.end(), behind->begin(), behind->end());
    }
    return regions;
}

void Runner::launch_graph(Thread& t, const Step& s) {
    const Graph& graph = graphs_[s.slot(1) % kGraphs];
    if (t.capture || !graph.exec || device_of(static_cast<unsigned>(stream_of(t, s))) != 0) return;
    const Regions regions = reach_of(graph.reach);
    for (unsigned i = 0; i < 1 + s.at(2) % 3; ++i)
        if (const auto stream = order(t, s, regions))
            expect(t, cudaGraphLaunch(graph.exec, *stream));
}

void Runner::drop_graph(Thread& t, const Step& s) {
    Graph& graph = graphs_[s.slot(1) % kGraphs];
    if (t.capture || !graph.exec) return;
    expect(t, cudaGraphExecDestroy(graph.exec));
    graph = {};
}

}  // namespace random_programs
