// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The work of batch normalisation's kernels.

#include <cmath>

#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/work.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// Which elements are normalised together: for each of `groups`, in each of `images`, `inner`
/// neighbours.
struct Groups {
    std::size_t images;
    std::size_t groups;
    std::size_t inner;

    Groups(const Tensor& x, bool per_activation)
        : images(static_cast<std::size_t>(x.dims[0])),
          groups(per_activation ? static_cast<std::size_t>(x.elements()) / images
                                : static_cast<std::size_t>(x.dims[1])),
          inner(static_cast<std::size_t>(x.elements()) / images / groups) {}

    std::size_t members() const { return images * inner; }

    /// Calls visit(place) for each member, in a fixed order.
    template <typename Visit>
    void for_each_member(std::size_t group, const Visit& visit) const {
        for (std::size_t image = 0; image < images; ++image) {
            const std::size_t first = (image * groups + group) * inner;
            for (std::size_t i = 0; i < inner; ++i) {
                visit(first + i);
            }
        }
    }
};

struct Moments {
    double mean;
    double variance;
};

template <typename T>
Moments moments_of(const Groups& groups, std::size_t group, const std::vector<T>& x) {
    double sum = 0;
    groups.for_each_member(group, [&](std::size_t i) { sum += static_cast<double>(x[i]); });
    const double mean = sum / static_cast<double>(groups.members());
    double squares = 0;
    groups.for_each_member(group, [&](std::size_t i) {
        const double distance = static_cast<double>(x[i]) - mean;
        squares += distance * distance;
    });
    return {mean, squares / static_cast<double>(groups.members())};
}

/// A bit per element that the activation let through.
class Mask {
  public:
    Mask(Work& work, std::uint64_t va, std::size_t elements, bool write)
        : bytes_(static_cast<std::int64_t>((elements + 7) / 8)) {
        if (va != 0) {
            bits_ = write ? work.span<std::uint8_t>(va, bytes_)
                          : const_cast<std::uint8_t*>(work.span<const std::uint8_t>(va, bytes_));
            work.cost(0, static_cast<double>(bytes_));
        }
    }
    void clear() const {
        if (bits_ != nullptr) {
            std::memset(bits_, 0, static_cast<std::size_t>(bytes_));
        }
    }
    void set(std::size_t i) const {
        if (bits_ != nullptr) {
            bits_[i / 8] = static_cast<std::uint8_t>(bits_[i / 8] | 1U << (i % 8));
        }
    }
    bool get(std::size_t i) const { return (bits_[i / 8] >> (i % 8) & 1U) != 0; }

  private:
    std::int64_t bytes_;
    std::uint8_t* bits_ = nullptr;
};

/// values[i] = act(scale (x[i] - mean) inverse + bias + z[i]) for one group.
template <typename T>
class Apply {
  public:
    Apply(Work& work, const NormalizationParams& p, std::size_t elements)
        : p_(p),
          scale_(work.load<T>(p.scale, p.param_desc)),
          bias_(work.load<T>(p.bias, p.param_desc)),
          mask_(work, p.reserve, p.has_activation != 0 ? elements : 0, true) {
        if (p.z != 0) {
            z_ = work.load<T>(p.z, p.z_desc);
        }
        mask_.clear();
    }

    void operator()(const Groups& groups, std::size_t group, double mean, double inverse,
                    std::vector<T>& x) const {
        const T slope = static_cast<T>(inverse) * scale_[group];
        const T center = static_cast<T>(mean);
        const T shift = bias_[group];
        groups.for_each_member(group, [&](std::size_t i) {
            T value = (x[i] - center) * slope + shift;
            if (!z_.empty()) {
                value += z_[i];
            }
            if (p_.has_activation != 0) {
                if (value > T{}) {
                    mask_.set(i);
                }
                value = activate(p_.activation, value);
            }
            x[i] = value;
        });
    }

  private:
    const NormalizationParams& p_;
    std::vector<T> scale_;
    std::vector<T> bias_;
    std::vector<T> z_;
    Mask mask_;
};

template <typename T>
void training(Work& work) {
    const auto p = work.params<NormalizationParams>();
    work.use_workspace(p.workspace, p.workspace_bytes);
    std::vector<T> x = work.load<T>(p.x, p.x_desc);
    const Apply<T> apply(work, p, x.size());
    if (work.faulted()) {
        return;
    }
    const Groups groups(p.x_desc, p.per_activation != 0);
    std::vector<double> means(groups.groups);
    std::vector<double> inverses(groups.groups);
    std::vector<double> variances(groups.groups);
    // The running variance is of the whole population, as far as the batch tells.
    const double members = static_cast<double>(groups.members());
    const double unbiased = members > 1 ? members / (members - 1) : 1;
    for (std::size_t group = 0; group < groups.groups; ++group) {
        const Moments moments = moments_of(groups, group, x);
        means[group] = moments.mean;
        inverses[group] = 1 / std::sqrt(moments.variance + p.epsilon);
        variances[group] = moments.variance * unbiased;
        apply(groups, group, moments.mean, inverses[group], x);
    }
    work.cost(8 * static_cast<double>(x.size()), 0);
    work.store(p.y, p.y_desc, x, p.alpha, p.beta);
    if (p.mean != 0) {
        work.store(p.mean, p.param_desc, means, p.factor, 1 - p.factor);
        work.store(p.variance, p.param_desc, variances, p.factor, 1 - p.factor);
    }
    if (p.saved_mean != 0) {
        work.store(p.saved_mean, p.param_desc, means);
        work.store(p.saved_inverse, p.param_desc, inverses);
    }
}

