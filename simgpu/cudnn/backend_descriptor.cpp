// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/backend_descriptor.hpp"

#include <algorithm>

#include "simgpu/cudnn/graph.hpp"
#include "simgpu/cudnn/handle.hpp"
#include "simgpu/cudnn/log.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// Beside the header's types: FLOAT or DOUBLE.
constexpr int kScalar = -1;

struct AttributeInfo {
    cudnnBackendAttributeName_t name;
    cudnnBackendDescriptorType_t descriptor;
    int type;
    std::int64_t most;
};

#define CUDNN_TYPE_Scalar kScalar
constexpr AttributeInfo kAttributes[] = {
#define SIMGPU_CUDNN_ATTRIBUTE(name, descriptor, type, most) \
    {CUDNN_ATTR_##name, CUDNN_BACKEND_##descriptor, CUDNN_TYPE_##type, most},
#include "simgpu/cudnn/backend_attributes.def"
#undef SIMGPU_CUDNN_ATTRIBUTE
};
#undef CUDNN_TYPE_Scalar

const AttributeInfo* find_info(cudnnBackendAttributeName_t name) {
    const auto* found = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                     [name](const AttributeInfo& a) { return a.name == name; });
    return found == std::end(kAttributes) ? nullptr : found;
}

bool has_type(const AttributeInfo& info, cudnnBackendAttributeType_t type) {
    return info.type == kScalar ? type == CUDNN_TYPE_FLOAT || type == CUDNN_TYPE_DOUBLE
                                : info.type == type;
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
    switch (type) {
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        case CUDNN_TYPE_INT64:
        case CUDNN_TYPE_DOUBLE:
            return 8;
        case CUDNN_TYPE_BOOLEAN:
        case CUDNN_TYPE_CHAR:
            return 1;
        case CUDNN_TYPE_FRACTION:
            return sizeof(cudnnFraction_t);
        default:
            return sizeof(int);  // enumerators, INT32, FLOAT
    }
}

/// An answer that is not an attribute which was set.
cudnnStatus_t answer(const std::vector<std::int64_t>& numbers, std::int64_t requested,
                     std::int64_t* count, void* elements, bool as_int) {
    if (count != nullptr) {
        *count = static_cast<std::int64_t>(numbers.size());
    }
    for (std::size_t i = 0;
         elements != nullptr && i < numbers.size() && static_cast<std::int64_t>(i) < requested;
         ++i) {
        if (as_int) {
            static_cast<int*>(elements)[i] = static_cast<int>(numbers[i]);
        } else {
            static_cast<std::int64_t*>(elements)[i] = numbers[i];
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

/// Fills in the descriptors that the program made for the answer. Counts those: callers ask for the
/// best few, and take as many as they are told. Without a place for any, all that there are.
cudnnStatus_t answer_descriptors(const std::vector<BackendRef>& states, std::int64_t requested,
                                 std::int64_t* count, void* elements) {
    const auto all = static_cast<std::int64_t>(states.size());
    const std::int64_t filled = elements == nullptr ? 0 : std::min(all, requested);
    if (count != nullptr) {
        *count = elements == nullptr ? all : filled;
    }
    auto* handles = static_cast<cudnnBackendDescriptor_t*>(elements);
    for (std::size_t i = 0; i < static_cast<std::size_t>(filled); ++i) {
        auto* handle = static_cast<BackendHandle*>(handles[i]);
        if (handle == nullptr || handle->state->type() != states[i]->type()) {
            return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                          "a descriptor for the answer is missing, or of another type");
        }
        handle->state = states[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

std::int64_t engines_of(const std::shared_ptr<const GraphPlan>& plan) {
    return plan == nullptr ? 0 : plan->engine_count();
}

}  // namespace

const BackendValue* BackendDescriptor::find(cudnnBackendAttributeName_t name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
}

BackendRef BackendDescriptor::descriptor(cudnnBackendAttributeName_t name) const {
    const BackendValue* found = find(name);
    return found == nullptr || found->descriptors.empty() ? nullptr : found->descriptors.front();
}

double BackendDescriptor::scalar(cudnnBackendAttributeName_t name, double fallback) const {
    const BackendValue* found = find(name);
    if (found == nullptr) {
        return fallback;
    }
    return found->type == CUDNN_TYPE_DOUBLE ? value<double>(name, fallback)
                                            : static_cast<double>(value<float>(name, 0));
}

cudnnStatus_t BackendDescriptor::set(cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type, std::int64_t count,
                                     const void* elements) {
    if (finalized_) {
        return bad_param("the descriptor is finalized");
    }
    if (count < 0 || (elements == nullptr && count != 0)) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no elements");
    }
    const AttributeInfo* info = find_info(name);
    if (info == nullptr) {
        return static_cast<cudnnStatus_t>(
            unbuilt("cudnnBackendSetAttribute of an attribute that is not known"));
    }
    if (info->descriptor != type_) {
        return bad_param("the descriptor does not have this attribute");
    }
    if (!has_type(*info, type)) {
        return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute is of another type");
    }
    if (count > info->most) {
        return refuse(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "too many elements");
    }
    BackendValue value{type, count, {}, {}};
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        const auto* handles = static_cast<const cudnnBackendDescriptor_t*>(elements);
        for (std::int64_t i = 0; i < count; ++i) {
            BackendRef state = backend_state(handles[i]);
            if (state == nullptr) {
                return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor");
            }
            if (!state->is_finalized()) {
                return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                              "a descriptor that is referred to is not finalized");
            }
            value.descriptors.push_back(std::move(state));
        }
    } else {
        value.bytes.resize(static_cast<std::size_t>(count) * bytes_of(type));
        std::memcpy(value.bytes.data(), elements, value.bytes.size());
    }
    values_[name] = std::move(value);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t BackendDescriptor::get(cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type, std::int64_t requested,
                                     std::int64_t* count, void* elements) const {
    if (!finalized_) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the descriptor is not finalized");
    }
    if (requested < 0) {
        return bad_param("a negative number of elements");
    }
    switch (name) {
        case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
            return answer({engines_of(plan_)}, requested, count, elements, false);
        case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
            std::vector<BackendRef> configs;
            for (std::int64_t i = 0; i < engines_of(plan_); ++i) {
                configs.push_back(
                    make_config(descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), i));
            }
            return answer_descriptors(configs, requested, count, elements);
        }
        case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
            const Algorithm* algorithm =
                plan_ == nullptr ? nullptr : plan_->algorithm(engine_index_);
            const bool varies = algorithm != nullptr && !algorithm->is_deterministic;
            return answer(varies ? std::vector<std::int64_t>{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}
                                 : std::vector<std::int64_t>{},
                          requested, count, elements, true);
        }
        case CUDNN_ATTR_ENGINE_KNOB_INFO:
        case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        case CUDNN_ATTR_ENGINE_LAYOUT_INFO:
        case CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO:
        case CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS:
            return answer({}, requested, count, elements, true);
        case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
        case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
            return answer({plan_ == nullptr ? 0 : plan_->workspace_bytes(engine_index_)}, requested,
                          count, elements, false);
        default:
            break;
    }
    const AttributeInfo* info = find_info(name);
    if (info == nullptr) {
        return static_cast<cudnnStatus_t>(
            unbuilt("cudnnBackendGetAttribute of an attribute that is not known"));
    }
    if (info->descriptor != type_) {
        return bad_param("the descriptor does not have this attribute");
    }
    const BackendValue* found = find(name);
    if (found == nullptr) {
        return answer({}, requested, count, elements, true);
    }
    if (found->type != type) {
        return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute is of another type");
    }
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        return answer_descriptors(found->descriptors, requested, count, elements);
    }
    if (count != nullptr) {
        *count = found->count;
    }
    if (elements != nullptr) {
        std::memcpy(elements, found->bytes.data(),
                    static_cast<std::size_t>(std::min(requested, found->count)) * bytes_of(type));
    }
    return CUDNN_STATUS_SUCCESS;
}

