// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A plan and the addresses of a variant pack make a launch.

#include <algorithm>

#include "simgpu/cudnn/element.hpp"
#include "simgpu/cudnn/graph.hpp"
#include "simgpu/cudnn/handle.hpp"
#include "simgpu/cudnn/kernels.hpp"

namespace libswap::simgpu::cudnn {
namespace {

float value_at(const void* pointer, cudnnDataType_t type) {
    switch (type) {
        case CUDNN_DATA_DOUBLE:
            return static_cast<float>(*static_cast<const double*>(pointer));
        case CUDNN_DATA_HALF:
            return float_of_half(*static_cast<const std::uint16_t*>(pointer));
        case CUDNN_DATA_BFLOAT16:
            return float_of_bfloat(*static_cast<const std::uint16_t*>(pointer));
        case CUDNN_DATA_INT32:
            return static_cast<float>(*static_cast<const std::int32_t*>(pointer));
        case CUDNN_DATA_INT64:
            return static_cast<float>(*static_cast<const std::int64_t*>(pointer));
        default:
            return *static_cast<const float*>(pointer);
    }
}

cudnnStatus_t run_convolution(const cudnnContext& handle, const GraphPlan& plan,
                              std::int64_t engine, const GraphParams& params, void* workspace) {
    const GraphOp& op = params.ops[0];
    const auto at = [&](int place) {
        return reinterpret_cast<const void*>(params.addresses[op.tensors[place]]);
    };
    const auto bytes = static_cast<std::size_t>(plan.workspace_bytes(engine));
    ConvolutionParams convolution =
        params_of(plan.problem, *plan.algorithm(engine),
                  {at(role::X), at(role::W), at(role::Y), workspace, bytes});
    convolution.alpha = static_cast<double>(op.alpha1);
    convolution.beta = static_cast<double>(op.alpha2);
    return launch_convolution(handle, plan.direction, convolution);
}

}  // namespace

cudnnStatus_t execute_plan(const cudnnContext& handle, const GraphPlan& plan, std::int64_t engine,
                           const BackendDescriptor& pack) {
    const auto uids = pack.values<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto pointers = pack.values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    void* workspace = pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
    if (plan.workspace_bytes(engine) != 0 && workspace == nullptr) {
        return bad_param("the workspace is missing");
    }
    GraphParams params = plan.params;
    for (std::size_t i = 0; i < plan.places.size(); ++i) {
        const GraphPlan::Place& place = plan.places[i];
        if (place.is_virtual) {
            continue;
        }
        const auto found = std::find(uids.begin(), uids.end(), place.uid);
        void* pointer = found == uids.end()
                            ? nullptr
                            : pointers[static_cast<std::size_t>(found - uids.begin())];
        if (pointer == nullptr) {
            return bad_param("a tensor's address is missing");
        }
        if (place.is_by_value) {
            params.values[i] = value_at(pointer, params.tensors[i].data_type());
        } else {
            params.addresses[i] = address_of(pointer);
        }
    }
    if (plan.is_convolution) {
        return run_convolution(handle, plan, engine, params, workspace);
    }
    std::int64_t most = 1;
    for (int i = 0; i < params.tensor_count; ++i) {
        most = std::max(most, params.tensors[i].elements());
    }
    ensure_context(handle);
    return status_of(launch(Kernel::graph, params, handle.stream, most));
}

}  // namespace libswap::simgpu::cudnn
