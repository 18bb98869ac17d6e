// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>

#include "simgpu/cublas/halves.hpp"
#include "simgpu/cudnn/convolution.hpp"
#include "simgpu/cudnn/dnnl.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// Calls visit(index of x, of w, of y) for each product of a convolution, in an order that does not
/// depend on the direction.
template <typename Visit>
void for_each_product(const ConvolutionShape& shape, const Tensor& x, const Tensor& w,
                      const Tensor& y, const Visit& visit) {
    const int spatial = shape.spatial;
    const std::int64_t y_elements = y.elements();
    const std::int64_t taps = w.elements() / w.dims[0];
    const int filters_of_group = w.dims[0] / shape.groups;
    for (std::int64_t at = 0; at < y_elements; ++at) {
        std::int64_t place[Tensor::kMaxRank];
        std::int64_t rest = at;
        for (int i = y.rank - 1; i >= 0; --i) {
            place[i] = rest % y.dims[i];
            rest /= y.dims[i];
        }
        const std::int64_t first_channel = place[1] / filters_of_group * w.dims[1];
        for (std::int64_t tap = 0; tap < taps; ++tap) {
            std::int64_t left = tap;
            std::int64_t offset = 0;
            std::int64_t scale = 1;
            bool inside = true;
            for (int i = spatial - 1; i >= 0; --i) {
                const std::int64_t k = left % w.dims[i + 2];
                left /= w.dims[i + 2];
                const std::int64_t in =
                    place[i + 2] * shape.stride[i] - shape.pad_before[i] + k * shape.dilation[i];
                inside = inside && in >= 0 && in < x.dims[i + 2];
                offset += in * scale;
                scale *= x.dims[i + 2];
            }
            if (inside) {
                const std::int64_t channel = first_channel + left;
                visit((place[0] * x.dims[1] + channel) * scale + offset, place[1] * taps + tap, at);
            }
        }
    }
}

template <typename T>
void by_loops(Direction direction, const ConvolutionShape& shape, const Tensor& x_desc,
              std::vector<T>& x, const Tensor& w_desc, std::vector<T>& w, const Tensor& y_desc,
              std::vector<T>& y) {
    std::vector<T>& output = direction == Direction::Forward        ? y
                             : direction == Direction::BackwardData ? x
                                                                    : w;
    std::fill(output.begin(), output.end(), T{});
    for_each_product(shape, x_desc, w_desc, y_desc,
                     [&](std::int64_t i, std::int64_t j, std::int64_t k) {
                         switch (direction) {
                             case Direction::Forward:
                                 y[k] += x[i] * w[j];
                                 return;
                             case Direction::BackwardData:
                                 x[i] += y[k] * w[j];
                                 return;
                             case Direction::BackwardFilter:
                                 w[j] += x[i] * y[k];
                                 return;
                         }
                     });
}

/// Turns each filter round.
template <typename T>
void flip(const Tensor& desc, std::vector<T>& w) {
    const std::int64_t taps = desc.elements() / desc.dims[0] / desc.dims[1];
    for (auto filter = w.begin(); filter != w.end(); filter += taps) {
        std::reverse(filter, filter + taps);
    }
}

/// The two halves of a convolution are convolutions too: of half the images, or, for the filters'
/// gradients, of half the filters.
class Halves {
  public:
    Halves(Direction direction, const ConvolutionShape& shape, const Tensor& x_desc, float* x,
           const Tensor& w_desc, float* w, const Tensor& y_desc, float* y)
        : whole_{direction, &shape, &x_desc, x, &w_desc, w, &y_desc, y, 0},
          by_images_(direction != Direction::BackwardFilter),
          can_split_(by_images_ ? x_desc.dims[0] > 1 : w_desc.dims[0] > 1 && shape.groups == 1) {}

