// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/cudnn_graphs.hpp"

#include <algorithm>

namespace libswap {
namespace {

// Numbers of cudnnBackendAttributeName_t, the same in cuDNN 8 and 9.
enum Attribute : int {
    kHeuristicsGraph = 201,
    kHeuristicsResults = 202,
    kConfigEngine = 300,
    kPlanConfig = 401,
    kForwardY = 705,
    kBackwardDataDx = 710,
    kBackwardFilterDw = 715,
    kGraphOperations = 801,
    kTensorId = 906,
    kPackIds = 1000,
    kPackPointers = 1001,
    kPackWorkspace = 1003,
    kEngineGraph = 1300,
};

/// Attributes of operations that are tensors which the operation writes.
constexpr int kOutputs[] = {
    kForwardY,
    kBackwardDataDx,
    kBackwardFilterDw,
    753,
    756,  // pointwise: Y, DX
    773,
    774,  // statistics: sum, sum of squares
    788,
    789,
    790,
    791,
    792,
    793,   // finalized statistics
    1522,  // product: C
    1611,  // reduction: Y
    1626,
    1627,
    1628,
    1629,
    1630,  // batch normalisation's weights, backward
    1711,
    1712,
    1720,  // resampling: Y, indices; DX
    1803,  // concatenation
    1904,  // signal: Y
    1951,  // paged cache: Y
    2003,
    2004,
    2011,
    2012,
    2013,  // normalisation: moments, running ones, Y
    2107,
    2108,
    2109,  // its way back: DSCALE, DBIAS, DX
    2201,  // reshape: Y
    2251,
    2271,  // band matrices: Y
    2310,  // random numbers: Y
    2501,
    2502,
    2602,  // block scales
    2803,
    2804,  // attention: O, statistics
    2859,
    2860,
    2861,  // its way back: DQ, DK, DV
    2905,  // grouped product
};

bool is_output(int attribute) {
    return std::find(std::begin(kOutputs), std::end(kOutputs), attribute) != std::end(kOutputs);
}

const char* name_of(int output) {
    switch (output) {
        case kForwardY:
            return "cudnnBackendExecute(convolution forward)";
        case kBackwardDataDx:
            return "cudnnBackendExecute(convolution backward data)";
        case kBackwardFilterDw:
            return "cudnnBackendExecute(convolution backward filter)";
        default:
            return nullptr;
    }
}

template <class T>
std::vector<T> copied(std::int64_t count, const void* elements) {
    const T* const from = static_cast<const T*>(elements);
    return {from, from + count};
}

}  // namespace

CudnnGraphs& CudnnGraphs::get() {
    static auto& graphs = *new CudnnGraphs;
    return graphs;
}

CudnnGraphs::GraphRef CudnnGraphs::graph_of(void* descriptor) const {
    const auto found = graphs_.find(descriptor);
    return found == graphs_.end() ? nullptr : found->second;
}

void CudnnGraphs::was_set(void* descriptor, int attribute, std::int64_t count,
                          const void* elements) {
    if (count <= 0 || !elements) return;
    std::lock_guard lock(mutex_);
    const auto first = [&] { return *static_cast<void* const*>(elements); };
    switch (attribute) {
        case kTensorId:
            tensors_[descriptor] = *static_cast<const std::int64_t*>(elements);
            return;
        case kPackIds:
            packs_[descriptor].tensors = copied<std::int64_t>(count, elements);
            return;
        case kPackPointers:
            packs_[descriptor].addresses = copied<std::uint64_t>(count, elements);
            return;
        case kPackWorkspace:
            packs_[descriptor].workspace = *static_cast<const std::uint64_t*>(elements);
            return;
        case kHeuristicsGraph:
        case kEngineGraph:
        case kConfigEngine:
        case kPlanConfig:
            graphs_[descriptor] = graph_of(first());
            return;
        case kGraphOperations: {
            auto graph = std::make_shared<Graph>();
            for (void* operation : copied<void*>(count, elements)) {
                const GraphRef part = graph_of(operation);
                if (!part) continue;
                if (!graph->name) graph->name = part->name;
                graph->written.insert(graph->written.end(), part->written.begin(),
                                      part->written.end());
            }
            graphs_[descriptor] = std::move(graph);
            return;
        }
        default:
            break;
    }
    if (!is_output(attribute)) return;
    const GraphRef known = graph_of(descriptor);
    auto operation = known ? std::make_shared<Graph>(*known) : std::make_shared<Graph>();
    if (!operation->name) operation->name = name_of(attribute);
    for (void* tensor : copied<void*>(count, elements))
        if (const auto found = tensors_.find(tensor); found != tensors_.end())
            operation->written.push_back(found->second);
    graphs_[descriptor] = std::move(operation);
}

void CudnnGraphs::was_read(void* descriptor, int attribute, std::int64_t count,
                           const void* elements) {
    const bool refers = attribute == kHeuristicsResults || attribute == kConfigEngine ||
                        attribute == kPlanConfig || attribute == kEngineGraph;
    if (!refers || count <= 0 || !elements) return;
    std::lock_guard lock(mutex_);
    const GraphRef graph = graph_of(descriptor);
    for (void* filled : copied<void*>(count, elements)) graphs_[filled] = graph;
}

void CudnnGraphs::was_destroyed(void* descriptor) {
    std::lock_guard lock(mutex_);
    tensors_.erase(descriptor);
    graphs_.erase(descriptor);
    packs_.erase(descriptor);
}

CudnnGraphs::Call CudnnGraphs::call(void* plan, void* pack) {
    Call call{"cudnnBackendExecute", {}};
    std::lock_guard lock(mutex_);
    const GraphRef graph = graph_of(plan);
    const auto operands = packs_.find(pack);
    if (!graph || operands == packs_.end()) return call;
    if (graph->name) call.name = graph->name;
    const Pack& in = operands->second;
    const std::size_t count = std::min(in.tensors.size(), in.addresses.size());
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_written = std::find(graph->written.begin(), graph->written.end(),
                                          in.tensors[i]) != graph->written.end();
        call.operands.push_back({in.addresses[i], is_written});
    }
    call.operands.push_back({in.workspace, true});
    return call;
}

}  // namespace libswap
