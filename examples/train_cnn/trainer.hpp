// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cudnn_convolutions.hpp"
#include "device.hpp"
#include "digits.hpp"
#include "kernels.hpp"
#include "network.hpp"
#include "options.hpp"

namespace train_cnn {

/// The network on the device. Everything is ordered on the legacy default stream.
class Trainer {
  public:
    explicit Trainer(const Options& options);
    ~Trainer();
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    /// One step on these images. Returns when all of it is submitted.
    void step(const Digits& digits, const std::vector<int>& batch);

    /// Looks at these images without learning from them.
    void look(const Digits& digits, const std::vector<int>& batch);

    /// Of the last step or look, after a wait for it: the mean loss, and how many images were
    /// right.
    struct Verdict {
        float loss;
        float right;
    };
    Verdict verdict() const;

    Weights weights() const;

  private:
    /// What is learned of one layer.
    struct Learned {
        int weight_count;
        int bias_count;
        DeviceBuffer weights;
        DeviceBuffer weight_momentum;
        DeviceBuffer bias;
        DeviceBuffer bias_momentum;
    };

    Learned upload(const std::vector<float>& weights, const std::vector<float>& bias) const;
    /// Activations and gradients, one allocation each or parts of one.
    void allocate_tensors();
    Layout image_layout() const;
    Layout output_layout(int layer) const;
    Layout pooled_layout() const;
    void forward();
    void load(const Digits& digits, const std::vector<int>& batch);
    /// All of a step on the device.
    void compute();
    void launch_graph();
    const float* input_of(int layer) const;
    void convolve(int layer);
    void convolve_by_products(int layer);
    void classify();
    void backward_classifier();
    void backward_convolution(int layer);
    void backward_weights(int layer, const float* gradient);
    void backward_inputs(int layer, const float* gradient);
    void backward_pool();
    void descend_layer(Learned& learned);
    /// sums[c] = sum of row c of a matrix of `columns` columns, rows `stride` apart.
    void sum_rows(int rows, int columns, const float* values, int stride, float* sums);
    void done(DeviceBuffer& buffer);

    Options options_;
    Network network_;
    cublasHandle_t blas_ = nullptr;
    /// For a graph, else the default stream. It and the default stream wait for each other.
    cudaStream_t stream_ = nullptr;
    cudaGraphExec_t graph_ = nullptr;
    int steps_ = 0;
    std::vector<Learned> convolutions_;
    Learned classifier_;
    /// With --cudnn; weights then lie with the taps last.
    std::unique_ptr<CudnnConvolutions> cudnn_;

    /// With --alloc arena: of which the outputs, `pooled_` and the gradients are parts.
    DeviceBuffer arena_;
    /// The images, then each layer's output; `pooled_` comes between.
    DeviceBuffer images_;
    std::vector<DeviceBuffer> outputs_;
    DeviceBuffer pooled_;
    /// Of the loss by a layer's output and by its input, by turns; made anew for every layer with
    /// --alloc iteration.
    DeviceBuffer gradients_[2];
    int current_ = 0;

    /// What the classifier sees, later the gradients of it.
    DeviceBuffer features_;
    DeviceBuffer logits_;
    DeviceBuffer labels_;
    DeviceBuffer losses_;
    DeviceBuffer right_;
    DeviceBuffer results_;
    DeviceBuffer weight_gradient_;
    DeviceBuffer bias_gradient_;
    DeviceBuffer ones_;
    DeviceBuffer masks_[2];
    DeviceBuffer workspace_;
};

}  // namespace train_cnn
