// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Graphs as text for Graphviz.

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/graph.hpp"
#include "simgpu/driver/launch.hpp"

namespace simgpu::driver {
namespace {

std::string label(const KernelTask& task) {
    const auto& geometry = task.call->geometry;
    return fmt::format("KERNEL\\n{}\\n({},{},{}) x ({},{},{}), {} bytes",
                       task.call->function->info->name, geometry.grid[0], geometry.grid[1],
                       geometry.grid[2], geometry.block[0], geometry.block[1], geometry.block[2],
                       geometry.dynamic_shared_bytes);
}

std::string label(const CopyTask& task) {
    return fmt::format("MEMCPY\\n{:#x} to {:#x}\\n{} x {} x {} bytes", task.request.src,
                       task.request.dst, task.request.width, task.request.height,
                       task.request.depth);
}

std::string label(const MemsetTask& task) {
    return fmt::format("MEMSET\\n{:#x}\\n{} x {} of {} bytes", task.request.dst, task.request.width,
                       task.request.height, task.request.element_bytes);
}

std::string label(const HostTask&) { return "HOST"; }
std::string label(const ChildTask&) { return "GRAPH"; }
std::string label(const EmptyTask&) { return "EMPTY"; }
std::string label(const EventWaitTask&) { return "EVENT_WAIT"; }
std::string label(const EventRecordTask&) { return "EVENT_RECORD"; }
std::string label(const AllocTask&) { return "MEM_ALLOC"; }
std::string label(const FreeTask& task) { return fmt::format("MEM_FREE\\n{:#x}", task.va); }
std::string label(const MemOpTask&) { return "BATCH_MEM_OP"; }
std::string label(const ConditionalTask&) { return "CONDITIONAL"; }

/// One graph as a cluster, those inside behind it.
class Writer {
  public:
    explicit Writer(std::ostream& out) : out_(out) {}

    void write(const Graph& graph) {
        const int number = graphs_++;
        out_ << fmt::format("subgraph cluster_{} {{\nlabel=\"graph_{}\";\n", number, number);
        for (const auto& node : graph.nodes()) {
            const std::string text =
                std::visit([](const auto& task) { return label(task); }, node->task);
            out_ << fmt::format("\"{}\" [shape=\"rectangle\" label=\"{}\\n{}\"];\n",
                                name(number, *node), node->id, text);
        }
        for (const auto& node : graph.nodes()) {
            for (const GraphEdge& edge : node->dependencies)
                out_ << fmt::format("\"{}\" -> \"{}\";\n", name(number, *edge.from),
                                    name(number, *node));
        }
        out_ << "}\n";
        for (const auto& node : graph.nodes()) {
            for (const auto& inside : graphs_inside(node->task)) write(*inside);
        }
    }

  private:
    static std::string name(int graph, const GraphNode& node) {
        return fmt::format("graph_{}_node_{}", graph, node.id);
    }

    std::ostream& out_;
    int graphs_ = 0;
};

CUresult print(CUgraph handle, const char* path) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    SIMGPU_TRY(find_graph(handle, graph));
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ofstream file(path);
    if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
    file << "digraph dot {\n";
    Writer(file).write(*graph);
    file << "}\n";
    return file ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuGraphDebugDotPrint, (CUgraph graph, const char* path, unsigned),
            { return driver::print(graph, path); })
