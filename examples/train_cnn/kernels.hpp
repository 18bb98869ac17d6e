// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// How images lie on the device, and the kernels for what cuBLAS does not do.
//
// A tensor is one row of floats per channel. In a row the images follow each other, each of them
// `side` + `border` rows of `side` + `border` pixels whose last rows and columns are zero: they are
// the border of this image and of the next, as wide as a filter looks past a pixel.
//
//     | lead zeros | image 0 | image 1 | ... | zeros up to the stride |
//
// So a shift by a tap of a filter is a shift of the whole row, and a convolution is, for each tap,
// a product of matrices: all read the same memory, each from another place.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace train_cnn {

struct Layout {
    int channels;
    int images;
    int side;
    /// Filters have 2 * border + 1 taps to a side.
    int border;

    static constexpr int kLead = 32;

    __host__ __device__ int pitch() const { return side + border; }
    __host__ __device__ int image_floats() const { return pitch() * pitch(); }
    /// Floats of all images of a channel: the columns that products work on.
    __host__ __device__ int columns() const { return images * image_floats(); }
    /// From one channel to the next: room for the shift by the farthest tap to both sides, in
    /// multiples of 128 bytes.
    __host__ __device__ int stride() const {
        return (kLead + columns() + border * (pitch() + 1) + 31) / 32 * 32;
    }
    std::size_t bytes() const {
        return static_cast<std::size_t>(channels) * stride() * sizeof(float);
    }
    /// How far a tap looks from the pixel it is for.
    int shift(int tap) const {
        const int filter = 2 * border + 1;
        return (tap / filter - border) * pitch() + tap % filter - border;
    }
};

/// Everything below is ordered on the legacy default stream.

/// outputs = max(outputs + bias + residual, 0) at pixels, 0 elsewhere. `mask` is 1 at pixels of a
/// row, else 0; `residual` may be null.
void add_bias_relu(const Layout& layout, float* outputs, const float* bias, const float* residual,
                   const float* mask);

/// gradients = gradients where outputs > 0, else 0.
void relu_backward(const Layout& layout, float* gradients, const float* outputs);

/// Maxima of 2 x 2 pixels; `input` is the layout of the inputs.
void pool(const Layout& input, const float* inputs, float* outputs);

/// Sends each gradient to the first of its four inputs that was the largest. Writes pixels only.
void pool_backward(const Layout& input, const float* inputs, const float* output_gradients,
                   float* input_gradients);

/// Gathers pixels as a matrix of `images` columns-first rows: features[f * images + n].
void gather_features(const Layout& layout, const float* inputs, float* features);

/// The way back; 0 between the pixels.
void scatter_features(const Layout& layout, const float* features, float* outputs);

/// Cross-entropy of softmax(logits + bias), logits[k * images + n]: per image the loss and whether
/// the largest is the label's, and the gradients of the mean loss by the logits, in place.
void softmax_loss(int images, float* logits, const float* bias, const std::int32_t* labels,
                  float* losses, float* right);

/// results[0] = mean of the losses, results[1] = sum of right.
void summarize(int images, const float* losses, const float* right, float* results);

/// momentum = factor * momentum + gradients; weights -= rate * momentum.
void descend(int count, float* weights, float* momentum, const float* gradients, float rate,
             float factor);

void fill(int count, float* values, float value);

/// Kernels are launched on this stream from now on; at first on the default one.
void use_stream(cudaStream_t stream);

}  // namespace train_cnn
