// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What executable graphs reach. Nodes are read when a graph is instantiated or updated; each launch
// names what they reach anew, since tables and buffers may have changed in between.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "runtime/driver.hpp"
#include "runtime/function_table.hpp"
#include "runtime/ranked_mutex.hpp"
#include "runtime/rows.hpp"

namespace libswap {

/// Memory that a node uses. `bytes` 0: the whole buffer that holds the address, and what its tables
/// point at.
struct GraphReach {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

/// A copy of a node to a device: pointer tables may come this way.
struct GraphCopy {
    Rows dst;
    Rows src;
    bool from_host = false;
};

/// A word that a node writes.
struct GraphWord {
    std::uint64_t dst = 0;
    std::uint64_t value = 0;
};

/// What one node does to memory.
struct NodeReach {
    std::vector<GraphReach> reaches;
    std::vector<GraphCopy> copies;
    std::vector<GraphWord> words;
    FunctionInfo* function = nullptr;
    bool known = true;       ///< false: anything may be reached
    bool allocates = false;  ///< memory of the graph's own
};

/// An executable graph. Its nodes are known by the handles in the graph it was made from.
struct GraphExec {
    tsl::robin_map<CUgraphNode, NodeReach> nodes;
    std::uint64_t serial = 0;  ///< never used again
};

/// Reads what the nodes of graphs reach. @thread any
class GraphReader {
  public:
    GraphReader(const Driver& driver, FunctionTable& functions) noexcept
        : driver_(driver), functions_(functions) {}
    /// Addresses from `low` to `high` are of interest, mapped or not: memory may be freed and
    /// allocated again while a graph lives.
    void look_for(std::uint64_t low, std::uint64_t high) { ranges_.push_back({low, high}); }

    /// The driver has what is needed to read graphs.
    static bool possible(const Driver& driver) noexcept;

    NodeReach kernel(const CUDA_KERNEL_NODE_PARAMS_v2& params);
    NodeReach copy(const CUDA_MEMCPY3D& params);
    NodeReach fill(const CUDA_MEMSET_NODE_PARAMS& params);
    NodeReach operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params);
    NodeReach any(const CUgraphNodeParams& params);

  private:
    bool is_ours(std::uint64_t address) const noexcept;
    void add(NodeReach& reach, std::uint64_t address, std::uint64_t bytes);

    const Driver& driver_;
    FunctionTable& functions_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

/// @thread any
class GraphTable {
  public:
    explicit GraphTable(const Driver& driver) noexcept : driver_(driver) {}

    /// `exec` was made from `graph`, or updated to be as it.
    void instantiated(CUgraphExec exec, CUgraph graph, GraphReader& reader);
    void node_changed(CUgraphExec exec, CUgraphNode node, NodeReach reach);
    /// A child node of `exec` was set to be as `graph`.
    void child_changed(CUgraphExec exec, CUgraph graph, GraphReader& reader);
    void destroyed(CUgraphExec exec);
    /// The graphs that a conditional node runs: the driver does not tell later.
    void conditional(CUgraphNode node, const CUgraph* bodies, std::size_t count);

    /// Calls `visit(const GraphExec&)` if the graph is known. Under a lock: no driver call.
    template <typename Visit>
    bool visit(CUgraphExec exec, Visit&& visit) {
        std::lock_guard lock(mutex_);
        const auto found = execs_.find(exec);
        if (found == execs_.end()) return false;
        visit(*found->second);
        return true;
    }

  private:
    static constexpr int kMaxDepth = 32;

    void read(CUgraph graph, GraphReader& reader, GraphExec* exec, int depth);
    NodeReach read_node(CUgraphNode node, GraphReader& reader, GraphExec* exec, int depth);

    const Driver& driver_;
    RankedMutex<LockRank::Graphs> mutex_;
    tsl::robin_map<CUgraphExec, std::unique_ptr<GraphExec>> execs_;
    tsl::robin_map<CUgraphNode, std::vector<CUgraph>> conditionals_;
    std::uint64_t next_serial_ = 1;
};

}  // namespace libswap
