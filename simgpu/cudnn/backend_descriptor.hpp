// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What a cudnnBackendDescriptor_t points to: a bag of attributes, checked against one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "simgpu/cudnn/api.hpp"

namespace libswap::simgpu::cudnn {

class BackendDescriptor;
struct GraphPlan;
using BackendRef = std::shared_ptr<BackendDescriptor>;

/// The value of one attribute.
struct BackendValue {
    cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
    std::int64_t count = 0;
    std::vector<std::byte> bytes;
    /// Of attributes of type BACKEND_DESCRIPTOR: kept alive, whatever the program destroys.
    std::vector<BackendRef> descriptors;
};

/// One thread uses it at a time, or all only read it.
class BackendDescriptor {
  public:
    explicit BackendDescriptor(cudnnBackendDescriptorType_t type) : type_(type) {}

    cudnnBackendDescriptorType_t type() const { return type_; }
    bool is_finalized() const { return finalized_; }

    cudnnStatus_t set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::int64_t count, const void* elements);
    cudnnStatus_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::int64_t requested, std::int64_t* count, void* elements) const;
    cudnnStatus_t finalize();

    /// Null where it was not set.
    const BackendValue* find(cudnnBackendAttributeName_t name) const;
    /// The descriptor in the attribute, or null.
    BackendRef descriptor(cudnnBackendAttributeName_t name) const;
    /// Elements of a type of fixed size; `fallback` where it was not set.
    template <typename T>
    T value(cudnnBackendAttributeName_t name, T fallback) const;
    template <typename T>
    std::vector<T> values(cudnnBackendAttributeName_t name) const;
    /// Of an attribute that may be a float or a double.
    double scalar(cudnnBackendAttributeName_t name, double fallback) const;

    /// Of finalized operation graphs, and what refers to them: what it computes. Null: nothing that
    /// the stand-in can.
    const std::shared_ptr<const GraphPlan>& plan() const { return plan_; }
    /// Of engines, and what refers to them.
    std::int64_t engine_index() const { return engine_index_; }

    /// An engine's configuration, as heuristics answer with.
    static BackendRef make_config(const BackendRef& graph, std::int64_t engine_index);

  private:
    cudnnStatus_t finalize_by_type();
    cudnnStatus_t take_plan_of(cudnnBackendAttributeName_t name);

    cudnnBackendDescriptorType_t type_;
    bool finalized_ = false;
    std::map<int, BackendValue> values_;
    std::shared_ptr<const GraphPlan> plan_;
    std::int64_t engine_index_ = 0;
};

/// What the handle itself points to. Getters that answer with descriptors fill in those that the
/// program made.
struct BackendHandle {
    BackendRef state;
};

/// Null for a null handle.
BackendRef backend_state(cudnnBackendDescriptor_t descriptor);

template <typename T>
T BackendDescriptor::value(cudnnBackendAttributeName_t name, T fallback) const {
    const BackendValue* found = find(name);
    if (found == nullptr || found->bytes.size() < sizeof(T)) {
        return fallback;
    }
    T result;
    std::memcpy(&result, found->bytes.data(), sizeof(T));
    return result;
}

template <typename T>
std::vector<T> BackendDescriptor::values(cudnnBackendAttributeName_t name) const {
    const BackendValue* found = find(name);
    std::vector<T> result(found == nullptr ? 0 : static_cast<std::size_t>(found->count));
    if (!result.empty()) {
        std::memcpy(result.data(), found->bytes.data(), result.size() * sizeof(T));
    }
    return result;
}

}  // namespace libswap::simgpu::cudnn
