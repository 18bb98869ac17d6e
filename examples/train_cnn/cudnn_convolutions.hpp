// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "kernels.hpp"
#include "network.hpp"

namespace train_cnn {

/// The network's convolutions by cuDNN, which is opened at run time: the program needs none until
/// it is asked for. Tensors lie as kernels.hpp draws them, which to cuDNN are tensors with gaps
/// between the rows; weights lie as [output][input][tap].
class CudnnConvolutions {
  public:
    /// Ends the program where there is no cuDNN. Work is ordered on `stream`.
    CudnnConvolutions(const Network& network, int images, cudaStream_t stream);
    ~CudnnConvolutions();
    CudnnConvolutions(const CudnnConvolutions&) = delete;
    CudnnConvolutions& operator=(const CudnnConvolutions&) = delete;

    /// Writes the pixels of `outputs`, and nothing between them.
    void forward(int layer, const float* inputs, const float* weights, float* outputs);
    void backward_weights(int layer, const float* inputs, const float* output_gradients,
                          float* weight_gradients);
    void backward_bias(int layer, const float* output_gradients, float* bias_gradients);
    /// Adds to the pixels of `input_gradients`.
    void backward_inputs(int layer, const float* output_gradients, const float* weights,
                         float* input_gradients);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Weights from [tap][output][input] to [output][input][tap], and back.
std::vector<float> taps_last(const Convolution& layer, const std::vector<float>& weights);
std::vector<float> taps_first(const Convolution& layer, const std::vector<float>& weights);

}  // namespace train_cnn
