// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// cuDNN's calls, for what they say about the launches that they make: which operands are written.

#include "interposer/cudnn_call.hpp"

// Convolutions
LIBSWAP_CUDNN_HOOK(cudnnConvolutionForward,
                   (void* handle, const void* alpha, void* x_desc, const void* x, void* w_desc,
                    const void* w, void* convolution, int algorithm, void* workspace,
                    std::size_t bytes, const void* beta, void* y_desc, void* y),
                   (handle, alpha, x_desc, x, w_desc, w, convolution, algorithm, workspace, bytes,
                    beta, y_desc, y),
                   reads(x), reads(w), writes(workspace), writes(y))

LIBSWAP_CUDNN_HOOK(cudnnConvolutionBackwardData,
                   (void* handle, const void* alpha, void* w_desc, const void* w, void* dy_desc,
                    const void* dy, void* convolution, int algorithm, void* workspace,
                    std::size_t bytes, const void* beta, void* dx_desc, void* dx),
                   (handle, alpha, w_desc, w, dy_desc, dy, convolution, algorithm, workspace, bytes,
                    beta, dx_desc, dx),
                   reads(w), reads(dy), writes(workspace), writes(dx))

LIBSWAP_CUDNN_HOOK(cudnnConvolutionBackwardFilter,
                   (void* handle, const void* alpha, void* x_desc, const void* x, void* dy_desc,
                    const void* dy, void* convolution, int algorithm, void* workspace,
                    std::size_t bytes, const void* beta, void* dw_desc, void* dw),
                   (handle, alpha, x_desc, x, dy_desc, dy, convolution, algorithm, workspace, bytes,
                    beta, dw_desc, dw),
                   reads(x), reads(dy), writes(workspace), writes(dw))

LIBSWAP_CUDNN_HOOK(cudnnConvolutionBackwardBias,
                   (void* handle, const void* alpha, void* dy_desc, const void* dy,
                    const void* beta, void* db_desc, void* db),
                   (handle, alpha, dy_desc, dy, beta, db_desc, db), reads(dy), writes(db))

LIBSWAP_CUDNN_HOOK(cudnnConvolutionBiasActivationForward,
                   (void* handle, const void* alpha1, void* x_desc, const void* x, void* w_desc,
                    const void* w, void* convolution, int algorithm, void* workspace,
                    std::size_t bytes, const void* alpha2, void* z_desc, const void* z,
                    void* bias_desc, const void* bias, void* activation, void* y_desc, void* y),
                   (handle, alpha1, x_desc, x, w_desc, w, convolution, algorithm, workspace, bytes,
                    alpha2, z_desc, z, bias_desc, bias, activation, y_desc, y),
                   reads(x), reads(w), reads(z), reads(bias), writes(workspace), writes(y))

// Activation, pooling, softmax
LIBSWAP_CUDNN_HOOK(cudnnActivationForward,
                   (void* handle, void* activation, const void* alpha, void* x_desc, const void* x,
                    const void* beta, void* y_desc, void* y),
                   (handle, activation, alpha, x_desc, x, beta, y_desc, y), reads(x), writes(y))

LIBSWAP_CUDNN_HOOK(cudnnActivationBackward,
                   (void* handle, void* activation, const void* alpha, void* y_desc, const void* y,
                    void* dy_desc, const void* dy, void* x_desc, const void* x, const void* beta,
                    void* dx_desc, void* dx),
                   (handle, activation, alpha, y_desc, y, dy_desc, dy, x_desc, x, beta, dx_desc,
                    dx),
                   reads(y), reads(dy), reads(x), writes(dx))

LIBSWAP_CUDNN_HOOK(cudnnPoolingForward,
                   (void* handle, void* pooling, const void* alpha, void* x_desc, const void* x,
                    const void* beta, void* y_desc, void* y),
                   (handle, pooling, alpha, x_desc, x, beta, y_desc, y), reads(x), writes(y))

LIBSWAP_CUDNN_HOOK(cudnnPoolingBackward,
                   (void* handle, void* pooling, const void* alpha, void* y_desc, const void* y,
                    void* dy_desc, const void* dy, void* x_desc, const void* x, const void* beta,
                    void* dx_desc, void* dx),
                   (handle, pooling, alpha, y_desc, y, dy_desc, dy, x_desc, x, beta, dx_desc, dx),
                   reads(y), reads(dy), reads(x), writes(dx))

LIBSWAP_CUDNN_HOOK(cudnnSoftmaxForward,
                   (void* handle, int algorithm, int mode, const void* alpha, void* x_desc,
                    const void* x, const void* beta, void* y_desc, void* y),
                   (handle, algorithm, mode, alpha, x_desc, x, beta, y_desc, y), reads(x),
                   writes(y))

