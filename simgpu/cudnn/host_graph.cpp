// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The work of the kernel that computes an operation graph: each tensor's values in turn, those of
// virtual ones never leave the kernel.

#include <cmath>

#include "simgpu/cublas/blas.hpp"
#include "simgpu/cudnn/broadcast.hpp"
#include "simgpu/cudnn/graph.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/pointwise.hpp"
#include "simgpu/cudnn/reducer.hpp"
#include "simgpu/cudnn/work.hpp"

namespace libswap::simgpu::cudnn {
namespace {

template <typename T>
class Graph {
  public:
    Graph(Work& work, const GraphParams& params)
        : work_(work), p_(params), values_(GraphParams::kMaxTensors) {}

    void run() {
        work_.use_workspace(p_.workspace, p_.workspace_bytes);
        for (int i = 0; i < p_.op_count && !work_.faulted(); ++i) {
            run(p_.ops[i]);
        }
        for (int i = 0; i < p_.tensor_count && !work_.faulted(); ++i) {
            if ((p_.written >> i & 1) != 0) {
                work_.store(p_.addresses[i], p_.tensors[i], values_[static_cast<std::size_t>(i)]);
            }
        }
    }

  private:
    using Values = std::vector<T>;

    bool has(const GraphOp& op, int place) const { return op.tensors[place] != GraphOp::kNone; }
    const Tensor& desc(const GraphOp& op, int place) const { return p_.tensors[op.tensors[place]]; }

    /// What an earlier operation made, or what lies in memory.
    const Values& input(const GraphOp& op, int place) {
        const auto which = static_cast<std::size_t>(op.tensors[place]);
        Values& values = values_[which];
        if (values.empty()) {
            if ((p_.by_value >> which & 1) != 0) {
                values.assign(1, static_cast<T>(p_.values[which]));
            } else {
                values = work_.load<T>(p_.addresses[which], p_.tensors[which]);
            }
        }
        return values;
    }

    Values& output(const GraphOp& op, int place) {
        Values& values = values_[static_cast<std::size_t>(op.tensors[place])];
        values.assign(static_cast<std::size_t>(desc(op, place).elements()), T{});
        return values;
    }

    /// The input repeated to the shape of `large`.
    Values repeated(const GraphOp& op, int place, const Tensor& large) {
        const Values& values = input(op, place);
        if (work_.faulted() || same_dims(desc(op, place), large)) {
            return values;
        }
        Values all(static_cast<std::size_t>(large.elements()));
        Broadcast(large, desc(op, place)).for_each([&](std::size_t at, std::size_t from) {
            all[at] = values[from];
        });
        return all;
    }

    void run(const GraphOp& op) {
        switch (op.kind) {
            case GraphOp::Kind::Pointwise:
                return run_pointwise(op);
            case GraphOp::Kind::Reduction:
                return run_reduction(op);
            case GraphOp::Kind::Matmul:
                return run_matmul(op);
            case GraphOp::Kind::NormForward:
                return run_norm_forward(op);
            case GraphOp::Kind::NormBackward:
                return run_norm_backward(op);
            default:
                return run_convolution(op);
        }
    }

    void run_convolution(const GraphOp& op) {
        const auto direction = static_cast<Direction>(op.kind);
        const int result = direction == Direction::Forward        ? role::Y
                           : direction == Direction::BackwardData ? role::X
                                                                  : role::W;
        Values operands[3];
        for (const int place : {role::X, role::W, role::Y}) {
            operands[place] = place == result
                                  ? Values(static_cast<std::size_t>(desc(op, place).elements()))
                                  : input(op, place);
        }
        Values before;
        if (op.alpha2 != 0) {
            before = work_.load<T>(p_.addresses[op.tensors[result]], desc(op, result));
        }
        if (work_.faulted()) {
            return;
        }
        convolve(direction, p_.convolution, desc(op, role::X), operands[role::X], desc(op, role::W),
                 operands[role::W], desc(op, role::Y), operands[role::Y]);
        work_.cost(convolution_flops(desc(op, role::W), desc(op, role::Y)), 0);
        Values& out = output(op, result);
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = static_cast<T>(op.alpha1) * operands[result][i];
            if (!before.empty()) {
                out[i] += static_cast<T>(op.alpha2) * before[i];
            }
        }
    }

    void run_pointwise(const GraphOp& op) {
        const Tensor& y = desc(op, role::Y);
        const Values x = repeated(op, role::X, y);
        const Values b = has(op, role::B) ? repeated(op, role::B, y) : Values{};
        const Values t = has(op, role::T) ? repeated(op, role::T, y) : Values{};
        if (work_.faulted()) {
            return;
        }
        Values& out = output(op, role::Y);
        std::int64_t inner = 1;
        std::int64_t extent = 1;
        if (op.mode == CUDNN_POINTWISE_GEN_INDEX) {
            const int axis = static_cast<int>(op.coefficient);
            extent = y.dims[axis];
            for (int i = axis + 1; i < y.rank; ++i) inner *= y.dims[i];
        }
        for (std::size_t i = 0; i < out.size(); ++i) {
            const auto index = static_cast<std::int64_t>(i) / inner % extent;
            out[i] = static_cast<T>(
                pointwise(op, static_cast<double>(x[i]), b.empty() ? 0 : static_cast<double>(b[i]),
                          t.empty() ? 0 : static_cast<double>(t[i]), static_cast<double>(index)));
        }
        work_.cost(static_cast<double>(out.size()), 0);
    }

