// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// From descriptors of operations to a plan.

#include "simgpu/cudnn/graph.hpp"

#include <algorithm>

#include "simgpu/cudnn/broadcast.hpp"
#include "simgpu/cudnn/handle.hpp"
#include "simgpu/cudnn/pointwise.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// An attribute of an operation that is a tensor: its role, and whether the operation writes it.
struct Slot {
    cudnnBackendAttributeName_t name;
    int place;
    bool written;
    bool required;
};

struct OpInfo {
    cudnnBackendDescriptorType_t type;
    GraphOp::Kind kind;
    std::vector<Slot> slots;
};

const std::vector<OpInfo>& op_infos() {
    using Kind = GraphOp::Kind;
    static const auto& infos = *new std::vector<OpInfo>{
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         Kind::ConvolutionForward,
         {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, role::X, false, true},
          {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, role::W, false, true},
          {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, role::Y, true, true}}},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         Kind::ConvolutionBackwardData,
         {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, role::X, true, true},
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, role::W, false, true},
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, role::Y, false, true}}},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         Kind::ConvolutionBackwardFilter,
         {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, role::X, false, true},
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, role::W, true, true},
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, role::Y, false, true}}},
        {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
         Kind::Pointwise,
         {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, role::X, false, true},
          {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, role::B, false, false},
          {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, role::T, false, false},
          {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, role::B, false, false},
          {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, role::Y, true, false},
          {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, role::Y, true, false}}},
        {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
         Kind::Reduction,
         {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, role::X, false, true},
          {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, role::Y, true, true}}},
        {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
         Kind::Matmul,
         {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, role::X, false, true},
          {CUDNN_ATTR_OPERATION_MATMUL_BDESC, role::W, false, true},
          {CUDNN_ATTR_OPERATION_MATMUL_CDESC, role::Y, true, true}}},
        {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
         Kind::NormForward,
         {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, role::X, false, true},
          {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, role::Scale, false, true},
          {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, role::Bias, false, false},
          {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, role::Epsilon, false, true},
          {CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, role::Factor, false, false},
          {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, role::RunningMean, false, false},
          {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, role::RunningVariance, false,
           false},
          {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, role::Mean, true, false},
          {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, role::Inverse, true, false},
          {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, role::NextMean, true, false},
          {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, role::NextVariance, true, false},
          {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, role::Y, true, true}}},
        {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
         Kind::NormBackward,
         {{CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, role::X, false, true},
          {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, role::Dy, false, true},
          {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, role::Scale, false, true},
          {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, role::Mean, false, false},
          {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, role::Inverse, false, true},
          {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, role::Dscale, true, true},
          {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, role::Dbias, true, false},
          {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, role::Y, true, true}}},
    };
    return infos;
}

const OpInfo* find_op(cudnnBackendDescriptorType_t type) {
    const auto& infos = op_infos();
    const auto found = std::find_if(infos.begin(), infos.end(),
                                    [type](const OpInfo& info) { return info.type == type; });
    return found == infos.end() ? nullptr : &*found;
}

bool is_convolution(GraphOp::Kind kind) { return kind <= GraphOp::Kind::ConvolutionBackwardFilter; }

/// Builds the plan of one graph.
class Planner {
  public:
    explicit Planner(GraphPlan& plan) : plan_(plan) {}

    cudnnStatus_t add(const BackendDescriptor& operation);
    cudnnStatus_t finish();

  private:
    cudnnStatus_t tensor(const BackendDescriptor& desc, bool written, std::int16_t& place);
    cudnnStatus_t describe(const BackendDescriptor& operation, GraphOp& op);
    cudnnStatus_t describe_convolution(const BackendDescriptor& operation, GraphOp& op);
    cudnnStatus_t describe_pointwise(const BackendDescriptor& operation, GraphOp& op);
    cudnnStatus_t check(const GraphOp& op) const;
    cudnnStatus_t sort();
    const Tensor& tensor_of(const GraphOp& op, int place) const {
        return plan_.params.tensors[op.tensors[place]];
    }

    GraphPlan& plan_;
    bool has_convolution_ = false;
    std::vector<std::int16_t> written_;  ///< each tensor's writer, by place
};

