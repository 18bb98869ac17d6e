// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/call_roles.hpp"

namespace libswap {

/// Follows the descriptors of cuDNN's backend interface, as far as they say which tensors a plan
/// writes: tensors have identifiers, operations outputs, and graphs, heuristics, engines,
/// configurations and plans refer to each other. What was not seen being set (a plan read from
/// JSON) is not known. @thread any
class CudnnGraphs {
  public:
    /// The process's. Leaked on purpose: descriptors may be destroyed by destructors of the
    /// program.
    static CudnnGraphs& get();

    /// After a successful cudnnBackendSetAttribute.
    void was_set(void* descriptor, int attribute, std::int64_t count, const void* elements);
    /// After a successful cudnnBackendGetAttribute that filled in `count` descriptors.
    void was_read(void* descriptor, int attribute, std::int64_t count, const void* elements);
    void was_destroyed(void* descriptor);

    /// What a plan does with the operands of a variant pack.
    struct Call {
        const char* name;
        std::vector<CallOperand> operands;
    };
    Call call(void* plan, void* pack);

  private:
    struct Graph {
        const char* name = nullptr;         ///< of its first operation, where that says much
        std::vector<std::int64_t> written;  ///< identifiers of tensors
    };
    struct Pack {
        std::vector<std::int64_t> tensors;
        std::vector<std::uint64_t> addresses;
        std::uint64_t workspace = 0;
    };
    using GraphRef = std::shared_ptr<const Graph>;

    GraphRef graph_of(void* descriptor) const;

    std::mutex mutex_;
    std::unordered_map<void*, std::int64_t> tensors_;
    std::unordered_map<void*, GraphRef> graphs_;
    std::unordered_map<void*, Pack> packs_;
};

}  // namespace libswap
