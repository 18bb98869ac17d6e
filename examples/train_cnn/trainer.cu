// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "trainer.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace train_cnn {
namespace {

constexpr float kOne = 1.0f;
constexpr float kZero = 0.0f;
// Of tensors in one allocation: cudaMalloc aligns to no more.
constexpr std::size_t kAlignment = 512;
// For cuBLAS, so that it takes no memory that is not counted.
constexpr std::size_t kWorkspaceBytes = std::size_t{256} << 10;

DeviceBuffer floats(std::size_t count) { return DeviceBuffer(count * sizeof(float)); }

DeviceBuffer zeros(std::size_t count) {
    DeviceBuffer buffer = floats(count);
    TRAIN_CNN_CHECK(cudaMemset(buffer.floats(), 0, buffer.bytes()));
    return buffer;
}

DeviceBuffer on_device(const std::vector<float>& values) {
    DeviceBuffer buffer = floats(values.size());
    TRAIN_CNN_CHECK(
        cudaMemcpy(buffer.floats(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    return buffer;
}

std::vector<float> on_host(const DeviceBuffer& buffer) {
    std::vector<float> values(buffer.bytes() / sizeof(float));
    TRAIN_CNN_CHECK(
        cudaMemcpy(values.data(), buffer.floats(), buffer.bytes(), cudaMemcpyDeviceToHost));
    return values;
}

/// 1 at the pixels of a row, else 0.
std::vector<float> mask_of(const Layout& layout) {
    std::vector<float> mask(layout.stride());
    for (int column = 0; column < layout.columns(); ++column) {
        const int rest = column % layout.image_floats();
        const bool is_pixel =
            rest / layout.pitch() < layout.side && rest % layout.pitch() < layout.side;
        mask[Layout::kLead + column] = is_pixel ? 1.0f : 0.0f;
    }
    return mask;
}

}  // namespace

Trainer::Trainer(const Options& options) : options_(options), network_(make_network(options)) {
    TRAIN_CNN_CHECK(cublasCreate(&blas_));
    if (options.graph) {
        TRAIN_CNN_CHECK(cudaStreamCreate(&stream_));
        TRAIN_CNN_CHECK(cublasSetStream(blas_, stream_));
        use_stream(stream_);
    }
    workspace_ = DeviceBuffer(kWorkspaceBytes);
    TRAIN_CNN_CHECK(cublasSetWorkspace(blas_, workspace_.floats(), workspace_.bytes()));

    const Weights first = first_weights(network_, options.seed);
    int most_weights = static_cast<int>(first.classifier.size());
    if (options.cudnn) {
        cudnn_ = std::make_unique<CudnnConvolutions>(network_, options.batch, stream_);
    }
    for (std::size_t i = 0; i < network_.convolutions.size(); ++i) {
        const std::vector<float>& weights = first.convolution[i];
        convolutions_.push_back(
            upload(cudnn_ ? taps_last(network_.convolutions[i], weights) : weights, first.bias[i]));
        most_weights = std::max(most_weights, convolutions_.back().weight_count);
    }
    classifier_ = upload(first.classifier, first.classifier_bias);
    weight_gradient_ = floats(most_weights);
    bias_gradient_ = floats(std::max(options.channels, kClasses));

    const Layout full = output_layout(0);
    const Layout half = pooled_layout();
    masks_[0] = on_device(mask_of(full));
    masks_[1] = on_device(mask_of(half));
    ones_ = floats(full.columns());
    fill(full.columns(), ones_.floats(), 1.0f);

    const std::size_t features = network_.features();
    images_ = DeviceBuffer(image_layout().bytes());
    features_ = floats(features * options.batch);
    logits_ = floats(static_cast<std::size_t>(kClasses) * options.batch);
    labels_ = floats(options.batch);
    losses_ = floats(options.batch);
    right_ = floats(options.batch);
    results_ = floats(2);
    outputs_.resize(network_.convolutions.size());
    if (!options.alloc_each_iteration) {
        allocate_tensors();
    }
}

void Trainer::allocate_tensors() {
    std::vector<std::pair<DeviceBuffer*, std::size_t>> tensors;
    for (int i = 0; i < static_cast<int>(outputs_.size()); ++i) {
        tensors.emplace_back(&outputs_[i], output_layout(i).bytes());
    }
    tensors.emplace_back(&pooled_, pooled_layout().bytes());
    for (DeviceBuffer& gradient : gradients_) {
        tensors.emplace_back(&gradient, output_layout(0).bytes());
    }
    if (!options_.alloc_arena) {
        for (const auto& [tensor, bytes] : tensors) {
            tensor->ensure(bytes);
        }
        return;
    }
    const auto aligned = [](std::size_t bytes) {
        return (bytes + kAlignment - 1) / kAlignment * kAlignment;
    };
    std::size_t total = 0;
    for (const auto& [tensor, bytes] : tensors) {
        total += aligned(bytes);
    }
    arena_ = DeviceBuffer(total);
    std::size_t offset = 0;
    for (const auto& [tensor, bytes] : tensors) {
        *tensor = arena_.part(offset, bytes);
        offset += aligned(bytes);
    }
}

Trainer::~Trainer() {
    if (blas_ != nullptr) {
        static_cast<void>(cublasDestroy(blas_));
    }
    if (graph_ != nullptr) {
        static_cast<void>(cudaGraphExecDestroy(graph_));
    }
    if (stream_ != nullptr) {
        use_stream(nullptr);
        static_cast<void>(cudaStreamDestroy(stream_));
    }
}

Trainer::Learned Trainer::upload(const std::vector<float>& weights,
                                 const std::vector<float>& bias) const {
    return {static_cast<int>(weights.size()),
            static_cast<int>(bias.size()),
            on_device(weights),
            zeros(weights.size()),
            on_device(bias),
            zeros(bias.size())};
}

Layout Trainer::output_layout(int layer) const {
    const Convolution& convolution = network_.convolutions[layer];
    return {convolution.outputs, options_.batch, convolution.side, convolution.border()};
}

Layout Trainer::image_layout() const {
    return {1, options_.batch, kSide, network_.convolutions[0].border()};
}

Layout Trainer::pooled_layout() const {
    const Layout input = output_layout(network_.pooled_before - 1);
    return {input.channels, input.images, input.side / 2, input.border};
}

void Trainer::step(const Digits& digits, const std::vector<int>& batch) {
    load(digits, batch);
    // The first step loads what is loaded late: modules, and the library's choice of kernels.
    if (options_.graph && steps_++ != 0) {
        launch_graph();
    } else {
        compute();
    }
}

void Trainer::launch_graph() {
    if (graph_ == nullptr) {
        cudaGraph_t graph = nullptr;
        TRAIN_CNN_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
        compute();
        TRAIN_CNN_CHECK(cudaStreamEndCapture(stream_, &graph));
        TRAIN_CNN_CHECK(cudaGraphInstantiate(&graph_, graph, 0));
        TRAIN_CNN_CHECK(cudaGraphDestroy(graph));
    }
    TRAIN_CNN_CHECK(cudaGraphLaunch(graph_, stream_));
}

void Trainer::compute() {
    forward();
    backward_classifier();
    for (int i = static_cast<int>(outputs_.size()) - 1; i >= 0; --i) {
        backward_convolution(i);
        if (i == network_.pooled_before) {
            backward_pool();
        }
    }
}

void Trainer::look(const Digits& digits, const std::vector<int>& batch) {
    load(digits, batch);
    forward();
    for (DeviceBuffer& output : outputs_) {
        done(output);
    }
    done(pooled_);
}

void Trainer::forward() {
    for (int i = 0; i < static_cast<int>(outputs_.size()); ++i) {
        if (i == network_.pooled_before) {
            const Layout input = output_layout(i - 1);
            pooled_.ensure(pooled_layout().bytes());
            pool(input, outputs_[i - 1].floats(), pooled_.floats());
        }
        convolve(i);
    }
    classify();
}

void Trainer::load(const Digits& digits, const std::vector<int>& batch) {
    const Layout layout = image_layout();
    std::vector<float> rows(layout.stride());
    std::vector<std::int32_t> labels(batch.size());
    for (std::size_t n = 0; n < batch.size(); ++n) {
        const float* image = digits.image(batch[n]);
        for (int y = 0; y < kSide; ++y) {
            std::copy_n(
                image + y * kSide, kSide,
                rows.begin() + Layout::kLead + n * layout.image_floats() + y * layout.pitch());
        }
        labels[n] = digits.labels[batch[n]];
    }
    TRAIN_CNN_CHECK(
        cudaMemcpy(images_.floats(), rows.data(), images_.bytes(), cudaMemcpyHostToDevice));
    TRAIN_CNN_CHECK(
        cudaMemcpy(labels_.ints(), labels.data(), labels_.bytes(), cudaMemcpyHostToDevice));
}

const float* Trainer::input_of(int layer) const {
    return layer == 0                        ? images_.floats()
           : layer == network_.pooled_before ? pooled_.floats()
                                             : outputs_[layer - 1].floats();
}

void Trainer::convolve(int layer) {
    const Convolution& convolution = network_.convolutions[layer];
    const Layout out = output_layout(layer);
    outputs_[layer].ensure(out.bytes());
    float* output = outputs_[layer].floats();
    if (cudnn_) {
        cudnn_->forward(layer, input_of(layer), convolutions_[layer].weights.floats(), output);
    } else {
        convolve_by_products(layer);
    }
    add_bias_relu(out, output, convolutions_[layer].bias.floats(),
                  convolution.adds_input() ? input_of(layer) : nullptr,
                  masks_[convolution.side == kSide ? 0 : 1].floats());
}

// A tensor of C channels is, to cuBLAS, a matrix with a column per channel.
void Trainer::convolve_by_products(int layer) {
    const Convolution& convolution = network_.convolutions[layer];
    const Layout out = output_layout(layer);
    const float* weights = convolutions_[layer].weights.floats();
    for (int tap = 0; tap < convolution.taps(); ++tap) {
        TRAIN_CNN_CHECK(cublasSgemm(
            blas_, CUBLAS_OP_N, CUBLAS_OP_N, out.columns(), convolution.outputs, convolution.inputs,
            &kOne, input_of(layer) + Layout::kLead + out.shift(tap), out.stride(),
            weights + tap * convolution.outputs * convolution.inputs, convolution.inputs,
            tap == 0 ? &kZero : &kOne, outputs_[layer].floats() + Layout::kLead, out.stride()));
    }
}

void Trainer::classify() {
    const int batch = options_.batch;
    const int features = network_.features();
    gather_features(output_layout(static_cast<int>(outputs_.size()) - 1), outputs_.back().floats(),
                    features_.floats());
    TRAIN_CNN_CHECK(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, batch, kClasses, features, &kOne,
                                features_.floats(), batch, classifier_.weights.floats(), features,
                                &kZero, logits_.floats(), batch));
    softmax_loss(batch, logits_.floats(), classifier_.bias.floats(), labels_.ints(),
                 losses_.floats(), right_.floats());
    summarize(batch, losses_.floats(), right_.floats(), results_.floats());
}

void Trainer::backward_classifier() {
    const int batch = options_.batch;
    const int features = network_.features();
    TRAIN_CNN_CHECK(cublasSgemm(blas_, CUBLAS_OP_T, CUBLAS_OP_N, features, kClasses, batch, &kOne,
                                features_.floats(), batch, logits_.floats(), batch, &kZero,
                                weight_gradient_.floats(), features));
    TRAIN_CNN_CHECK(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_T, batch, features, kClasses, &kOne,
                                logits_.floats(), batch, classifier_.weights.floats(), features,
                                &kZero, features_.floats(), batch));
    sum_rows(kClasses, batch, logits_.floats(), batch, bias_gradient_.floats());
    descend_layer(classifier_);
    const Layout last = output_layout(static_cast<int>(outputs_.size()) - 1);
    current_ = 0;
    gradients_[current_].ensure(last.bytes());
    scatter_features(last, features_.floats(), gradients_[current_].floats());
}

void Trainer::backward_convolution(int layer) {
    const Layout layout = output_layout(layer);
    float* gradient = gradients_[current_].floats();
    relu_backward(layout, gradient, outputs_[layer].floats());
    done(outputs_[layer]);
    backward_weights(layer, gradient);
    if (layer > 0) {
        DeviceBuffer& next = gradients_[1 - current_];
        next.ensure(layout.bytes());
        backward_inputs(layer, gradient);
    }
    done(gradients_[current_]);
    current_ = 1 - current_;
    descend_layer(convolutions_[layer]);
}

void Trainer::backward_weights(int layer, const float* gradient) {
    const Convolution& convolution = network_.convolutions[layer];
    const Layout layout = output_layout(layer);
    if (cudnn_) {
        cudnn_->backward_weights(layer, input_of(layer), gradient, weight_gradient_.floats());
        cudnn_->backward_bias(layer, gradient, bias_gradient_.floats());
        return;
    }
    const int tap_weights = convolution.outputs * convolution.inputs;
    for (int tap = 0; tap < convolution.taps(); ++tap) {
        TRAIN_CNN_CHECK(cublasSgemm(
            blas_, CUBLAS_OP_T, CUBLAS_OP_N, convolution.inputs, convolution.outputs,
            layout.columns(), &kOne, input_of(layer) + Layout::kLead + layout.shift(tap),
            layout.stride(), gradient + Layout::kLead, layout.stride(), &kZero,
            weight_gradient_.floats() + tap * tap_weights, convolution.inputs));
    }
    sum_rows(convolution.outputs, layout.columns(), gradient + Layout::kLead, layout.stride(),
             bias_gradient_.floats());
}

// Of every layer but the first, which adds its input to its output.
void Trainer::backward_inputs(int layer, const float* gradient) {
    const Convolution& convolution = network_.convolutions[layer];
    const Layout layout = output_layout(layer);
    const float* weights = convolutions_[layer].weights.floats();
    float* next = gradients_[1 - current_].floats();
    TRAIN_CNN_CHECK(cublasScopy(blas_, layout.channels * layout.stride(), gradient, 1, next, 1));
    if (cudnn_) {
        cudnn_->backward_inputs(layer, gradient, weights, next);
        return;
    }
    for (int tap = 0; tap < convolution.taps(); ++tap) {
        TRAIN_CNN_CHECK(
            cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_T, layout.columns(), convolution.inputs,
                        convolution.outputs, &kOne, gradient + Layout::kLead - layout.shift(tap),
                        layout.stride(), weights + tap * convolution.outputs * convolution.inputs,
                        convolution.inputs, &kOne, next + Layout::kLead, layout.stride()));
    }
}

