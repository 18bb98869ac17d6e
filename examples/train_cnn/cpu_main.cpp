// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The network of train_cnn in plain loops on the CPU, with nothing of the other program's device
// code: what its losses are compared with.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cpu_convolution.hpp"
#include "digits.hpp"
#include "network.hpp"
#include "options.hpp"
#include "results.hpp"

namespace train_cnn::cpu {
namespace {

/// Weights here lie as [output][input][tap], as the loops read them.
std::vector<float> from_taps_first(const Convolution& layer, const std::vector<float>& weights) {
    std::vector<float> moved(weights.size());
    const std::size_t pairs = static_cast<std::size_t>(layer.outputs) * layer.inputs;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        moved[i % pairs * layer.taps() + i / pairs] = weights[i];
    }
    return moved;
}

std::vector<float> to_taps_first(const Convolution& layer, const std::vector<float>& weights) {
    std::vector<float> moved(weights.size());
    const std::size_t pairs = static_cast<std::size_t>(layer.outputs) * layer.inputs;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        moved[i] = weights[i % pairs * layer.taps() + i / pairs];
    }
    return moved;
}

/// What a convolution with these gives is the gradient that goes back through one with `weights`.
std::vector<float> backward_weights(const Convolution& layer, const std::vector<float>& weights) {
    const int taps = layer.taps();
    std::vector<float> moved(weights.size());
    for (int k = 0; k < layer.outputs; ++k) {
        for (int c = 0; c < layer.inputs; ++c) {
            for (int tap = 0; tap < taps; ++tap) {
                moved[(c * layer.outputs + k) * taps + taps - 1 - tap] =
                    weights[(k * layer.inputs + c) * taps + tap];
            }
        }
    }
    return moved;
}

template <typename Visit>
void for_each_pixel(const Planes& planes, Visit visit) {
    for (int c = 0; c < planes.channels; ++c) {
        for (int n = 0; n < planes.images; ++n) {
            for (int y = 0; y < planes.side; ++y) {
                for (int x = 0; x < planes.side; ++x) {
                    visit(c, n, y * planes.pitch() + x);
                }
            }
        }
    }
}

void add(Planes& sum, const Planes& planes) {
    for (std::size_t i = 0; i < sum.values.size(); ++i) {
        sum.values[i] += planes.values[i];
    }
}

void add_bias_relu(Planes& planes, const std::vector<float>& bias) {
    for_each_pixel(planes, [&](int c, int n, int at) {
        float& value = planes.plane(c, n)[at];
        value = std::max(value + bias[c], 0.0f);
    });
}

/// Where in the 2 x 2 pixels from `top_left` on the first of the largest lies.
int largest_of_four(const float* top_left, int pitch) {
    const int places[] = {0, 1, pitch, pitch + 1};
    int best = places[0];
    for (int place : places) {
        if (top_left[place] > top_left[best]) {
            best = place;
        }
    }
    return best;
}

class Trainer {
  public:
    explicit Trainer(const Options& options)
        : options_(options),
          network_(make_network(options)),
          weights_(first_weights(network_, options.seed)),
          momentum_(weights_) {
        for (std::size_t i = 0; i < network_.convolutions.size(); ++i) {
            weights_.convolution[i] =
                from_taps_first(network_.convolutions[i], weights_.convolution[i]);
        }
        clear(momentum_.convolution);
        clear(momentum_.bias);
        momentum_.classifier.assign(momentum_.classifier.size(), 0);
        momentum_.classifier_bias.assign(kClasses, 0);
    }

    /// One step on these images; the mean loss before it.
    float step(const Digits& digits, const std::vector<int>& batch) {
        forward(digits, batch);
        const float loss = classify(digits, batch);
        backward();
        return loss;
    }

    int count_right(const Digits& digits, const std::vector<int>& batch) {
        forward(digits, batch);
        classify(digits, batch);
        return right_;
    }

