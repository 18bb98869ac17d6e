// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "device.hpp"
#include "digits.hpp"
#include "kernels.hpp"

namespace train_cnn {
namespace {

constexpr int kThreads = 256;
cudaStream_t current_stream = nullptr;

int blocks(int threads) { return (threads + kThreads - 1) / kThreads; }

/// A pixel's place in its row, and whether it is one: the zeros around and between images are not.
struct Place {
    int image;
    int y;
    int x;
    bool is_pixel;
};

__device__ Place place_of(const Layout& layout, int column) {
    const int at = column - Layout::kLead;
    if (at < 0 || at >= layout.columns()) {
        return {0, 0, 0, false};
    }
    const int image = at / layout.image_floats();
    const int rest = at - image * layout.image_floats();
    const int y = rest / layout.pitch();
    const int x = rest - y * layout.pitch();
    return {image, y, x, y < layout.side && x < layout.side};
}

__device__ int column_of(const Layout& layout, int image, int y, int x) {
    return Layout::kLead + image * layout.image_floats() + y * layout.pitch() + x;
}

__device__ float relu(float value, float mask) { return mask != 0.0f ? fmaxf(value, 0.0f) : 0.0f; }

// Rows are multiples of four floats: a thread takes four.
__global__ void add_bias_relu_kernel(int quads, float4* outputs, const float* bias,
                                     const float4* residual, const float4* mask) {
    const int quad = blockIdx.x * blockDim.x + threadIdx.x;
    if (quad >= quads) {
        return;
    }
    const int channel = blockIdx.y;
    const float b = bias[channel];
    const float4 m = mask[quad];
    float4& output = outputs[channel * quads + quad];
    float4 value = output;
    if (residual != nullptr) {
        const float4 r = residual[channel * quads + quad];
        value = make_float4(value.x + r.x, value.y + r.y, value.z + r.z, value.w + r.w);
    }
    output = make_float4(relu(value.x + b, m.x), relu(value.y + b, m.y), relu(value.z + b, m.z),
                         relu(value.w + b, m.w));
}

__global__ void relu_backward_kernel(int quads, float4* gradients, const float4* outputs) {
    const int quad = blockIdx.x * blockDim.x + threadIdx.x;
    if (quad >= quads) {
        return;
    }
    const float4 y = outputs[quad];
    const float4 g = gradients[quad];
    gradients[quad] = make_float4(y.x > 0.0f ? g.x : 0.0f, y.y > 0.0f ? g.y : 0.0f,
                                  y.z > 0.0f ? g.z : 0.0f, y.w > 0.0f ? g.w : 0.0f);
}

__global__ void pool_kernel(Layout in, Layout out, const float* inputs, float* outputs) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= out.stride()) {
        return;
    }
    const int channel = blockIdx.y;
    const Place place = place_of(out, column);
    float largest = 0.0f;
    if (place.is_pixel) {
        const float* corner =
            inputs + channel * in.stride() + column_of(in, place.image, 2 * place.y, 2 * place.x);
        largest =
            fmaxf(fmaxf(corner[0], corner[1]), fmaxf(corner[in.pitch()], corner[in.pitch() + 1]));
    }
    outputs[channel * out.stride() + column] = largest;
}

__global__ void pool_backward_kernel(Layout in, Layout out, const float* inputs,
                                     const float* output_gradients, float* input_gradients) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= out.stride()) {
        return;
    }
    const int channel = blockIdx.y;
    const Place place = place_of(out, column);
    if (!place.is_pixel) {
        return;
    }
    const int corner = channel * in.stride() + column_of(in, place.image, 2 * place.y, 2 * place.x);
    const int places[4] = {corner, corner + 1, corner + in.pitch(), corner + in.pitch() + 1};
    int best = 0;
    float largest = inputs[places[0]];
#pragma unroll
    for (int i = 1; i < 4; ++i) {
        const float value = inputs[places[i]];
        if (value > largest) {
            largest = value;
            best = i;
        }
    }
    const float gradient = output_gradients[channel * out.stride() + column];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        input_gradients[places[i]] = i == best ? gradient : 0.0f;
    }
}

// A row of features is one pixel of one channel, of all images.
__device__ int feature_column(const Layout& layout, int feature, int image) {
    const int pixels = layout.side * layout.side;
    const int pixel = feature % pixels;
    return feature / pixels * layout.stride() +
           column_of(layout, image, pixel / layout.side, pixel % layout.side);
}

__global__ void gather_features_kernel(Layout layout, const float* inputs, float* features) {
    const int image = blockIdx.x * blockDim.x + threadIdx.x;
    if (image < layout.images) {
        const int feature = blockIdx.y;
        features[feature * layout.images + image] = inputs[feature_column(layout, feature, image)];
    }
}

__global__ void scatter_features_kernel(Layout layout, const float* features, float* outputs) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= layout.stride()) {
        return;
    }
    const int channel = blockIdx.y;
    const Place place = place_of(layout, column);
    float value = 0.0f;
    if (place.is_pixel) {
        const int feature = (channel * layout.side + place.y) * layout.side + place.x;
        value = features[feature * layout.images + place.image];
    }
    outputs[channel * layout.stride() + column] = value;
}

