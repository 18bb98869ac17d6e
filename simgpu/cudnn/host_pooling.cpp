// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <cmath>
#include <limits>

#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/work.hpp"

namespace libswap::simgpu::cudnn {
namespace {

bool is_max(const PoolingShape& shape) {
    return shape.mode == CUDNN_POOLING_MAX || shape.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

/// The pixels of one window that lie inside the image, and how many it has with its padding.
struct Window {
    std::vector<std::size_t> places;  ///< in row-major order, within the image's plane
    std::size_t padded = 0;
};

/// The window of output pixel `index`. The padding counts as far as it was asked for: what lies
/// beyond the padded image does not.
void find_window(const PoolingShape& shape, const Tensor& x, const Tensor& y, std::size_t index,
                 Window& window) {
    window.places.assign(1, 0);
    window.padded = 1;
    std::size_t begin[PoolingShape::kMaxSpatial];
    std::size_t count[PoolingShape::kMaxSpatial];
    for (int i = shape.spatial - 1; i >= 0; --i) {
        const auto extent = static_cast<std::size_t>(y.dims[i + 2]);
        const auto at = static_cast<std::int64_t>(index % extent);
        index /= extent;
        const std::int64_t first = at * shape.stride[i] - shape.pad[i];
        const std::int64_t last = first + shape.window[i];
        const std::int64_t inside_first = std::max<std::int64_t>(first, 0);
        const std::int64_t inside_last = std::min<std::int64_t>(last, x.dims[i + 2]);
        begin[i] = static_cast<std::size_t>(inside_first);
        count[i] = static_cast<std::size_t>(std::max<std::int64_t>(inside_last - inside_first, 0));
        window.padded *= static_cast<std::size_t>(
            std::min<std::int64_t>(last, std::int64_t{x.dims[i + 2]} + shape.pad[i]) - first);
    }
    for (int i = 0; i < shape.spatial; ++i) {
        std::vector<std::size_t> next;
        for (const std::size_t place : window.places) {
            for (std::size_t k = 0; k < count[i]; ++k) {
                next.push_back(place * static_cast<std::size_t>(x.dims[i + 2]) + begin[i] + k);
            }
        }
        window.places = std::move(next);
    }
}

/// The pixels of a plane, their windows found once for all images and channels.
class Windows {
  public:
    Windows(const PoolingShape& shape, const Tensor& x, const Tensor& y)
        : x_pixels_(pixels(x)), y_pixels_(pixels(y)), windows_(y_pixels_) {
        for (std::size_t i = 0; i < y_pixels_; ++i) {
            find_window(shape, x, y, i, windows_[i]);
        }
        planes_ = static_cast<std::size_t>(x.dims[0]) * static_cast<std::size_t>(x.dims[1]);
    }

    /// Calls visit(window, place of the plane's first input, place of the output).
    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (std::size_t plane = 0; plane < planes_; ++plane) {
            for (std::size_t i = 0; i < y_pixels_; ++i) {
                visit(windows_[i], plane * x_pixels_, plane * y_pixels_ + i);
            }
        }
    }

  private:
    static std::size_t pixels(const Tensor& tensor) {
        return static_cast<std::size_t>(tensor.elements() / tensor.dims[0] / tensor.dims[1]);
    }

    std::size_t x_pixels_;
    std::size_t y_pixels_;
    std::size_t planes_ = 0;
    std::vector<Window> windows_;
};

/// The first of the largest; size() where the window has no pixel.
template <typename T>
std::size_t largest(const Window& window, const T* plane, bool propagate_nan) {
    std::size_t best = window.places.size();
    for (std::size_t i = 0; i < window.places.size(); ++i) {
        const T value = plane[window.places[i]];
        if (propagate_nan && std::isnan(value)) {
            return i;
        }
        if (best == window.places.size() || value > plane[window.places[best]] ||
            std::isnan(plane[window.places[best]])) {
            best = i;
        }
    }
    return best;
}

double divisor(const PoolingShape& shape, const Window& window) {
    return static_cast<double>(shape.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                                   ? window.padded
                                   : std::max<std::size_t>(window.places.size(), 1));
}

template <typename T>
void pooling_forward(Work& work) {
    const auto p = work.params<PoolingParams>();
    const std::vector<T> x = work.load<T>(p.x, p.x_desc);
    if (work.faulted()) {
        return;
    }
    std::vector<T> y(static_cast<std::size_t>(p.y_desc.elements()));
    const bool max = is_max(p.shape);
    Windows(p.shape, p.x_desc, p.y_desc)
        .for_each([&](const Window& window, std::size_t plane, std::size_t out) {
            const T* at = x.data() + plane;
            if (max) {
                const std::size_t best = largest(window, at, p.shape.propagate_nan != 0);
                y[out] = best < window.places.size() ? at[window.places[best]]
                                                     : std::numeric_limits<T>::lowest();
                return;
            }
            double sum = 0;
            for (const std::size_t place : window.places) {
                sum += static_cast<double>(at[place]);
            }
            y[out] = static_cast<T>(sum / divisor(p.shape, window));
        });
    work.cost(static_cast<double>(x.size()), 0);
    work.store(p.y, p.y_desc, y, p.alpha, p.beta);
}

template <typename T>
void pooling_backward(Work& work) {
    const auto p = work.params<PoolingGradientParams>();
    const std::vector<T> x = work.load<T>(p.x, p.x_desc);
    const std::vector<T> dy = work.load<T>(p.dy, p.dy_desc);
    const bool max = is_max(p.shape);
    if (max) {
        work.load<T>(p.y, p.y_desc);  // the vendor's kernels read it, so it must be there
    }
    if (work.faulted()) {
        return;
    }
    std::vector<T> dx(x.size());
    Windows(p.shape, p.x_desc, p.y_desc)
        .for_each([&](const Window& window, std::size_t plane, std::size_t out) {
            T* to = dx.data() + plane;
            if (max) {
                const std::size_t best =
                    largest(window, x.data() + plane, p.shape.propagate_nan != 0);
                if (best < window.places.size()) {
                    to[window.places[best]] += dy[out];
                }
                return;
            }
            const T share = static_cast<T>(static_cast<double>(dy[out]) / divisor(p.shape, window));
            for (const std::size_t place : window.places) {
                to[place] += share;
            }
        });
    work.cost(static_cast<double>(x.size()), 0);
    work.store(p.dx, p.dx_desc, dx, p.alpha, p.beta);
}

}  // namespace

void host_pooling_forward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<PoolingParams>().x_desc.data_type(),
               [&]<typename T>(T) { pooling_forward<T>(work); });
}

void host_pooling_backward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<PoolingGradientParams>().x_desc.data_type(),
               [&]<typename T>(T) { pooling_backward<T>(work); });
}

}  // namespace libswap::simgpu::cudnn