cudnnStatus_t Planner::tensor(const BackendDescriptor& desc, bool written, std::int16_t& place) {
    GraphParams& params = plan_.params;
    const auto uid = desc.value<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    const auto known = std::find_if(plan_.places.begin(), plan_.places.end(),
                                    [uid](const GraphPlan::Place& p) { return p.uid == uid; });
    place = static_cast<std::int16_t>(known - plan_.places.begin());
    if (known == plan_.places.end()) {
        if (params.tensor_count == GraphParams::kMaxTensors) {
            return not_supported("more tensors than a kernel here takes");
        }
        const auto dims = desc.values<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
        const auto strides = desc.values<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
        Tensor& tensor = params.tensors[params.tensor_count++];
        tensor.type = desc.value<int>(CUDNN_ATTR_TENSOR_DATA_TYPE, 0);
        tensor.rank = static_cast<std::int32_t>(dims.size());
        for (std::size_t i = 0; i < dims.size(); ++i) {
            tensor.dims[i] = static_cast<std::int32_t>(dims[i]);
            tensor.strides[i] = strides[i];
        }
        if (bytes_of(tensor.data_type()) == 0 ||
            desc.value<std::int64_t>(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1) > 1 ||
            desc.find(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC) != nullptr) {
            return not_supported("a tensor of this type or layout");
        }
        const bool by_value = desc.value<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false);
        plan_.places.push_back(
            {uid, desc.value<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false), by_value});
        if (by_value) {
            if (tensor.elements() != 1) {
                return not_supported("a tensor of several elements by value");
            }
            params.by_value |= 1 << place;
        }
        written_.push_back(GraphOp::kNone);
    }
    if (written) {
        if (written_[static_cast<std::size_t>(place)] != GraphOp::kNone) {
            return bad_param("two operations write one tensor");
        }
        written_[static_cast<std::size_t>(place)] = static_cast<std::int16_t>(params.op_count);
        if (!plan_.places[static_cast<std::size_t>(place)].is_virtual) {
            params.written |= 1 << place;
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Planner::add(const BackendDescriptor& operation) {
    const OpInfo* info = find_op(operation.type());
    if (info == nullptr) {
        return not_supported("an operation of this kind");
    }
    if (plan_.params.op_count == GraphParams::kMaxOps) {
        return not_supported("more operations than a kernel here takes");
    }
    GraphOp& op = plan_.params.ops[plan_.params.op_count];
    op = {};
    op.kind = info->kind;
    op.alpha1 = op.alpha2 = 1;
    std::fill(std::begin(op.tensors), std::end(op.tensors), GraphOp::kNone);
    // Of an inference, mean and deviation are inputs.
    const bool reads_moments =
        op.kind == GraphOp::Kind::NormForward &&
        operation.value<int>(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING) ==
            CUDNN_NORM_FWD_INFERENCE &&
        operation.value<int>(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_BATCH_NORM) ==
            CUDNN_BATCH_NORM;
    for (const Slot& slot : info->slots) {
        const BackendRef desc = operation.descriptor(slot.name);
        if (desc == nullptr) {
            if (slot.required) {
                return bad_param("an operation lacks a tensor");
            }
            continue;
        }
        const bool moment = slot.place == role::Mean || slot.place == role::Inverse;
        const cudnnStatus_t status =
            tensor(*desc, slot.written && !(reads_moments && moment), op.tensors[slot.place]);
        if (status != CUDNN_STATUS_SUCCESS) {
            return status;
        }
    }
    if (op.tensors[role::Y] == GraphOp::kNone) {
        return bad_param("an operation lacks its result");
    }
    if (const cudnnStatus_t status = describe(operation, op); status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    ++plan_.params.op_count;
    return check(op);
}

cudnnStatus_t Planner::describe(const BackendDescriptor& operation, GraphOp& op) {
    switch (op.kind) {
        case GraphOp::Kind::Pointwise:
            return describe_pointwise(operation, op);
        case GraphOp::Kind::Reduction: {
            const BackendRef reduction = operation.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
            if (reduction == nullptr) {
                return bad_param("a reduction lacks its descriptor");
            }
            op.mode =
                static_cast<std::int16_t>(reduction->value<int>(CUDNN_ATTR_REDUCTION_OPERATOR, 0));
            return CUDNN_STATUS_SUCCESS;
        }
        case GraphOp::Kind::Matmul:
            return CUDNN_STATUS_SUCCESS;
        case GraphOp::Kind::NormForward:
            op.mode = static_cast<std::int16_t>(
                operation.value<int>(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_BATCH_NORM));
            op.phase = static_cast<std::int16_t>(
                operation.value<int>(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING));
            return CUDNN_STATUS_SUCCESS;
        case GraphOp::Kind::NormBackward:
            op.mode = static_cast<std::int16_t>(
                operation.value<int>(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_BATCH_NORM));
            return CUDNN_STATUS_SUCCESS;
        default:
            return describe_convolution(operation, op);
    }
}

cudnnStatus_t Planner::describe_convolution(const BackendDescriptor& operation, GraphOp& op) {
    struct Names {
        cudnnBackendAttributeName_t convolution, alpha, beta;
    };
    const Names names = op.kind == GraphOp::Kind::ConvolutionForward
                            ? Names{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA}
                        : op.kind == GraphOp::Kind::ConvolutionBackwardData
                            ? Names{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}
                            : Names{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    const BackendRef desc = operation.descriptor(names.convolution);
    if (desc == nullptr) {
        return bad_param("a convolution lacks its descriptor");
    }
    if (has_convolution_) {
        return not_supported("two convolutions in a graph");
    }
    has_convolution_ = true;
    op.alpha1 = static_cast<float>(operation.scalar(names.alpha, 1));
    op.alpha2 = static_cast<float>(operation.scalar(names.beta, 0));
    ConvolutionShape& shape = plan_.params.convolution;
    const Tensor& x = tensor_of(op, role::X);
    const Tensor& w = tensor_of(op, role::W);
    const auto spatial = desc->value<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
    if (spatial > ConvolutionShape::kMaxSpatial || x.rank != spatial + 2 || w.rank != x.rank) {
        return bad_param("a convolution's tensors are of other dimensions");
    }
    shape.spatial = static_cast<std::int32_t>(spatial);
    // Groups are told by how many channels a filter sees.
    shape.groups = x.dims[1] / w.dims[1];
    shape.flip = desc->value<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION) ==
                         CUDNN_CONVOLUTION
                     ? 1
                     : 0;
    const auto copy = [&](cudnnBackendAttributeName_t name, std::int32_t* to) {
        for (const std::int64_t number : desc->values<std::int64_t>(name)) {
            *to++ = static_cast<std::int32_t>(number);
        }
    };
    copy(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape.pad_before);
    copy(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape.pad_after);
    copy(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape.stride);
    copy(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape.dilation);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Planner::describe_pointwise(const BackendDescriptor& operation, GraphOp& op) {
    const BackendRef desc = operation.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    if (desc == nullptr) {
        return bad_param("a pointwise operation lacks its descriptor");
    }
    const int mode = desc->value<int>(CUDNN_ATTR_POINTWISE_MODE, 0);
    op.mode = static_cast<std::int16_t>(mode);
    op.alpha1 = static_cast<float>(operation.scalar(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1));
    op.alpha2 = static_cast<float>(operation.scalar(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1));
    const auto number = [&](cudnnBackendAttributeName_t name, double fallback) {
        return static_cast<float>(desc->scalar(name, fallback));
    };
    op.lower = number(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0);
    op.upper = number(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, 3.4028234663852886e38);
    op.slope = number(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
    switch (mode) {
        case CUDNN_POINTWISE_ELU_FWD:
        case CUDNN_POINTWISE_ELU_BWD:
            op.coefficient = number(CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1);
            break;
        case CUDNN_POINTWISE_SOFTPLUS_FWD:
        case CUDNN_POINTWISE_SOFTPLUS_BWD:
            op.coefficient = number(CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1);
            break;
        case CUDNN_POINTWISE_GEN_INDEX:
            op.coefficient =
                static_cast<float>(desc->value<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS, 0));
            break;
        default:
            op.coefficient = number(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1);
            break;
    }
    return CUDNN_STATUS_SUCCESS;
}

/// The shapes of an operation fit each other.
cudnnStatus_t Planner::check(const GraphOp& op) const {
    const Tensor& x = tensor_of(op, role::X);
    const Tensor& y = tensor_of(op, role::Y);
    const auto fits = [&](int place, const Tensor& large) {
        return op.tensors[place] == GraphOp::kNone || can_repeat(tensor_of(op, place), large);
    };
    switch (op.kind) {
        case GraphOp::Kind::Pointwise:
            if (!is_pointwise(op.mode)) {
                return not_supported("this pointwise mode");
            }
            return can_repeat(x, y) && fits(role::B, y) && fits(role::T, y)
                       ? CUDNN_STATUS_SUCCESS
                       : bad_param("the shapes of a pointwise operation do not fit");
        case GraphOp::Kind::Reduction:
            return can_repeat(y, x) ? CUDNN_STATUS_SUCCESS
                                    : bad_param("the shapes of a reduction do not fit");
        case GraphOp::Kind::Matmul: {
            const Tensor& b = tensor_of(op, role::W);
            const int last = x.rank - 1;
            if (x.rank < 2 || b.rank != x.rank || y.rank != x.rank ||
                x.dims[last] != b.dims[last - 1] || y.dims[last - 1] != x.dims[last - 1] ||
                y.dims[last] != b.dims[last]) {
                return bad_param("the shapes of a product do not fit");
            }
            for (int i = 0; i < last - 1; ++i) {
                if ((x.dims[i] != y.dims[i] && x.dims[i] != 1) ||
                    (b.dims[i] != y.dims[i] && b.dims[i] != 1)) {
                    return bad_param("the batches of a product do not fit");
                }
            }
            return CUDNN_STATUS_SUCCESS;
        }
        case GraphOp::Kind::NormForward:
        case GraphOp::Kind::NormBackward:
            return same_dims(x, y) && fits(role::Scale, x) && fits(role::Mean, x) &&
                           fits(role::Inverse, x)
                       ? CUDNN_STATUS_SUCCESS
                       : bad_param("the shapes of a normalisation do not fit");
        default:
            return check_problem({x, tensor_of(op, role::W), y, plan_.params.convolution});
    }
}

/// An order in which what is read has been written.
cudnnStatus_t Planner::sort() {
    GraphParams& params = plan_.params;
    std::vector<GraphOp> left(params.ops, params.ops + params.op_count);
    std::vector<bool> ready(written_.size());
    for (std::size_t i = 0; i < written_.size(); ++i) {
        ready[i] = written_[i] == GraphOp::kNone;
        if (ready[i] && plan_.places[i].is_virtual) {
            return bad_param("a virtual tensor is read that nothing writes");
        }
    }
    std::vector<std::int16_t> numbers(left.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int16_t>(i);
    int done = 0;
    while (!left.empty()) {
        const auto can_run = [&](std::size_t which) {
            for (const std::int16_t place : left[which].tensors) {
                if (place != GraphOp::kNone && !ready[static_cast<std::size_t>(place)] &&
                    written_[static_cast<std::size_t>(place)] != numbers[which]) {
                    return false;
                }
            }
            return true;
        };
        std::size_t which = 0;
        while (which < left.size() && !can_run(which)) ++which;
        if (which == left.size()) {
            return bad_param("the operations wait for each other");
        }
        for (std::size_t i = 0; i < written_.size(); ++i) {
            ready[i] = ready[i] || written_[i] == numbers[which];
        }
        params.ops[done++] = left[which];
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(which));
        numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(which));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Planner::finish() {
    if (const cudnnStatus_t status = sort(); status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    const GraphOp& first = plan_.params.ops[0];
    if (plan_.params.op_count == 1 && cudnn::is_convolution(first.kind)) {
        plan_.is_convolution = true;
        plan_.direction = static_cast<Direction>(first.kind);
        plan_.problem = {tensor_of(first, role::X), tensor_of(first, role::W),
                         tensor_of(first, role::Y), plan_.params.convolution};
    }
    return CUDNN_STATUS_SUCCESS;
}

static_assert(static_cast<int>(Direction::Forward) ==
                  static_cast<int>(GraphOp::Kind::ConvolutionForward) &&
              static_cast<int>(Direction::BackwardData) ==
                  static_cast<int>(GraphOp::Kind::ConvolutionBackwardData) &&
              static_cast<int>(Direction::BackwardFilter) ==
                  static_cast<int>(GraphOp::Kind::ConvolutionBackwardFilter));

}  // namespace

int GraphPlan::engine_count() const {
    return is_convolution ? static_cast<int>(algorithms(direction).size()) : 1;
}

const Algorithm* GraphPlan::algorithm(std::int64_t engine) const {
    return is_convolution ? &algorithms(direction)[static_cast<std::size_t>(engine)] : nullptr;
}

std::int64_t GraphPlan::workspace_bytes(std::int64_t engine) const {
    return is_convolution
               ? static_cast<std::int64_t>(cudnn::workspace_bytes(*algorithm(engine), problem))
               : 0;
}

cudnnStatus_t make_plan(const std::vector<BackendRef>& operations,
                        std::shared_ptr<GraphPlan>& out) {
    auto plan = std::make_shared<GraphPlan>();
    Planner planner(*plan);
    for (const BackendRef& operation : operations) {
        if (const cudnnStatus_t status = planner.add(*operation); status != CUDNN_STATUS_SUCCESS) {
            return status;
        }
    }
    const cudnnStatus_t status = planner.finish();
    if (status == CUDNN_STATUS_SUCCESS) {
        out = std::move(plan);
    }
    return status;
}

}  // namespace libswap::simgpu::cudnn