BackendRef BackendDescriptor::make_config(const BackendRef& graph, std::int64_t engine_index) {
    auto engine = std::make_shared<BackendDescriptor>(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    engine->values_[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {
        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {graph}};
    engine->values_[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = {
        CUDNN_TYPE_INT64, 1, std::vector<std::byte>(sizeof(engine_index)), {}};
    std::memcpy(engine->values_[CUDNN_ATTR_ENGINE_GLOBAL_INDEX].bytes.data(), &engine_index,
                sizeof(engine_index));
    engine->finalize();
    auto config = std::make_shared<BackendDescriptor>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    config->values_[CUDNN_ATTR_ENGINECFG_ENGINE] = {
        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {std::move(engine)}};
    config->finalize();
    return config;
}

BackendRef backend_state(cudnnBackendDescriptor_t descriptor) {
    return descriptor == nullptr ? nullptr : static_cast<BackendHandle*>(descriptor)->state;
}

}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
    if (descriptor == nullptr) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no place for the descriptor");
    }
    if (type < CUDNN_BACKEND_POINTWISE_DESCRIPTOR ||
        type > CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR) {
        return not_supported("no such type of descriptor");
    }
    *descriptor = new BackendHandle{std::make_shared<BackendDescriptor>(type)};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    delete static_cast<BackendHandle*>(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
    return descriptor == nullptr ? refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor")
                                 : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    const BackendRef state = backend_state(descriptor);
    return state == nullptr ? refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor")
                            : state->finalize();
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* elements) {
    const BackendRef state = backend_state(descriptor);
    return state == nullptr ? refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor")
                            : state->set(name, type, count, elements);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t requested,
                                       std::int64_t* count, void* elements) {
    const BackendRef state = backend_state(descriptor);
    return state == nullptr ? refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor")
                            : state->get(name, type, requested, count, elements);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
    const BackendRef plan_state = backend_state(plan);
    const BackendRef pack_state = backend_state(pack);
    if (handle == nullptr || plan_state == nullptr || pack_state == nullptr) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no handle, plan or variant pack");
    }
    if (plan_state->type() != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        pack_state->type() != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
        return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "not a plan, or not a variant pack");
    }
    if (!plan_state->is_finalized() || !pack_state->is_finalized()) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor is not finalized");
    }
    return execute_plan(*handle, *plan_state->plan(), plan_state->engine_index(), *pack_state);
}

}  // extern "C"