__global__ void softmax_loss_kernel(int images, float* logits, const float* bias,
                                    const std::int32_t* labels, float* losses, float* right) {
    const int image = blockIdx.x * blockDim.x + threadIdx.x;
    if (image >= images) {
        return;
    }
    const int label = labels[image];
    float values[kClasses];
    float largest = 0.0f;
    int best = 0;
#pragma unroll
    for (int k = 0; k < kClasses; ++k) {
        values[k] = logits[k * images + image] + bias[k];
        if (k == 0 || values[k] > largest) {
            largest = values[k];
            best = k;
        }
    }
    float sum = 0.0f;
    float wanted = 0.0f;
#pragma unroll
    for (int k = 0; k < kClasses; ++k) {
        if (k == label) {
            wanted = values[k];
        }
        values[k] = expf(values[k] - largest);
        sum += values[k];
    }
#pragma unroll
    for (int k = 0; k < kClasses; ++k) {
        const float target = k == label ? 1.0f : 0.0f;
        logits[k * images + image] = (values[k] / sum - target) / static_cast<float>(images);
    }
    losses[image] = logf(sum) + largest - wanted;
    right[image] = best == label ? 1.0f : 0.0f;
}

// One block, a fixed tree: the same bits every time.
__global__ void summarize_kernel(int images, const float* losses, const float* right,
                                 float* results) {
    __shared__ float sums[2][kThreads];
    const int thread = threadIdx.x;
    float loss = 0.0f;
    float hits = 0.0f;
    for (int image = thread; image < images; image += kThreads) {
        loss += losses[image];
        hits += right[image];
    }
    sums[0][thread] = loss;
    sums[1][thread] = hits;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            sums[0][thread] += sums[0][thread + half];
            sums[1][thread] += sums[1][thread + half];
        }
    }
    if (thread == 0) {
        results[0] = sums[0][0] / static_cast<float>(images);
        results[1] = sums[1][0];
    }
}

__global__ void descend_kernel(int count, float* weights, float* momentum, const float* gradients,
                               float rate, float factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        const float speed = factor * momentum[i] + gradients[i];
        momentum[i] = speed;
        weights[i] -= rate * speed;
    }
}

__global__ void fill_kernel(int count, float* values, float value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = value;
    }
}

Layout pooled(const Layout& input) {
    return {input.channels, input.images, input.side / 2, input.border};
}

}  // namespace

void add_bias_relu(const Layout& layout, float* outputs, const float* bias, const float* residual,
                   const float* mask) {
    const int quads = layout.stride() / 4;
    add_bias_relu_kernel<<<dim3(blocks(quads), layout.channels), kThreads, 0, current_stream>>>(
        quads, reinterpret_cast<float4*>(outputs), bias, reinterpret_cast<const float4*>(residual),
        reinterpret_cast<const float4*>(mask));
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void relu_backward(const Layout& layout, float* gradients, const float* outputs) {
    const int quads = layout.channels * (layout.stride() / 4);
    relu_backward_kernel<<<blocks(quads), kThreads, 0, current_stream>>>(
        quads, reinterpret_cast<float4*>(gradients), reinterpret_cast<const float4*>(outputs));
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void pool(const Layout& input, const float* inputs, float* outputs) {
    const Layout output = pooled(input);
    pool_kernel<<<dim3(blocks(output.stride()), output.channels), kThreads, 0, current_stream>>>(
        input, output, inputs, outputs);
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void pool_backward(const Layout& input, const float* inputs, const float* output_gradients,
                   float* input_gradients) {
    const Layout output = pooled(input);
    pool_backward_kernel<<<dim3(blocks(output.stride()), output.channels), kThreads, 0,
                           current_stream>>>(input, output, inputs, output_gradients,
                                             input_gradients);
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void gather_features(const Layout& layout, const float* inputs, float* features) {
    const int count = layout.channels * layout.side * layout.side;
    gather_features_kernel<<<dim3(blocks(layout.images), count), kThreads, 0, current_stream>>>(
        layout, inputs, features);
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void scatter_features(const Layout& layout, const float* features, float* outputs) {
    scatter_features_kernel<<<dim3(blocks(layout.stride()), layout.channels), kThreads, 0,
                              current_stream>>>(layout, features, outputs);
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void softmax_loss(int images, float* logits, const float* bias, const std::int32_t* labels,
                  float* losses, float* right) {
    softmax_loss_kernel<<<blocks(images), kThreads, 0, current_stream>>>(images, logits, bias,
                                                                         labels, losses, right);
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void summarize(int images, const float* losses, const float* right, float* results) {
    summarize_kernel<<<1, kThreads, 0, current_stream>>>(images, losses, right, results);
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void descend(int count, float* weights, float* momentum, const float* gradients, float rate,
             float factor) {
    descend_kernel<<<blocks(count), kThreads, 0, current_stream>>>(count, weights, momentum,
                                                                   gradients, rate, factor);
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void fill(int count, float* values, float value) {
    fill_kernel<<<blocks(count), kThreads, 0, current_stream>>>(count, values, value);
    TRAIN_CNN_CHECK(cudaGetLastError());
}

void use_stream(cudaStream_t stream) { current_stream = stream; }

}  // namespace train_cnn