    bool run() {
        if (!can_split_) {
            return dnnl::convolve(whole_);
        }
        bool done[2] = {};
        constexpr double kWorthTwoThreads = 2e6;
        cublas::in_halves([&](bool second) { done[second ? 1 : 0] = part(second); },
                          convolution_flops(*whole_.w_desc, *whole_.y_desc) >= kWorthTwoThreads);
        return done[0] && done[1];
    }

  private:
    bool part(bool second) const {
        const int all = by_images_ ? whole_.x_desc->dims[0] : whole_.w_desc->dims[0];
        const int begin = second ? all / 2 : 0;
        const int count = second ? all - all / 2 : all / 2;
        Tensor x_desc = *whole_.x_desc;
        Tensor w_desc = *whole_.w_desc;
        Tensor y_desc = *whole_.y_desc;
        dnnl::Convolution part = whole_;
        part.x_desc = &x_desc;
        part.w_desc = &w_desc;
        part.y_desc = &y_desc;
        if (by_images_) {
            part.x += x_desc.elements() / all * begin;
            part.y += y_desc.elements() / all * begin;
            x_desc.dims[0] = y_desc.dims[0] = count;
        } else {
            part.y_image_stride = y_desc.elements() / y_desc.dims[0];
            part.y += part.y_image_stride / all * begin;
            part.w += w_desc.elements() / all * begin;
            w_desc.dims[0] = y_desc.dims[1] = count;
        }
        return dnnl::convolve(part);
    }

    dnnl::Convolution whole_;
    bool by_images_;
    bool can_split_;
};

}  // namespace

template <typename T>
void convolve(Direction direction, const ConvolutionShape& shape, const Tensor& x_desc,
              std::vector<T>& x, const Tensor& w_desc, std::vector<T>& w, const Tensor& y_desc,
              std::vector<T>& y) {
    const bool writes_filter = direction == Direction::BackwardFilter;
    if (shape.flip != 0 && !writes_filter) {
        flip(w_desc, w);
    }
    bool done = false;
    if constexpr (std::is_same_v<T, float>) {
        done = Halves(direction, shape, x_desc, x.data(), w_desc, w.data(), y_desc, y.data()).run();
    }
    if (!done) {
        by_loops(direction, shape, x_desc, x, w_desc, w, y_desc, y);
    }
    if (shape.flip != 0 && writes_filter) {
        flip(w_desc, w);
    }
}

bool convolution_output(const ConvolutionShape& shape, const Tensor& x, const Tensor& w,
                        int* dims) {
    if (x.rank != w.rank || x.rank != shape.spatial + 2 || shape.groups < 1 ||
        static_cast<std::int64_t>(w.dims[1]) * shape.groups != x.dims[1] ||
        w.dims[0] % shape.groups != 0) {
        return false;
    }
    dims[0] = x.dims[0];
    dims[1] = w.dims[0];
    for (int i = 0; i < shape.spatial; ++i) {
        const std::int64_t reach = std::int64_t{w.dims[i + 2] - 1} * shape.dilation[i] + 1;
        const std::int64_t room =
            std::int64_t{x.dims[i + 2]} + shape.pad_before[i] + shape.pad_after[i] - reach;
        if (room < 0) {
            return false;
        }
        dims[i + 2] = static_cast<int>(room / shape.stride[i]) + 1;
    }
    return true;
}

double convolution_flops(const Tensor& w, const Tensor& y) {
    return 2.0 * static_cast<double>(y.elements()) * static_cast<double>(w.elements()) /
           static_cast<double>(w.dims[0]);
}

template void convolve<float>(Direction, const ConvolutionShape&, const Tensor&,
                              std::vector<float>&, const Tensor&, std::vector<float>&,
                              const Tensor&, std::vector<float>&);
template void convolve<double>(Direction, const ConvolutionShape&, const Tensor&,
                               std::vector<double>&, const Tensor&, std::vector<double>&,
                               const Tensor&, std::vector<double>&);

}  // namespace libswap::simgpu::cudnn
