// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cudnn_convolutions.hpp"

#include <algorithm>
#include <cstddef>

#include "device.hpp"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#include <dlfcn.h>
#endif

namespace train_cnn {
namespace {

/// Calls visit(place in [tap][output][input], place in [output][input][tap]).
template <typename Visit>
void for_each_weight(const Convolution& layer, const Visit& visit) {
    std::size_t taps_first = 0;
    for (int tap = 0; tap < layer.taps(); ++tap) {
        for (int pair = 0; pair < layer.outputs * layer.inputs; ++pair) {
            visit(taps_first++, static_cast<std::size_t>(pair) * layer.taps() + tap);
        }
    }
}

}  // namespace

std::vector<float> taps_last(const Convolution& layer, const std::vector<float>& weights) {
    std::vector<float> result(weights.size());
    for_each_weight(layer,
                    [&](std::size_t first, std::size_t last) { result[last] = weights[first]; });
    return result;
}

std::vector<float> taps_first(const Convolution& layer, const std::vector<float>& weights) {
    std::vector<float> result(weights.size());
    for_each_weight(layer,
                    [&](std::size_t first, std::size_t last) { result[first] = weights[last]; });
    return result;
}

#if __has_include(<cudnn.h>)

namespace {

constexpr float kOne = 1.0f;
constexpr float kZero = 0.0f;

#define TRAIN_CNN_CUDNN(X)                           \
    X(cudnnCreate)                                   \
    X(cudnnDestroy)                                  \
    X(cudnnSetStream)                                \
    X(cudnnGetErrorString)                           \
    X(cudnnCreateTensorDescriptor)                   \
    X(cudnnSetTensor4dDescriptorEx)                  \
    X(cudnnDestroyTensorDescriptor)                  \
    X(cudnnCreateFilterDescriptor)                   \
    X(cudnnSetFilter4dDescriptor)                    \
    X(cudnnDestroyFilterDescriptor)                  \
    X(cudnnCreateConvolutionDescriptor)              \
    X(cudnnSetConvolution2dDescriptor)               \
    X(cudnnSetConvolutionMathType)                   \
    X(cudnnDestroyConvolutionDescriptor)             \
    X(cudnnGetConvolutionForwardAlgorithm_v7)        \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7)   \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7) \
    X(cudnnConvolutionForward)                       \
    X(cudnnConvolutionBackwardData)                  \
    X(cudnnConvolutionBackwardFilter)                \
    X(cudnnConvolutionBackwardBias)

struct Functions {
#define TRAIN_CNN_MEMBER(name) decltype(&::name) name = nullptr;
    TRAIN_CNN_CUDNN(TRAIN_CNN_MEMBER)
#undef TRAIN_CNN_MEMBER
};

const Functions& cudnn() {
    static const Functions functions = [] {
        void* library = dlopen("libcudnn.so.9", RTLD_NOW);
        if (library == nullptr) {
            fail("--cudnn", dlerror());
        }
        Functions found;
#define TRAIN_CNN_FIND(name)                                                 \
    found.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
    if (found.name == nullptr) {                                             \
        fail("--cudnn", "libcudnn.so.9 lacks " #name);                       \
    }
        TRAIN_CNN_CUDNN(TRAIN_CNN_FIND)
#undef TRAIN_CNN_FIND
        return found;
    }();
    return functions;
}

void check(cudnnStatus_t status, const char* call) {
    if (status != CUDNN_STATUS_SUCCESS) {
        fail(call, cudnn().cudnnGetErrorString(status));
    }
}

#define TRAIN_CNN_CUDNN_CHECK(call) check(cudnn().call, #call)

/// The first that works, and that gives the same bits every time.
template <typename Perf>
Perf choose(const Perf* results, int count, const char* what) {
    const Perf* found = std::find_if(results, results + count, [](const Perf& result) {
        return result.status == CUDNN_STATUS_SUCCESS && result.determinism == CUDNN_DETERMINISTIC;
    });
    if (found == results + count) {
        fail(what, "cuDNN has no deterministic algorithm for it");
    }
    return *found;
}

}  // namespace