void Trainer::backward_pool() {
    const Layout input = output_layout(network_.pooled_before - 1);
    DeviceBuffer& next = gradients_[1 - current_];
    next.ensure(input.bytes());
    pool_backward(input, outputs_[network_.pooled_before - 1].floats(),
                  gradients_[current_].floats(), next.floats());
    done(gradients_[current_]);
    done(pooled_);
    current_ = 1 - current_;
}

void Trainer::descend_layer(Learned& learned) {
    descend(learned.weight_count, learned.weights.floats(), learned.weight_momentum.floats(),
            weight_gradient_.floats(), options_.lr, options_.momentum);
    descend(learned.bias_count, learned.bias.floats(), learned.bias_momentum.floats(),
            bias_gradient_.floats(), options_.lr, options_.momentum);
}

void Trainer::sum_rows(int rows, int columns, const float* values, int stride, float* sums) {
    TRAIN_CNN_CHECK(cublasSgemv(blas_, CUBLAS_OP_T, columns, rows, &kOne, values, stride,
                                ones_.floats(), 1, &kZero, sums, 1));
}

void Trainer::done(DeviceBuffer& buffer) {
    if (options_.alloc_each_iteration) {
        buffer.reset();
    }
}

Trainer::Verdict Trainer::verdict() const {
    const std::vector<float> results = on_host(results_);
    return {results[0], results[1]};
}

Weights Trainer::weights() const {
    Weights weights;
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
        const std::vector<float> values = on_host(convolutions_[i].weights);
        weights.convolution.push_back(cudnn_ ? taps_first(network_.convolutions[i], values)
                                             : values);
        weights.bias.push_back(on_host(convolutions_[i].bias));
    }
    weights.classifier = on_host(classifier_.weights);
    weights.classifier_bias = on_host(classifier_.bias);
    return weights;
}

}  // namespace train_cnn