    void run_reduction(const GraphOp& op) {
        const Values& x = input(op, role::X);
        if (work_.faulted()) {
            return;
        }
        const Reducer reducer(op.mode, true);
        Values& out = output(op, role::Y);
        std::vector<double> sums(out.size(), reducer.first());
        Broadcast(desc(op, role::X), desc(op, role::Y))
            .for_each([&](std::size_t at, std::size_t to) {
                reducer.add(sums[to], static_cast<double>(x[at]));
            });
        const double count = static_cast<double>(x.size()) / static_cast<double>(out.size());
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = static_cast<T>(reducer.last(sums[i], count));
        }
        work_.cost(static_cast<double>(x.size()), 0);
    }

    void run_matmul(const GraphOp& op) {
        const Values& a = input(op, role::X);
        const Values& b = input(op, role::W);
        if (work_.faulted() || !cublas::blas::load()) {
            return;
        }
        const Tensor& y = desc(op, role::Y);
        const int last = y.rank - 1;
        const std::int64_t m = y.dims[last - 1];
        const std::int64_t n = y.dims[last];
        const std::int64_t k = desc(op, role::X).dims[last];
        Values& out = output(op, role::Y);
        // Batches are tensors of which each element is a matrix.
        const auto batches = [last](Tensor tensor) {
            tensor.dims[last] = tensor.dims[last - 1] = 1;
            return tensor;
        };
        const Tensor y_batches = batches(y);
        std::vector<std::size_t> a_of(out.size() / static_cast<std::size_t>(m * n));
        Broadcast(y_batches, batches(desc(op, role::X)))
            .for_each([&](std::size_t at, std::size_t from) { a_of[at] = from; });
        Broadcast(y_batches, batches(desc(op, role::W)))
            .for_each([&](std::size_t at, std::size_t from) {
                // Row-major matrices are, column by column, transposed ones: C' = B' A'.
                cublas::blas::gemm<T>({.transpose_a = false,
                                       .transpose_b = false,
                                       .m = n,
                                       .n = m,
                                       .k = k,
                                       .alpha = 1,
                                       .a = b.data() + from * static_cast<std::size_t>(k * n),
                                       .lda = n,
                                       .b = a.data() + a_of[at] * static_cast<std::size_t>(m * k),
                                       .ldb = k,
                                       .beta = 0,
                                       .c = out.data() + at * static_cast<std::size_t>(m * n),
                                       .ldc = n});
            });
        work_.cost(2 * static_cast<double>(out.size()) * static_cast<double>(k), 0);
    }

    /// Which elements are normalised together: those that meet the same element of a tensor of
    /// moments, whose shape the mode gives where the graph has no such tensor.
    Tensor moments_desc(const GraphOp& op) const {
        for (const int place : {role::Mean, role::Inverse}) {
            if (has(op, place)) {
                return desc(op, place);
            }
        }
        const Tensor& x = desc(op, role::X);
        int dims[Tensor::kMaxRank];
        for (int i = 0; i < x.rank; ++i) {
            const bool kept = op.mode == CUDNN_BATCH_NORM      ? i == 1
                              : op.mode == CUDNN_INSTANCE_NORM ? i <= 1
                                                               : desc(op, role::Scale).dims[i] == 1;
            dims[i] = kept ? x.dims[i] : 1;
        }
        return dense_tensor(CUDNN_DATA_FLOAT, x.rank, dims);
    }