struct CudnnConvolutions::Impl {
    struct Layer {
        cudnnTensorDescriptor_t input = nullptr;
        cudnnTensorDescriptor_t output = nullptr;
        cudnnTensorDescriptor_t bias = nullptr;
        cudnnFilterDescriptor_t weights = nullptr;
        cudnnConvolutionDescriptor_t convolution = nullptr;
        cudnnConvolutionFwdAlgoPerf_t forward;
        cudnnConvolutionBwdDataAlgoPerf_t backward_inputs;
        cudnnConvolutionBwdFilterAlgoPerf_t backward_weights;
        std::size_t workspace_bytes() const {
            return std::max({forward.memory, backward_inputs.memory, backward_weights.memory});
        }
    };

    /// Pixels only: the zeros between are cuDNN's padding.
    static cudnnTensorDescriptor_t describe(const Layout& layout) {
        cudnnTensorDescriptor_t tensor = nullptr;
        TRAIN_CNN_CUDNN_CHECK(cudnnCreateTensorDescriptor(&tensor));
        TRAIN_CNN_CUDNN_CHECK(cudnnSetTensor4dDescriptorEx(
            tensor, CUDNN_DATA_FLOAT, layout.images, layout.channels, layout.side, layout.side,
            layout.image_floats(), layout.stride(), layout.pitch(), 1));
        return tensor;
    }

    Layer make_layer(const Convolution& shape, int images) const {
        Layer layer;
        layer.input = describe({shape.inputs, images, shape.side, shape.border()});
        layer.output = describe({shape.outputs, images, shape.side, shape.border()});
        TRAIN_CNN_CUDNN_CHECK(cudnnCreateTensorDescriptor(&layer.bias));
        TRAIN_CNN_CUDNN_CHECK(cudnnSetTensor4dDescriptorEx(
            layer.bias, CUDNN_DATA_FLOAT, 1, shape.outputs, 1, 1, shape.outputs, 1, 1, 1));
        TRAIN_CNN_CUDNN_CHECK(cudnnCreateFilterDescriptor(&layer.weights));
        TRAIN_CNN_CUDNN_CHECK(cudnnSetFilter4dDescriptor(layer.weights, CUDNN_DATA_FLOAT,
                                                         CUDNN_TENSOR_NCHW, shape.outputs,
                                                         shape.inputs, shape.filter, shape.filter));
        TRAIN_CNN_CUDNN_CHECK(cudnnCreateConvolutionDescriptor(&layer.convolution));
        const int border = shape.border();
        TRAIN_CNN_CUDNN_CHECK(cudnnSetConvolution2dDescriptor(layer.convolution, border, border, 1,
                                                              1, 1, 1, CUDNN_CROSS_CORRELATION,
                                                              CUDNN_DATA_FLOAT));
        TRAIN_CNN_CUDNN_CHECK(cudnnSetConvolutionMathType(layer.convolution, CUDNN_FMA_MATH));
        choose_algorithms(layer);
        return layer;
    }

    void choose_algorithms(Layer& layer) const {
        constexpr int kMost = 10;
        int count = 0;
        cudnnConvolutionFwdAlgoPerf_t forward[kMost];
        TRAIN_CNN_CUDNN_CHECK(cudnnGetConvolutionForwardAlgorithm_v7(
            handle, layer.input, layer.weights, layer.convolution, layer.output, kMost, &count,
            forward));
        layer.forward = choose(forward, count, "forward");
        cudnnConvolutionBwdDataAlgoPerf_t inputs[kMost];
        TRAIN_CNN_CUDNN_CHECK(cudnnGetConvolutionBackwardDataAlgorithm_v7(
            handle, layer.weights, layer.output, layer.convolution, layer.input, kMost, &count,
            inputs));
        layer.backward_inputs = choose(inputs, count, "backward by the inputs");
        cudnnConvolutionBwdFilterAlgoPerf_t weights[kMost];
        TRAIN_CNN_CUDNN_CHECK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            handle, layer.input, layer.output, layer.convolution, layer.weights, kMost, &count,
            weights));
        layer.backward_weights = choose(weights, count, "backward by the weights");
    }

    static const float* pixels(const float* tensor) { return tensor + Layout::kLead; }
    static float* pixels(float* tensor) { return tensor + Layout::kLead; }

    cudnnHandle_t handle = nullptr;
    std::vector<Layer> layers;
    DeviceBuffer workspace;
};