    std::uint64_t weights_digest() const {
        Weights moved = weights_;
        for (std::size_t i = 0; i < network_.convolutions.size(); ++i) {
            moved.convolution[i] = to_taps_first(network_.convolutions[i], moved.convolution[i]);
        }
        return digest(moved);
    }

  private:
    static void clear(std::vector<std::vector<float>>& arrays) {
        for (auto& array : arrays) {
            array.assign(array.size(), 0);
        }
    }

    void forward(const Digits& digits, const std::vector<int>& batch) {
        const int images = static_cast<int>(batch.size());
        activations_.assign(1, Planes(1, images, kSide, options_.filter / 2));
        for_each_pixel(activations_[0], [&](int, int n, int at) {
            const int pitch = activations_[0].pitch();
            activations_[0].plane(0, n)[at] =
                digits.image(batch[n])[at / pitch * kSide + at % pitch];
        });
        for (int i = 0; i < static_cast<int>(network_.convolutions.size()); ++i) {
            if (i == network_.pooled_before) {
                pool();
            }
            const Convolution& layer = network_.convolutions[i];
            Planes output(layer.outputs, images, layer.side, layer.border());
            convolve(activations_.back(), weights_.convolution[i], output);
            if (layer.adds_input()) {
                add(output, activations_.back());
            }
            add_bias_relu(output, weights_.bias[i]);
            activations_.push_back(std::move(output));
        }
    }

    /// Number f of an image's features: the pixels of its last planes, channel by channel, row by
    /// row.
    template <typename AnyPlanes>
    static auto feature(AnyPlanes& planes, int image, int f) {
        const int pixels = planes.side * planes.side;
        const int pixel = f % pixels;
        return planes.plane(f / pixels, image) + pixel / planes.side * planes.pitch() +
               pixel % planes.side;
    }

    void pool() {
        const Planes& input = activations_.back();
        Planes output(input.channels, input.images, input.side / 2, input.border);
        for_each_pixel(output, [&](int c, int n, int at) {
            const int y = at / output.pitch();
            const int x = at % output.pitch();
            const float* top_left = input.plane(c, n) + 2 * y * input.pitch() + 2 * x;
            output.plane(c, n)[at] = top_left[largest_of_four(top_left, input.pitch())];
        });
        activations_.push_back(std::move(output));
    }

    /// From the last activations to the loss, and the gradients of all in between.
    float classify(const Digits& digits, const std::vector<int>& batch) {
        const Planes& last = activations_.back();
        const int features = network_.features();
        classifier_gradient_.assign(weights_.classifier.size(), 0);
        classifier_bias_gradient_.assign(kClasses, 0);
        gradient_ = Planes(last.channels, last.images, last.side, last.border);
        double loss = 0;
        right_ = 0;
        for (int n = 0; n < last.images; ++n) {
            float logits[kClasses];
            for (int k = 0; k < kClasses; ++k) {
                logits[k] = weights_.classifier_bias[k];
                for (int f = 0; f < features; ++f) {
                    logits[k] += weights_.classifier[k * features + f] * *feature(last, n, f);
                }
            }
            const int label = digits.labels[batch[n]];
            const float* top = std::max_element(logits, logits + kClasses);
            const float largest = *top;
            right_ += top - logits == label;
            float sum = 0;
            for (float logit : logits) {
                sum += std::exp(logit - largest);
            }
            loss += std::log(sum) + largest - logits[label];
            for (int k = 0; k < kClasses; ++k) {
                const float probability = std::exp(logits[k] - largest) / sum;
                const float slope =
                    (probability - (k == label ? 1.0f : 0.0f)) / static_cast<float>(last.images);
                classifier_bias_gradient_[k] += slope;
                for (int f = 0; f < features; ++f) {
                    classifier_gradient_[k * features + f] += slope * *feature(last, n, f);
                    *feature(gradient_, n, f) += slope * weights_.classifier[k * features + f];
                }
            }
        }
        return static_cast<float>(loss / last.images);
    }

