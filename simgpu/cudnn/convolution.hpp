// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <vector>

#include "simgpu/cudnn/activation.hpp"
#include "simgpu/cudnn/api.hpp"
#include "simgpu/cudnn/tensor.hpp"

namespace libswap::simgpu::cudnn {

/// The shape of a convolution over `spatial` dimensions.
struct ConvolutionShape {
    static constexpr int kMaxSpatial = Tensor::kMaxRank - 2;

    std::int32_t spatial = 0;
    std::int32_t groups = 1;
    /// Filters are turned round (CUDNN_CONVOLUTION), else not (CUDNN_CROSS_CORRELATION).
    std::int32_t flip = 0;
    std::int32_t unused = 0;
    std::int32_t pad_before[kMaxSpatial] = {};
    std::int32_t pad_after[kMaxSpatial] = {};
    std::int32_t stride[kMaxSpatial] = {};
    std::int32_t dilation[kMaxSpatial] = {};
};

/// The kernels convolution_forward (writes y), ..._backward_data (x), ..._backward_filter (w).
/// output = act(alpha conv(inputs) + beta z + bias), z being the output itself where it is 0.
struct ConvolutionParams {
    std::uint64_t x;
    std::uint64_t w;
    std::uint64_t y;
    std::uint64_t z;
    std::uint64_t bias;
    std::uint64_t workspace;
    std::uint64_t workspace_bytes;
    double alpha;
    double beta;
    /// How many times the least possible work the algorithm does.
    double work_factor;
    Tensor x_desc;
    Tensor w_desc;
    Tensor y_desc;
    Tensor z_desc;
    Tensor bias_desc;
    ConvolutionShape shape;
    /// Where has_activation.
    Activation activation;
    std::int32_t has_activation;
    std::int32_t unused;
};

/// The kernel convolution_backward_bias: db = alpha (dy summed over all but the channels) + beta
/// db.
struct BiasGradientParams {
    std::uint64_t dy;
    std::uint64_t db;
    double alpha;
    double beta;
    Tensor dy_desc;
    Tensor db_desc;
};

/// The output's dimensions, or false where the shapes do not fit: `dims` gets x.rank numbers.
bool convolution_output(const ConvolutionShape& shape, const Tensor& x, const Tensor& w, int* dims);

enum class Direction : std::uint8_t { Forward, BackwardData, BackwardFilter };

/// One convolution on the host, all tensors row-major without gaps. The inputs of the direction are
/// read, its output is overwritten: y, x or w. Deterministic, whatever the machine is doing.
/// T: float, by oneDNN, or double.
template <typename T>
void convolve(Direction direction, const ConvolutionShape& shape, const Tensor& x_desc,
              std::vector<T>& x, const Tensor& w_desc, std::vector<T>& w, const Tensor& y_desc,
              std::vector<T>& y);

/// Multiplications and additions of it, in any direction.
double convolution_flops(const Tensor& w, const Tensor& y);

}  // namespace libswap::simgpu::cudnn
