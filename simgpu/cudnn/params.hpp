// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The parameters of the kernels but those of convolutions. Addresses first, see kernels.hpp; one
// that is 0 is not there.
#pragma once

#include <cstdint>

#include "simgpu/cudnn/activation.hpp"
#include "simgpu/cudnn/tensor.hpp"

namespace libswap::simgpu::cudnn {

/// y = alpha act(x) + beta y.
struct ActivationParams {
    std::uint64_t x;
    std::uint64_t y;
    double alpha;
    double beta;
    Tensor x_desc;
    Tensor y_desc;
    Activation activation;
};

/// dx = alpha dact(x, y, dy) + beta dx.
struct ActivationGradientParams {
    std::uint64_t y;
    std::uint64_t dy;
    std::uint64_t x;
    std::uint64_t dx;
    double alpha;
    double beta;
    Tensor y_desc;
    Tensor dy_desc;
    Tensor x_desc;
    Tensor dx_desc;
    Activation activation;
};

/// The shape of a pooling over rank - 2 dimensions.
struct PoolingShape {
    static constexpr int kMaxSpatial = Tensor::kMaxRank - 2;
    std::int32_t mode;  ///< cudnnPoolingMode_t
    std::int32_t propagate_nan;
    std::int32_t spatial;
    std::int32_t unused;
    std::int32_t window[kMaxSpatial];
    std::int32_t pad[kMaxSpatial];
    std::int32_t stride[kMaxSpatial];
};

struct PoolingParams {
    std::uint64_t x;
    std::uint64_t y;
    double alpha;
    double beta;
    Tensor x_desc;
    Tensor y_desc;
    PoolingShape shape;
};

struct PoolingGradientParams {
    std::uint64_t y;
    std::uint64_t dy;
    std::uint64_t x;
    std::uint64_t dx;
    double alpha;
    double beta;
    Tensor y_desc;
    Tensor dy_desc;
    Tensor x_desc;
    Tensor dx_desc;
    PoolingShape shape;
};

/// Softmax of y, or of its gradients: dx = alpha d(y, dy) + beta dx.
struct SoftmaxParams {
    std::uint64_t x;  ///< dy on the way back
    std::uint64_t y;  ///< read on the way back
    std::uint64_t dx;
    double alpha;
    double beta;
    Tensor x_desc;
    Tensor y_desc;
    Tensor dx_desc;
    std::int32_t algorithm;  ///< cudnnSoftmaxAlgorithm_t
    std::int32_t mode;       ///< cudnnSoftmaxMode_t
};

/// y = alpha act(norm(x) scale + bias + z) + beta y; by the batch's own mean and variance, which
/// are saved and blended into the running ones, or by estimated ones.
struct NormalizationParams {
    std::uint64_t x;
    std::uint64_t y;
    std::uint64_t z;
    std::uint64_t scale;
    std::uint64_t bias;
    std::uint64_t mean;      ///< running: read and written; estimated: read
    std::uint64_t variance;  ///< the same
    std::uint64_t saved_mean;
    std::uint64_t saved_inverse;  ///< 1 / sqrt(variance + epsilon)
    std::uint64_t reserve;        ///< a bit per element: the activation let it through
    std::uint64_t workspace;
    std::uint64_t workspace_bytes;
    double alpha;
    double beta;
    double factor;
    double epsilon;
    Tensor x_desc;
    Tensor y_desc;
    Tensor z_desc;
    Tensor param_desc;
    Activation activation;
    std::int32_t has_activation;
    std::int32_t per_activation;
};

struct NormalizationGradientParams {
    std::uint64_t x;
    std::uint64_t dy;
    std::uint64_t dx;
    std::uint64_t dz;
    std::uint64_t scale;
    std::uint64_t dscale;
    std::uint64_t dbias;
    std::uint64_t saved_mean;
    std::uint64_t saved_inverse;
    std::uint64_t reserve;
    std::uint64_t workspace;
    std::uint64_t workspace_bytes;
    double alpha_data;
    double beta_data;
    double alpha_param;
    double beta_param;
    double epsilon;
    Tensor x_desc;
    Tensor dy_desc;
    Tensor dx_desc;
    Tensor dz_desc;
    Tensor param_desc;
    std::int32_t has_activation;
    std::int32_t per_activation;
};

/// Random numbers' states: their seed and how many were drawn.
struct DropoutStateParams {
    std::uint64_t states;
    std::uint64_t states_bytes;
    std::uint64_t seed;
};

/// y = x where it stays, over 1 - rate; reserve: a bit per element. The way back does not draw.
struct DropoutParams {
    std::uint64_t x;
    std::uint64_t y;
    std::uint64_t reserve;
    std::uint64_t states;
    double rate;
    Tensor x_desc;
    Tensor y_desc;
};

/// c = op(alpha1 a, alpha2 b) + beta c; operands of extent 1 in a dimension are repeated along it.
struct TensorOpParams {
    std::uint64_t a;
    std::uint64_t b;
    std::uint64_t c;
    double alpha1;
    double alpha2;
    double beta;
    Tensor a_desc;
    Tensor b_desc;
    Tensor c_desc;
    std::int32_t op;  ///< cudnnOpTensorOp_t
    std::int32_t unused;
};

/// y = alpha y, or y = alpha.
struct TensorFillParams {
    std::uint64_t y;
    double alpha;
    Tensor y_desc;
};

/// c = alpha reduce(a) + beta c along the dimensions where c has extent 1.
struct ReductionParams {
    std::uint64_t a;
    std::uint64_t c;
    std::uint64_t indices;
    std::uint64_t workspace;
    std::uint64_t workspace_bytes;
    double alpha;
    double beta;
    Tensor a_desc;
    Tensor c_desc;
    std::int32_t op;  ///< cudnnReduceTensorOp_t
    std::int32_t propagate_nan;
};

}  // namespace libswap::simgpu::cudnn
