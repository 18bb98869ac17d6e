// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cpu_convolution.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

// One build for every x86-64, a faster copy of the two loops for those of the last ten years.
#define TRAIN_CNN_CLONES __attribute__((target_clones("default", "arch=haswell")))
#define TRAIN_CNN_INLINE __attribute__((always_inline)) inline

namespace train_cnn::cpu {
namespace {

template <typename Work>
void for_each(int count, Work work) {
    std::atomic<int> next{0};
    auto take = [&] {
        for (int i = next++; i < count; i = next++) {
            work(i);
        }
    };
    std::vector<std::thread> threads(std::max(1U, std::thread::hardware_concurrency()) - 1);
    for (auto& thread : threads) {
        thread = std::thread(take);
    }
    take();
    for (auto& thread : threads) {
        thread.join();
    }
}

/// A row of an image. (An attribute alone would not depend on the parameter.)
template <int Side>
struct RowOf {
    typedef float Type __attribute__((vector_size(Side * sizeof(float))));
};

template <int Side>
TRAIN_CNN_INLINE typename RowOf<Side>::Type load_row(const float* from) {
    typename RowOf<Side>::Type row;
    std::memcpy(&row, from, sizeof(row));
    return row;
}

/// Output channels k to k + kBlock - 1 of one image.
template <int Side, int Filter, int kBlock>
TRAIN_CNN_INLINE void convolve_block(const Planes& input, const float* weights, Planes& output,
                                     int image, int k) {
    using Row = typename RowOf<Side>::Type;
    constexpr int kBorder = Filter / 2;
    constexpr int kPitch = Side + 2 * kBorder;
    constexpr int kTaps = Filter * Filter;
    for (int y = 0; y < Side; ++y) {
        Row sums[kBlock] = {};
        for (int c = 0; c < input.channels; ++c) {
            const float* first = input.plane(c, image) + (y - kBorder) * kPitch - kBorder;
            for (int tap = 0; tap < kTaps; ++tap) {
                const Row row = load_row<Side>(first + tap / Filter * kPitch + tap % Filter);
                for (int i = 0; i < kBlock; ++i) {
                    sums[i] += row * weights[((k + i) * input.channels + c) * kTaps + tap];
                }
            }
        }
        for (int i = 0; i < kBlock; ++i) {
            std::memcpy(output.plane(k + i, image) + y * kPitch, &sums[i], sizeof(Row));
        }
    }
}

template <int Side, int Filter>
TRAIN_CNN_INLINE void convolve_image(const Planes& input, const float* weights, Planes& output,
                                     int image) {
    constexpr int kBlock = 4;
    int k = 0;
    for (; k + kBlock <= output.channels; k += kBlock) {
        convolve_block<Side, Filter, kBlock>(input, weights, output, image, k);
    }
    for (; k < output.channels; ++k) {
        convolve_block<Side, Filter, 1>(input, weights, output, image, k);
    }
}

TRAIN_CNN_CLONES void convolve_8(const Planes& input, const float* weights, Planes& output,
                                 int image) {
    input.border == 1 ? convolve_image<8, 3>(input, weights, output, image)
                      : convolve_image<8, 5>(input, weights, output, image);
}

TRAIN_CNN_CLONES void convolve_4(const Planes& input, const float* weights, Planes& output,
                                 int image) {
    input.border == 1 ? convolve_image<4, 3>(input, weights, output, image)
                      : convolve_image<4, 5>(input, weights, output, image);
}

/// All output channels' gradients of input channel c. By rows of taps: their sums fit the
/// registers.
template <int Side, int Filter>
TRAIN_CNN_INLINE void weight_gradient_channel(const Planes& input, const Planes& output_gradient,
                                              float* gradient, int c) {
    using Row = typename RowOf<Side>::Type;
    constexpr int kBorder = Filter / 2;
    constexpr int kPitch = Side + 2 * kBorder;
    for (int k = 0; k < output_gradient.channels; ++k) {
        float* taps = gradient + (k * input.channels + c) * Filter * Filter;
        for (int dy = 0; dy < Filter; ++dy) {
            Row sums[Filter] = {};
            for (int image = 0; image < input.images; ++image) {
                const float* in = input.plane(c, image) + (dy - kBorder) * kPitch - kBorder;
                const float* out = output_gradient.plane(k, image);
                for (int y = 0; y < Side; ++y) {
                    const Row row = load_row<Side>(out + y * kPitch);
                    for (int dx = 0; dx < Filter; ++dx) {
                        sums[dx] += row * load_row<Side>(in + y * kPitch + dx);
                    }
                }
            }
            for (int dx = 0; dx < Filter; ++dx) {
                float sum = 0;
                for (int x = 0; x < Side; ++x) {
                    sum += sums[dx][x];
                }
                taps[dy * Filter + dx] = sum;
            }
        }
    }
}

TRAIN_CNN_CLONES void weight_gradient_8(const Planes& input, const Planes& output_gradient,
                                        float* gradient, int c) {
    input.border == 1 ? weight_gradient_channel<8, 3>(input, output_gradient, gradient, c)
                      : weight_gradient_channel<8, 5>(input, output_gradient, gradient, c);
}

TRAIN_CNN_CLONES void weight_gradient_4(const Planes& input, const Planes& output_gradient,
                                        float* gradient, int c) {
    input.border == 1 ? weight_gradient_channel<4, 3>(input, output_gradient, gradient, c)
                      : weight_gradient_channel<4, 5>(input, output_gradient, gradient, c);
}

}  // namespace

void convolve(const Planes& input, const std::vector<float>& weights, Planes& output) {
    const auto one = input.side == 8 ? convolve_8 : convolve_4;
    for_each(input.images, [&](int image) { one(input, weights.data(), output, image); });
}

void weight_gradient(const Planes& input, const Planes& output_gradient,
                     std::vector<float>& gradient) {
    const auto one = input.side == 8 ? weight_gradient_8 : weight_gradient_4;
    for_each(input.channels, [&](int c) { one(input, output_gradient, gradient.data(), c); });
}

}  // namespace train_cnn::cpu