LIBSWAP_CUDNN_HOOK(cudnnSoftmaxBackward,
                   (void* handle, int algorithm, int mode, const void* alpha, void* y_desc,
                    const void* y, void* dy_desc, const void* dy, const void* beta, void* dx_desc,
                    void* dx),
                   (handle, algorithm, mode, alpha, y_desc, y, dy_desc, dy, beta, dx_desc, dx),
                   reads(y), reads(dy), writes(dx))

// Batch normalisation
LIBSWAP_CUDNN_HOOK(cudnnBatchNormalizationForwardTraining,
                   (void* handle, int mode, const void* alpha, const void* beta, void* x_desc,
                    const void* x, void* y_desc, void* y, void* param_desc, const void* scale,
                    const void* bias, double factor, void* mean, void* variance, double epsilon,
                    void* saved_mean, void* saved_inverse),
                   (handle, mode, alpha, beta, x_desc, x, y_desc, y, param_desc, scale, bias,
                    factor, mean, variance, epsilon, saved_mean, saved_inverse),
                   reads(x), writes(y), reads(scale), reads(bias), writes(mean), writes(variance),
                   writes(saved_mean), writes(saved_inverse))

LIBSWAP_CUDNN_HOOK(cudnnBatchNormalizationForwardTrainingEx,
                   (void* handle, int mode, int ops, const void* alpha, const void* beta,
                    void* x_desc, const void* x, void* z_desc, const void* z, void* y_desc, void* y,
                    void* param_desc, const void* scale, const void* bias, double factor,
                    void* mean, void* variance, double epsilon, void* saved_mean,
                    void* saved_inverse, void* activation, void* workspace, std::size_t bytes,
                    void* reserve, std::size_t reserve_bytes),
                   (handle, mode, ops, alpha, beta, x_desc, x, z_desc, z, y_desc, y, param_desc,
                    scale, bias, factor, mean, variance, epsilon, saved_mean, saved_inverse,
                    activation, workspace, bytes, reserve, reserve_bytes),
                   reads(x), reads(z), writes(y), reads(scale), reads(bias), writes(mean),
                   writes(variance), writes(saved_mean), writes(saved_inverse), writes(workspace),
                   writes(reserve))

LIBSWAP_CUDNN_HOOK(cudnnBatchNormalizationForwardInference,
                   (void* handle, int mode, const void* alpha, const void* beta, void* x_desc,
                    const void* x, void* y_desc, void* y, void* param_desc, const void* scale,
                    const void* bias, const void* mean, const void* variance, double epsilon),
                   (handle, mode, alpha, beta, x_desc, x, y_desc, y, param_desc, scale, bias, mean,
                    variance, epsilon),
                   reads(x), writes(y), reads(scale), reads(bias), reads(mean), reads(variance))

LIBSWAP_CUDNN_HOOK(cudnnBatchNormalizationBackward,
                   (void* handle, int mode, const void* alpha_data, const void* beta_data,
                    const void* alpha_param, const void* beta_param, void* x_desc, const void* x,
                    void* dy_desc, const void* dy, void* dx_desc, void* dx, void* param_desc,
                    const void* scale, void* dscale, void* dbias, double epsilon,
                    const void* saved_mean, const void* saved_inverse),
                   (handle, mode, alpha_data, beta_data, alpha_param, beta_param, x_desc, x,
                    dy_desc, dy, dx_desc, dx, param_desc, scale, dscale, dbias, epsilon, saved_mean,
                    saved_inverse),
                   reads(x), reads(dy), writes(dx), reads(scale), writes(dscale), writes(dbias),
                   reads(saved_mean), reads(saved_inverse))

LIBSWAP_CUDNN_HOOK(cudnnBatchNormalizationBackwardEx,
                   (void* handle, int mode, int ops, const void* alpha_data, const void* beta_data,
                    const void* alpha_param, const void* beta_param, void* x_desc, const void* x,
                    void* y_desc, const void* y, void* dy_desc, const void* dy, void* dz_desc,
                    void* dz, void* dx_desc, void* dx, void* param_desc, const void* scale,
                    const void* bias, void* dscale, void* dbias, double epsilon,
                    const void* saved_mean, const void* saved_inverse, void* activation,
                    void* workspace, std::size_t bytes, void* reserve, std::size_t reserve_bytes),
                   (handle, mode, ops, alpha_data, beta_data, alpha_param, beta_param, x_desc, x,
                    y_desc, y, dy_desc, dy, dz_desc, dz, dx_desc, dx, param_desc, scale, bias,
                    dscale, dbias, epsilon, saved_mean, saved_inverse, activation, workspace, bytes,
                    reserve, reserve_bytes),
                   reads(x), reads(y), reads(dy), writes(dz), writes(dx), reads(scale), reads(bias),
                   writes(dscale), writes(dbias), reads(saved_mean), reads(saved_inverse),
                   writes(workspace), writes(reserve))