    void find_moments(const GraphOp& op, const Tensor& groups, const Values& x, double epsilon,
                      std::vector<double>& mean, std::vector<double>& variance,
                      std::vector<double>& inverse) {
        const auto count = static_cast<std::size_t>(groups.elements());
        const double members = static_cast<double>(x.size()) / static_cast<double>(count);
        const Broadcast broadcast(desc(op, role::X), groups);
        mean.assign(count, 0);
        variance.assign(count, 0);
        if (op.mode != CUDNN_RMS_NORM) {
            broadcast.for_each(
                [&](std::size_t at, std::size_t to) { mean[to] += static_cast<double>(x[at]); });
            for (double& value : mean) value /= members;
        }
        broadcast.for_each([&](std::size_t at, std::size_t to) {
            const double distance = static_cast<double>(x[at]) - mean[to];
            variance[to] += distance * distance;
        });
        inverse.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            variance[i] /= members;
            inverse[i] = 1 / std::sqrt(variance[i] + epsilon);
        }
    }

    void run_norm_forward(const GraphOp& op) {
        const Tensor& x_desc = desc(op, role::X);
        const Values& x = input(op, role::X);
        const Values scale = repeated(op, role::Scale, x_desc);
        const Values bias =
            has(op, role::Bias) ? repeated(op, role::Bias, x_desc) : Values(x.size());
        const Values& epsilon = input(op, role::Epsilon);
        const Tensor groups = moments_desc(op);
        const bool estimated = op.phase == CUDNN_NORM_FWD_INFERENCE && op.mode == CUDNN_BATCH_NORM;
        std::vector<double> mean;
        std::vector<double> variance;
        std::vector<double> inverse;
        if (estimated && has(op, role::Mean) && has(op, role::Inverse)) {
            const Values& m = input(op, role::Mean);
            const Values& i = input(op, role::Inverse);
            mean.assign(m.begin(), m.end());
            inverse.assign(i.begin(), i.end());
        }
        if (work_.faulted()) {
            return;
        }
        if (inverse.empty()) {
            find_moments(op, groups, x, static_cast<double>(epsilon[0]), mean, variance, inverse);
        }
        Values& y = output(op, role::Y);
        Broadcast(x_desc, groups).for_each([&](std::size_t at, std::size_t group) {
            y[at] =
                (x[at] - static_cast<T>(mean[group])) * static_cast<T>(inverse[group]) * scale[at] +
                bias[at];
        });
        work_.cost(8 * static_cast<double>(x.size()), 0);
        if (estimated) {
            return;
        }
        put(op, role::Mean, mean);
        put(op, role::Inverse, inverse);
        const double members =
            static_cast<double>(x.size()) / static_cast<double>(groups.elements());
        for (double& value : variance) value *= members > 1 ? members / (members - 1) : 1;
        blend(op, role::RunningMean, role::NextMean, mean);
        blend(op, role::RunningVariance, role::NextVariance, variance);
    }

    void put(const GraphOp& op, int place, const std::vector<double>& from) {
        if (has(op, place)) {
            output(op, place).assign(from.begin(), from.end());
        }
    }

    /// next = (1 - factor) running + factor of what the batch has.
    void blend(const GraphOp& op, int running, int next, std::vector<double> batch) {
        if (!has(op, running) || !has(op, next) || !has(op, role::Factor)) {
            return;
        }
        const Values& before = input(op, running);
        const Values& factor = input(op, role::Factor);
        if (work_.faulted()) {
            return;
        }
        const double f = static_cast<double>(factor[0]);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            batch[i] = (1 - f) * static_cast<double>(before[i]) + f * batch[i];
        }
        put(op, next, batch);
    }

    void run_norm_backward(const GraphOp& op) {
        const Tensor& x_desc = desc(op, role::X);
        const Values& x = input(op, role::X);
        const Values& dy = input(op, role::Dy);
        const Values scale = repeated(op, role::Scale, x_desc);
        const Values& inverse = input(op, role::Inverse);
        const Values mean = has(op, role::Mean) ? input(op, role::Mean) : Values(inverse.size());
        if (work_.faulted()) {
            return;
        }
        const Tensor& groups = desc(op, role::Inverse);
        const Broadcast by_group(x_desc, groups);
        const double members = static_cast<double>(x.size()) / static_cast<double>(inverse.size());
        std::vector<double> sum(inverse.size());
        std::vector<double> product(inverse.size());
        Values normal(x.size());
        by_group.for_each([&](std::size_t at, std::size_t group) {
            normal[at] = (x[at] - mean[group]) * inverse[group];
            const double g = static_cast<double>(dy[at] * scale[at]);
            sum[group] += op.mode == CUDNN_RMS_NORM ? 0 : g;
            product[group] += g * static_cast<double>(normal[at]);
        });
        Values& dx = output(op, role::Y);
        by_group.for_each([&](std::size_t at, std::size_t group) {
            dx[at] = inverse[group] * (dy[at] * scale[at] - static_cast<T>(sum[group] / members) -
                                       normal[at] * static_cast<T>(product[group] / members));
        });
        add_up(op, role::Dscale, x_desc, [&](std::size_t at) { return dy[at] * normal[at]; });
        if (has(op, role::Dbias)) {
            add_up(op, role::Dbias, x_desc, [&](std::size_t at) { return dy[at]; });
        }
        work_.cost(12 * static_cast<double>(x.size()), 0);
    }

    template <typename Of>
    void add_up(const GraphOp& op, int place, const Tensor& large, const Of& of) {
        std::vector<double> sums(static_cast<std::size_t>(desc(op, place).elements()));
        Broadcast(large, desc(op, place)).for_each([&](std::size_t at, std::size_t to) {
            sums[to] += static_cast<double>(of(at));
        });
        put(op, place, sums);
    }

    Work& work_;
    const GraphParams& p_;
    std::vector<Values> values_;
};

}  // namespace

void host_graph(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<GraphParams>();
    bool in_doubles = false;
    for (int i = 0; i < p.tensor_count; ++i) {
        in_doubles = in_doubles || p.tensors[i].data_type() == CUDNN_DATA_DOUBLE;
    }
    if (in_doubles) {
        Graph<double>(work, p).run();
    } else {
        Graph<float>(work, p).run();
    }
}

}  // namespace libswap::simgpu::cudnn
