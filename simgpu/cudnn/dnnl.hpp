// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/cudnn/convolution.hpp"

/// Convolutions of floats by oneDNN, which is opened when work comes.
namespace libswap::simgpu::cudnn::dnnl {

/// A convolution of this direction on host memory. Tensors are row-major; `y` may be a part of one
/// with more channels, then y_image_stride counts its elements from image to image.
struct Convolution {
    Direction direction;
    const ConvolutionShape* shape;
    const Tensor* x_desc;
    float* x;
    const Tensor* w_desc;
    float* w;
    const Tensor* y_desc;
    float* y;
    std::int64_t y_image_stride;
};

/// Does it on the calling thread alone. False, said once, where oneDNN is missing or refuses.
/// @thread any
bool convolve(const Convolution& convolution);

}  // namespace libswap::simgpu::cudnn::dnnl
