// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Operation graphs: what the descriptors of one come to, and the kernel that computes it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/cudnn/backend_descriptor.hpp"
#include "simgpu/cudnn/convolution.hpp"
#include "simgpu/cudnn/problem.hpp"

namespace libswap::simgpu::cudnn {

/// Which tensors an operation has, by what they are to it.
namespace role {
enum Role : int {
    // convolutions (one of them is written), and matrix products: A, B, C
    X = 0,
    W = 1,
    Y = 2,
    // pointwise operations: B and T in these places, DY for X on the way back
    B = 1,
    T = 3,
    // normalisations
    Scale = 1,
    Bias = 3,
    Mean = 4,
    Inverse = 5,
    Epsilon = 6,
    Factor = 7,
    RunningMean = 8,
    RunningVariance = 9,
    NextMean = 10,
    NextVariance = 11,
    Dy = 3,
    Dscale = 6,
    Dbias = 7,
    Count = 12
};
}  // namespace role

struct GraphOp {
    enum class Kind : std::int16_t {
        ConvolutionForward,
        ConvolutionBackwardData,
        ConvolutionBackwardFilter,
        Pointwise,
        Reduction,
        Matmul,
        NormForward,
        NormBackward,
    };
    static constexpr std::int16_t kNone = -1;

    Kind kind;
    /// The mode of the kind: cudnnPointwiseMode_t, cudnnReduceTensorOp_t, cudnnBackendNormMode_t.
    std::int16_t mode;
    /// Of a forward normalisation: cudnnBackendNormFwdPhase_t.
    std::int16_t phase;
    std::int16_t unused;
    /// By role: places of tensors, or kNone.
    std::int16_t tensors[role::Count];
    /// Factors of the operands; of a convolution, alpha and beta.
    float alpha1;
    float alpha2;
    /// Of pointwise modes that have them: the clips and the slope of ReLU; else what the mode has.
    float lower;
    float upper;
    float slope;
    float coefficient;
};

/// The kernel graph. Operations are in an order in which they can be done.
struct GraphParams {
    static constexpr int kMaxTensors = 20;
    static constexpr int kMaxOps = 12;

    std::uint64_t addresses[kMaxTensors];  ///< 0: virtual, or by value
    std::uint64_t workspace;
    std::uint64_t workspace_bytes;
    Tensor tensors[kMaxTensors];
    float values[kMaxTensors];  ///< of tensors of one element that are given by value
    GraphOp ops[kMaxOps];
    ConvolutionShape convolution;  ///< there is one at most
    std::int32_t tensor_count;
    std::int32_t op_count;
    std::int32_t by_value;  ///< bit per tensor
    std::int32_t written;   ///< bit per tensor that memory gets the results of
};

/// A finalized operation graph that the stand-in can compute.
struct GraphPlan {
    struct Place {
        std::int64_t uid;
        bool is_virtual;
        bool is_by_value;
    };
    GraphParams params{};  ///< but for the addresses, workspace and values
    std::vector<Place> places;
    /// Graphs of one convolution are launched as the legacy calls launch them.
    bool is_convolution = false;
    Direction direction = Direction::Forward;
    Problem problem{};

    int engine_count() const;
    /// Null where there is one engine only.
    const Algorithm* algorithm(std::int64_t engine) const;
    std::int64_t workspace_bytes(std::int64_t engine) const;
};

/// NOT_SUPPORTED, with a reason, where the operations cannot be computed here; BAD_PARAM where they
/// make no sense.
cudnnStatus_t make_plan(const std::vector<BackendRef>& operations, std::shared_ptr<GraphPlan>& out);

/// Runs it with the operands of a finalized variant pack.
cudnnStatus_t execute_plan(const cudnnContext& handle, const GraphPlan& plan, std::int64_t engine,
                           const BackendDescriptor& pack);

}  // namespace libswap::simgpu::cudnn