// Dropout and recurrent networks
LIBSWAP_CUDNN_HOOK(cudnnDropoutForward,
                   (void* handle, void* dropout, void* x_desc, const void* x, void* y_desc, void* y,
                    void* reserve, std::size_t bytes),
                   (handle, dropout, x_desc, x, y_desc, y, reserve, bytes), reads(x), writes(y),
                   writes(reserve))

LIBSWAP_CUDNN_HOOK(cudnnDropoutBackward,
                   (void* handle, void* dropout, void* dy_desc, const void* dy, void* dx_desc,
                    void* dx, void* reserve, std::size_t bytes),
                   (handle, dropout, dy_desc, dy, dx_desc, dx, reserve, bytes), reads(dy),
                   writes(dx), reads(reserve))

LIBSWAP_CUDNN_HOOK(cudnnRNNForward,
                   (void* handle, void* rnn, int mode, const std::int32_t* lengths, void* x_desc,
                    const void* x, void* y_desc, void* y, void* h_desc, const void* hx, void* hy,
                    void* c_desc, const void* cx, void* cy, std::size_t weight_bytes,
                    const void* weights, std::size_t bytes, void* workspace,
                    std::size_t reserve_bytes, void* reserve),
                   (handle, rnn, mode, lengths, x_desc, x, y_desc, y, h_desc, hx, hy, c_desc, cx,
                    cy, weight_bytes, weights, bytes, workspace, reserve_bytes, reserve),
                   reads(lengths), reads(x), writes(y), reads(hx), writes(hy), reads(cx),
                   writes(cy), reads(weights), writes(workspace), writes(reserve))

LIBSWAP_CUDNN_HOOK(cudnnRNNBackwardData_v8,
                   (void* handle, void* rnn, const std::int32_t* lengths, void* y_desc,
                    const void* y, const void* dy, void* x_desc, void* dx, void* h_desc,
                    const void* hx, const void* dhy, void* dhx, void* c_desc, const void* cx,
                    const void* dcy, void* dcx, std::size_t weight_bytes, const void* weights,
                    std::size_t bytes, void* workspace, std::size_t reserve_bytes, void* reserve),
                   (handle, rnn, lengths, y_desc, y, dy, x_desc, dx, h_desc, hx, dhy, dhx, c_desc,
                    cx, dcy, dcx, weight_bytes, weights, bytes, workspace, reserve_bytes, reserve),
                   reads(lengths), reads(y), reads(dy), writes(dx), reads(hx), reads(dhy),
                   writes(dhx), reads(cx), reads(dcy), writes(dcx), reads(weights),
                   writes(workspace), writes(reserve))

LIBSWAP_CUDNN_HOOK(cudnnRNNBackwardWeights_v8,
                   (void* handle, void* rnn, int add, const std::int32_t* lengths, void* x_desc,
                    const void* x, void* h_desc, const void* hx, void* y_desc, const void* y,
                    std::size_t weight_bytes, void* dweights, std::size_t bytes, void* workspace,
                    std::size_t reserve_bytes, void* reserve),
                   (handle, rnn, add, lengths, x_desc, x, h_desc, hx, y_desc, y, weight_bytes,
                    dweights, bytes, workspace, reserve_bytes, reserve),
                   reads(lengths), reads(x), reads(hx), reads(y), writes(dweights),
                   writes(workspace), writes(reserve))

// Tensors
LIBSWAP_CUDNN_HOOK(cudnnAddTensor,
                   (void* handle, const void* alpha, void* a_desc, const void* a, const void* beta,
                    void* c_desc, void* c),
                   (handle, alpha, a_desc, a, beta, c_desc, c), reads(a), writes(c))

LIBSWAP_CUDNN_HOOK(cudnnTransformTensor,
                   (void* handle, const void* alpha, void* x_desc, const void* x, const void* beta,
                    void* y_desc, void* y),
                   (handle, alpha, x_desc, x, beta, y_desc, y), reads(x), writes(y))

LIBSWAP_CUDNN_HOOK(cudnnOpTensor,
                   (void* handle, void* op, const void* alpha1, void* a_desc, const void* a,
                    const void* alpha2, void* b_desc, const void* b, const void* beta, void* c_desc,
                    void* c),
                   (handle, op, alpha1, a_desc, a, alpha2, b_desc, b, beta, c_desc, c), reads(a),
                   reads(b), writes(c))

LIBSWAP_CUDNN_HOOK(cudnnReduceTensor,
                   (void* handle, void* reduction, void* indices, std::size_t indices_bytes,
                    void* workspace, std::size_t bytes, const void* alpha, void* a_desc,
                    const void* a, const void* beta, void* c_desc, void* c),
                   (handle, reduction, indices, indices_bytes, workspace, bytes, alpha, a_desc, a,
                    beta, c_desc, c),
                   writes(indices), writes(workspace), reads(a), writes(c))
