// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What makes a backend descriptor complete.

#include <algorithm>

#include "simgpu/cudnn/backend_descriptor.hpp"
#include "simgpu/cudnn/graph.hpp"
#include "simgpu/cudnn/handle.hpp"

namespace libswap::simgpu::cudnn {
namespace {

cudnnStatus_t incomplete() { return bad_param("an attribute that is required was not set"); }

bool all_at_least(const std::vector<std::int64_t>& numbers, std::int64_t least) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [least](std::int64_t number) { return number >= least; });
}

cudnnStatus_t check_tensor(const BackendDescriptor& tensor) {
    const auto dims = tensor.values<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto strides = tensor.values<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    const auto alignment = tensor.value<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
    if (dims.empty() || strides.empty() || tensor.find(CUDNN_ATTR_TENSOR_DATA_TYPE) == nullptr ||
        tensor.find(CUDNN_ATTR_TENSOR_UNIQUE_ID) == nullptr) {
        return incomplete();
    }
    if (dims.size() != strides.size() || !all_at_least(dims, 1) || !all_at_least(strides, 0)) {
        return bad_param("a tensor's dimensions and strides do not fit");
    }
    if (alignment <= 0 || (alignment & (alignment - 1)) != 0) {
        return bad_param("an alignment is no power of 2");
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_convolution(const BackendDescriptor& convolution) {
    const auto spatial = convolution.value<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
    if (spatial < 1 || convolution.find(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == nullptr ||
        convolution.find(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == nullptr) {
        return incomplete();
    }
    const struct {
        cudnnBackendAttributeName_t name;
        std::int64_t least;
    } lists[] = {{CUDNN_ATTR_CONVOLUTION_DILATIONS, 1},
                 {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1},
                 {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0},
                 {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0}};
    for (const auto& list : lists) {
        const auto numbers = convolution.values<std::int64_t>(list.name);
        if (static_cast<std::int64_t>(numbers.size()) != spatial ||
            !all_at_least(numbers, list.least)) {
            return bad_param("a convolution's numbers do not fit its dimensions");
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_pack(const BackendDescriptor& pack) {
    const BackendValue* uids = pack.find(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const BackendValue* pointers = pack.find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    if (uids == nullptr || pointers == nullptr) {
        return incomplete();
    }
    if (uids->count != pointers->count) {
        return bad_param("not as many addresses as identifiers");
    }
    auto sorted = pack.values<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        return refuse(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "an identifier is there twice");
    }
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace

cudnnStatus_t BackendDescriptor::finalize() {
    if (finalized_) {
        return bad_param("the descriptor is finalized");
    }
    const cudnnStatus_t status = finalize_by_type();
    finalized_ = status == CUDNN_STATUS_SUCCESS;
    return status;
}

cudnnStatus_t BackendDescriptor::take_plan_of(cudnnBackendAttributeName_t name) {
    const BackendRef source = descriptor(name);
    if (source == nullptr) {
        return incomplete();
    }
    plan_ = source->plan();
    engine_index_ = source->engine_index();
    return plan_ == nullptr ? not_supported("no engine computes this graph") : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t BackendDescriptor::finalize_by_type() {
    switch (type_) {
        case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
            return check_tensor(*this);
        case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
            return check_convolution(*this);
        case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
            return check_pack(*this);
        case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
            return find(CUDNN_ATTR_POINTWISE_MODE) == nullptr ? incomplete() : CUDNN_STATUS_SUCCESS;
        case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
            return find(CUDNN_ATTR_REDUCTION_OPERATOR) == nullptr ? incomplete()
                                                                  : CUDNN_STATUS_SUCCESS;
        case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: {
            const BackendValue* operations = find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
            if (operations == nullptr || operations->descriptors.empty()) {
                return incomplete();
            }
            std::shared_ptr<GraphPlan> plan;
            const cudnnStatus_t status = make_plan(operations->descriptors, plan);
            plan_ = std::move(plan);
            // What cannot be computed is a graph all the same: it has no engine.
            return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED
                       ? CUDNN_STATUS_SUCCESS
                       : status;
        }
        case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
            return find(CUDNN_ATTR_ENGINEHEUR_MODE) == nullptr
                       ? incomplete()
                       : take_plan_of(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        case CUDNN_BACKEND_ENGINE_DESCRIPTOR: {
            const cudnnStatus_t status = take_plan_of(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
            engine_index_ = value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
            if (status != CUDNN_STATUS_SUCCESS) {
                return status;
            }
            return engine_index_ < 0                        ? incomplete()
                   : engine_index_ >= plan_->engine_count() ? not_supported("no such engine")
                                                            : CUDNN_STATUS_SUCCESS;
        }
        case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
            return take_plan_of(CUDNN_ATTR_ENGINECFG_ENGINE);
        case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
            return take_plan_of(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        default:
            return CUDNN_STATUS_SUCCESS;
    }
}

}  // namespace libswap::simgpu::cudnn