CudnnConvolutions::CudnnConvolutions(const Network& network, int images, cudaStream_t stream)
    : impl_(std::make_unique<Impl>()) {
    TRAIN_CNN_CUDNN_CHECK(cudnnCreate(&impl_->handle));
    TRAIN_CNN_CUDNN_CHECK(cudnnSetStream(impl_->handle, stream));
    std::size_t workspace_bytes = 0;
    for (const Convolution& shape : network.convolutions) {
        impl_->layers.push_back(impl_->make_layer(shape, images));
        workspace_bytes = std::max(workspace_bytes, impl_->layers.back().workspace_bytes());
    }
    if (workspace_bytes != 0) {
        impl_->workspace = DeviceBuffer(workspace_bytes);
    }
}

CudnnConvolutions::~CudnnConvolutions() {
    for (Impl::Layer& layer : impl_->layers) {
        for (cudnnTensorDescriptor_t tensor : {layer.input, layer.output, layer.bias}) {
            static_cast<void>(cudnn().cudnnDestroyTensorDescriptor(tensor));
        }
        static_cast<void>(cudnn().cudnnDestroyFilterDescriptor(layer.weights));
        static_cast<void>(cudnn().cudnnDestroyConvolutionDescriptor(layer.convolution));
    }
    static_cast<void>(cudnn().cudnnDestroy(impl_->handle));
}

void CudnnConvolutions::forward(int layer, const float* inputs, const float* weights,
                                float* outputs) {
    const Impl::Layer& l = impl_->layers[layer];
    TRAIN_CNN_CUDNN_CHECK(
        cudnnConvolutionForward(impl_->handle, &kOne, l.input, Impl::pixels(inputs), l.weights,
                                weights, l.convolution, l.forward.algo, impl_->workspace.floats(),
                                impl_->workspace.bytes(), &kZero, l.output, Impl::pixels(outputs)));
}

void CudnnConvolutions::backward_weights(int layer, const float* inputs,
                                         const float* output_gradients, float* weight_gradients) {
    const Impl::Layer& l = impl_->layers[layer];
    TRAIN_CNN_CUDNN_CHECK(cudnnConvolutionBackwardFilter(
        impl_->handle, &kOne, l.input, Impl::pixels(inputs), l.output,
        Impl::pixels(output_gradients), l.convolution, l.backward_weights.algo,
        impl_->workspace.floats(), impl_->workspace.bytes(), &kZero, l.weights, weight_gradients));
}

void CudnnConvolutions::backward_bias(int layer, const float* output_gradients,
                                      float* bias_gradients) {
    const Impl::Layer& l = impl_->layers[layer];
    TRAIN_CNN_CUDNN_CHECK(cudnnConvolutionBackwardBias(impl_->handle, &kOne, l.output,
                                                       Impl::pixels(output_gradients), &kZero,
                                                       l.bias, bias_gradients));
}

void CudnnConvolutions::backward_inputs(int layer, const float* output_gradients,
                                        const float* weights, float* input_gradients) {
    const Impl::Layer& l = impl_->layers[layer];
    TRAIN_CNN_CUDNN_CHECK(cudnnConvolutionBackwardData(
        impl_->handle, &kOne, l.weights, weights, l.output, Impl::pixels(output_gradients),
        l.convolution, l.backward_inputs.algo, impl_->workspace.floats(), impl_->workspace.bytes(),
        &kOne, l.input, Impl::pixels(input_gradients)));
}

#else

struct CudnnConvolutions::Impl {};

CudnnConvolutions::CudnnConvolutions(const Network&, int, cudaStream_t) {
    fail("--cudnn", "this train_cnn was built without cuDNN's headers");
}
CudnnConvolutions::~CudnnConvolutions() = default;
void CudnnConvolutions::forward(int, const float*, const float*, float*) {}
void CudnnConvolutions::backward_weights(int, const float*, const float*, float*) {}
void CudnnConvolutions::backward_bias(int, const float*, float*) {}
void CudnnConvolutions::backward_inputs(int, const float*, const float*, float*) {}

#endif

}  // namespace train_cnn