template <typename T>
void inference(Work& work) {
    const auto p = work.params<NormalizationParams>();
    std::vector<T> x = work.load<T>(p.x, p.x_desc);
    const Apply<T> apply(work, p, x.size());
    const std::vector<double> means = work.load<double>(p.mean, p.param_desc);
    const std::vector<double> variances = work.load<double>(p.variance, p.param_desc);
    if (work.faulted()) {
        return;
    }
    const Groups groups(p.x_desc, p.per_activation != 0);
    for (std::size_t group = 0; group < groups.groups; ++group) {
        apply(groups, group, means[group], 1 / std::sqrt(variances[group] + p.epsilon), x);
    }
    work.cost(2 * static_cast<double>(x.size()), 0);
    work.store(p.y, p.y_desc, x, p.alpha, p.beta);
}

/// The gradient of the normalised values by what was normalised, over a group. See Ioffe and
/// Szegedy, Batch Normalization, 2015, section 3.
template <typename T>
void backward(Work& work) {
    const auto p = work.params<NormalizationGradientParams>();
    work.use_workspace(p.workspace, p.workspace_bytes);
    const std::vector<T> x = work.load<T>(p.x, p.x_desc);
    std::vector<T> dy = work.load<T>(p.dy, p.dy_desc);
    const std::vector<T> scale = work.load<T>(p.scale, p.param_desc);
    std::vector<double> means;
    std::vector<double> inverses;
    if (p.saved_mean != 0) {
        means = work.load<double>(p.saved_mean, p.param_desc);
        inverses = work.load<double>(p.saved_inverse, p.param_desc);
    }
    const Mask mask(work, p.has_activation != 0 ? p.reserve : 0, x.size(), false);
    if (work.faulted()) {
        return;
    }
    if (p.has_activation != 0) {
        for (std::size_t i = 0; i < dy.size(); ++i) {
            dy[i] = mask.get(i) ? dy[i] : T{};
        }
    }
    if (p.dz != 0) {
        work.store(p.dz, p.dz_desc, dy);
    }
    const Groups groups(p.x_desc, p.per_activation != 0);
    std::vector<double> dscale(groups.groups);
    std::vector<double> dbias(groups.groups);
    std::vector<T> dx(x.size());
    const double members = static_cast<double>(groups.members());
    for (std::size_t group = 0; group < groups.groups; ++group) {
        const Moments moments =
            p.saved_mean != 0 ? Moments{means[group], 0} : moments_of(groups, group, x);
        const double inverse =
            p.saved_mean != 0 ? inverses[group] : 1 / std::sqrt(moments.variance + p.epsilon);
        double sum = 0;
        double product = 0;
        groups.for_each_member(group, [&](std::size_t i) {
            sum += static_cast<double>(dy[i]);
            product += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - moments.mean);
        });
        dbias[group] = sum;
        dscale[group] = product * inverse;
        const T center = static_cast<T>(moments.mean);
        const T slope = static_cast<T>(static_cast<double>(scale[group]) * inverse);
        const T mean_dy = static_cast<T>(sum / members);
        const T mean_product = static_cast<T>(product * inverse * inverse / members);
        groups.for_each_member(group, [&](std::size_t i) {
            dx[i] = slope * (dy[i] - mean_dy - (x[i] - center) * mean_product);
        });
    }
    work.cost(12 * static_cast<double>(x.size()), 0);
    work.store(p.dx, p.dx_desc, dx, p.alpha_data, p.beta_data);
    work.store(p.dscale, p.param_desc, dscale, p.alpha_param, p.beta_param);
    work.store(p.dbias, p.param_desc, dbias, p.alpha_param, p.beta_param);
}

}  // namespace

void host_normalization_training(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<NormalizationParams>().x_desc.data_type(),
               [&]<typename T>(T) { training<T>(work); });
}

void host_normalization_inference(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<NormalizationParams>().x_desc.data_type(),
               [&]<typename T>(T) { inference<T>(work); });
}

void host_normalization_backward(const SimgpuHostLaunch* launch) {
    Work work(launch);
    compute_as(work.params<NormalizationGradientParams>().x_desc.data_type(),
               [&]<typename T>(T) { backward<T>(work); });
}

}  // namespace libswap::simgpu::cudnn
