// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <vector>

namespace train_cnn::cpu {

/// Images of `channels` planes, channel by channel, each plane with `border` zero pixels on all
/// sides, as far as a filter looks: the plain layout that the textbook's loops want.
struct Planes {
    int channels = 0;
    int images = 0;
    int side = 0;
    int border = 0;
    std::vector<float> values;

    Planes() = default;
    Planes(int channel_count, int image_count, int side_length, int border_width)
        : channels(channel_count),
          images(image_count),
          side(side_length),
          border(border_width),
          values(static_cast<std::size_t>(channel_count) * image_count * plane_size()) {}

    int pitch() const { return side + 2 * border; }
    int plane_size() const { return pitch() * pitch(); }
    /// First pixel of a plane, past its border.
    float* plane(int channel, int image) {
        return values.data() + offset(channel, image) + border * (pitch() + 1);
    }
    const float* plane(int channel, int image) const {
        return values.data() + offset(channel, image) + border * (pitch() + 1);
    }

  private:
    std::size_t offset(int channel, int image) const {
        return (static_cast<std::size_t>(channel) * images + image) * plane_size();
    }
};

/// output[k] = sum over c and taps of weights[k][c][tap] * input[c] shifted; the output's border
/// stays. A filter has 2 * border + 1 taps to a side.
void convolve(const Planes& input, const std::vector<float>& weights, Planes& output);

/// gradient[k][c][tap] = sum over images and pixels of output_gradient[k] * input[c] shifted.
void weight_gradient(const Planes& input, const Planes& output_gradient,
                     std::vector<float>& gradient);

}  // namespace train_cnn::cpu