    void backward() {
        descend(weights_.classifier, momentum_.classifier, classifier_gradient_);
        descend(weights_.classifier_bias, momentum_.classifier_bias, classifier_bias_gradient_);
        for (int i = static_cast<int>(network_.convolutions.size()) - 1; i >= 0; --i) {
            const Convolution& layer = network_.convolutions[i];
            const Planes output = std::move(activations_.back());
            activations_.pop_back();
            std::vector<float> bias_gradient(layer.outputs);
            for_each_pixel(output, [&](int c, int n, int at) {
                float& slope = gradient_.plane(c, n)[at];
                slope = output.plane(c, n)[at] > 0 ? slope : 0;
                bias_gradient[c] += slope;
            });
            const Planes& input = activations_.back();
            std::vector<float> weight_slopes(layer.weight_count());
            weight_gradient(input, gradient_, weight_slopes);
            if (i > 0) {
                Planes input_gradient(input.channels, input.images, input.side, input.border);
                convolve(gradient_, backward_weights(layer, weights_.convolution[i]),
                         input_gradient);
                if (layer.adds_input()) {
                    add(input_gradient, gradient_);
                }
                gradient_ = std::move(input_gradient);
            }
            descend(weights_.convolution[i], momentum_.convolution[i], weight_slopes);
            descend(weights_.bias[i], momentum_.bias[i], bias_gradient);
            if (i == network_.pooled_before) {
                unpool();
            }
        }
    }

    void unpool() {
        activations_.pop_back();
        const Planes& input = activations_.back();
        Planes input_gradient(input.channels, input.images, input.side, input.border);
        for_each_pixel(gradient_, [&](int c, int n, int at) {
            const int y = at / gradient_.pitch();
            const int x = at % gradient_.pitch();
            const int corner = 2 * y * input.pitch() + 2 * x;
            const int place = largest_of_four(input.plane(c, n) + corner, input.pitch());
            input_gradient.plane(c, n)[corner + place] = gradient_.plane(c, n)[at];
        });
        gradient_ = std::move(input_gradient);
    }

    void descend(std::vector<float>& weights, std::vector<float>& momentum,
                 const std::vector<float>& gradient) {
        for (std::size_t i = 0; i < weights.size(); ++i) {
            momentum[i] = options_.momentum * momentum[i] + gradient[i];
            weights[i] -= options_.lr * momentum[i];
        }
    }

    Options options_;
    Network network_;
    Weights weights_;
    Weights momentum_;
    /// The images, then what each layer made of them; backward takes them away again.
    std::vector<Planes> activations_;
    Planes gradient_;
    std::vector<float> classifier_gradient_;
    std::vector<float> classifier_bias_gradient_;
    int right_ = 0;
};

int run(const Options& options) {
    const Digits digits = read_digits(options.data);
    if (digits.count() == 0) {
        return 1;
    }
    const Split split = split_digits(digits, options.batch);
    Batches batches(split.train_count, options.batch, options.seed);
    Trainer trainer(options);
    Results results;
    results.clock = "real time";
    std::vector<float> times_ms;
    for (int i = 0; i < options.iterations; ++i) {
        const auto start = std::chrono::steady_clock::now();
        results.losses.push_back(trainer.step(digits, batches.next()));
        const std::chrono::duration<float, std::milli> time =
            std::chrono::steady_clock::now() - start;
        times_ms.push_back(time.count());
        print_loss(i, results.losses.back());
    }
    results.accuracy =
        trainer.count_right(digits, split.held_out) / static_cast<double>(split.held_out.size());
    results.digest = trainer.weights_digest();
    results.iteration_ms = median(times_ms);
    print_summary(results);
    return options.json.empty() || write_json(results, options.json) ? 0 : 1;
}

}  // namespace
}  // namespace train_cnn::cpu

int main(int argc, char** argv) {
    train_cnn::Options options;
    options.data = TRAIN_CNN_DATA;
    const int status = train_cnn::parse_options(argc, argv, options);
    return status >= 0 ? status : train_cnn::cpu::run(options);
}
