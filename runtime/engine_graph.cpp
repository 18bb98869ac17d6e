// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Captures and graphs (protocol rule 17). What is captured does not run, so nothing is brought for
// it; what a graph reaches is read when it is instantiated, and is resident at each of its
// launches.

#include "runtime/engine_impl.hpp"

namespace libswap {

CUresult Engine::begin_capture(CUstream, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        if (device) device->begin_capture();
        impl_->for_each_device([](Device& any) { any.note_captured(); });
        const CUresult result = real();
        if (device && result != CUDA_SUCCESS) device->end_capture();
        return result;
    });
}

CUresult Engine::end_capture(CUstream, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        const CUresult result = real();
        // A capture that failed is over as well; only a call that named none leaves one open.
        if (device && device->capturing() && result != CUDA_ERROR_ILLEGAL_STATE &&
            result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD && result != CUDA_ERROR_INVALID_VALUE)
            device->end_capture();
        return result;
    });
}

CUresult Engine::graph_instantiate(CUgraphExec* exec, CUgraph graph, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        const CUresult result = impl_->with_room(device, 0, real);
        if (result == CUDA_SUCCESS && exec && device) impl_->read_graph(*device, *exec, graph);
        return result;
    });
}

CUresult Engine::graph_update(CUgraphExec exec, CUgraph graph, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        const CUresult result = real();
        if (result == CUDA_SUCCESS && device) impl_->read_graph(*device, exec, graph);
        return result;
    });
}

void Engine::Impl::read_graph(Device& device, CUgraphExec exec, CUgraph graph) {
    if (!GraphReader::possible(driver)) return graphs.destroyed(exec);
    GraphReader reader = graph_reader(device);
    graphs.instantiated(exec, graph, reader);
}

GraphReader Engine::Impl::graph_reader(Device& device) {
    GraphReader reader(driver, device.functions());
    for_each_device([&](Device& any) {
        const auto [low, high] = any.addresses();
        reader.look_for(low, high);
    });
    return reader;
}

CUresult Engine::graph_child_set(CUgraphExec exec, CUgraph child, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        const CUresult result = real();
        if (result != CUDA_SUCCESS || !device || !GraphReader::possible(impl_->driver))
            return result;
        GraphReader reader = impl_->graph_reader(*device);
        impl_->graphs.child_changed(exec, child, reader);
        return result;
    });
}

CUresult Engine::graph_node_set(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params,
                                RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        const CUresult result = real();
        if (result == CUDA_SUCCESS && device)
            impl_->graphs.node_changed(exec, node, impl_->graph_reader(*device).any(params));
        return result;
    });
}

CUresult Engine::graph_destroy(CUgraphExec exec, RealCall real) noexcept {
    return guarded([&] {
        impl_->graphs.destroyed(exec);
        return real();
    });
}

void Engine::graph_conditional(CUgraphNode node, const CUgraph* bodies,
                               std::size_t count) noexcept {
    guarded([&] {
        impl_->graphs.conditional(node, bodies, count);
        return CUDA_SUCCESS;
    });
}

/// What one launch of a graph has to know of it.
struct GraphRun {
    std::vector<FunctionInfo*> functions;
    std::vector<GraphCopy> copies;
    std::vector<GraphWord> words;
    bool known = false;
    bool allocates = false;
};

void Engine::Impl::name_graph(Device& device, OperationParts& parts, const GraphExec& exec,
                              GraphRun* run) {
    run->known = true;
    const bool many = many_devices.load(std::memory_order_relaxed);
    Operation& op = parts.of(device);
    op.signature = mix_signature(static_cast<std::uint64_t>(OpKind::Graph), exec.serial);
    for (const auto& [node, reach] : exec.nodes) {
        run->known &= reach.known;
        run->allocates |= reach.allocates;
        if (reach.function) {
            run->functions.push_back(reach.function);
            op.explained &= reach.function->trusted();
        }
        run->copies.insert(run->copies.end(), reach.copies.begin(), reach.copies.end());
        run->words.insert(run->words.end(), reach.words.begin(), reach.words.end());
        for (const GraphReach& at : reach.reaches) {
            Device* const there = many ? owner(at.address) : &device;
            if (!there) continue;
            Operation& part = parts.of(*there);
            if (at.bytes)
                there->name_range(part, at.address, at.bytes);
            else
                there->name_address(part, at.address);
        }
    }
}

/// What tables of the graph may point at while it runs: before any of its nodes, whose order is not
/// looked at, or after one of them.
void Engine::Impl::name_writes(OperationParts& parts, const GraphRun& run) {
    const auto name = [&](std::uint64_t address) { name_word(parts, nullptr, address); };
    for (const GraphWord& word : run.words) name(word.value);
    std::vector<std::uint64_t> targets;
    for (const GraphCopy& copy : run.copies) {
        // The payloads are what they are now: whoever changes them later races with the graph.
        for (std::size_t i = 0; copy.from_host && i < copy.src.count(); ++i)
            for_each_pointer(reinterpret_cast<const void*>(copy.src.row(i)), copy.src.row_bytes,
                             copy.dst.row(i),
                             [&](std::size_t, std::uint64_t address) { name(address); });
        if (!copy.from_host && edges.any())
            edges.for_each(copy.src.base, copy.src.span_bytes(),
                           [&](std::uint64_t target) { targets.push_back(target); });
    }
    for (const std::uint64_t target : targets) name(target);
}

/// What they may point at when it is done. Of a slot that several nodes write, each of them.
void Engine::Impl::note_writes(const GraphRun& run) {
    std::vector<PointerEdges::Edge> carried;
    for (const GraphCopy& copy : run.copies)
        if (!copy.from_host) edges.carried(copy.dst, copy.src, &carried);
    for (const GraphCopy& copy : run.copies) edges.overwrite(copy.dst);
    for (const GraphWord& word : run.words) edges.overwrite(word.dst, sizeof word.value);
    for (const auto& [slot, target] : carried) edges.add(slot, target);
    for (const GraphWord& word : run.words) note_pointers(word.dst, &word.value, sizeof word.value);
    for (const GraphCopy& copy : run.copies)
        for (std::size_t i = 0; copy.from_host && i < copy.src.count(); ++i)
            note_pointers(copy.dst.row(i), reinterpret_cast<const void*>(copy.src.row(i)),
                          copy.src.row_bytes);
    // A copy of a copy.
    bool more = edges.any();
    for (std::size_t round = 1; more && round < run.copies.size(); ++round) {
        more = false;
        for (const GraphCopy& copy : run.copies)
            if (!copy.from_host) more |= edges.add_copies(copy.dst, copy.src);
    }
}

CUresult Engine::graph_launch(CUgraphExec exec, CUstream stream, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        if (!device) return real();
        // Launched into a capture it becomes part of another graph.
        if (device->capturing() && device->is_captured(stream)) return real();
        GraphRun run;
        OperationParts parts;
        Operation& op = parts.of(*device);
        op.kind = OpKind::Graph;
        op.signature = static_cast<std::uint64_t>(OpKind::Graph);
        (void)impl_->graphs.visit(
            exec, [&](const GraphExec& known) { impl_->name_graph(*device, parts, known, &run); });
        impl_->name_writes(parts, run);
        impl_->note_writes(run);
        device->name_globals(op);
        if (!run.known) {
            op.explained = false;
            device->name_everything(op);
        }
        if (impl_->many_devices.load(std::memory_order_relaxed))
            parts.follow_foreign([&](std::uint64_t address) { return impl_->owner(address); });
        Counters::add(device->counters().graph_launches);
        const auto with_room = [&] { return impl_->with_room(device, 0, real); };
        const CUresult result = parts.run(device, context, stream, with_room);
        if (result != CUDA_SUCCESS) return result;
        for (FunctionInfo* function : run.functions)
            function->launches.fetch_add(1, std::memory_order_relaxed);
        if (run.allocates) device->look_at_graph_memory();
        return result;
    });
}

}  // namespace libswap
