// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The work of the kernels that combine, fill and reduce tensors.

#include <algorithm>
#include <cmath>

#include "simgpu/cudnn/broadcast.hpp"
#include "simgpu/cudnn/kernels.hpp"
#include "simgpu/cudnn/params.hpp"
#include "simgpu/cudnn/reducer.hpp"
#include "simgpu/cudnn/work.hpp"

namespace libswap::simgpu::cudnn {
namespace {

template <typename T>
T combine(std::int32_t op, T a, T b) {
    switch (op) {
        case CUDNN_OP_TENSOR_ADD:
            return a + b;
        case CUDNN_OP_TENSOR_MUL:
            return a * b;
        case CUDNN_OP_TENSOR_MIN:
            return std::min(a, b);
        case CUDNN_OP_TENSOR_MAX:
            return std::max(a, b);
        case CUDNN_OP_TENSOR_SQRT:
            return std::sqrt(a);
        default:
            return T{1} - a;
    }
}

template <typename T>
void tensor_op(Work& work, const TensorOpParams& p) {
    const std::vector<T> a = work.load<T>(p.a, p.a_desc);
    std::vector<T> result(static_cast<std::size_t>(p.c_desc.elements()));
    if (work.faulted()) {
        return;
    }
    Broadcast(p.c_desc, p.a_desc).for_each([&](std::size_t at, std::size_t from) {
        result[at] = static_cast<T>(p.alpha1) * a[from];
    });
    std::vector<T> b(1);
    if (p.b != 0) {
        b = work.load<T>(p.b, p.b_desc);
        if (work.faulted()) {
            return;
        }
        Broadcast(p.c_desc, p.b_desc).for_each([&](std::size_t at, std::size_t from) {
            result[at] = combine(p.op, result[at], static_cast<T>(p.alpha2) * b[from]);
        });
    } else if (p.op == CUDNN_OP_TENSOR_SQRT || p.op == CUDNN_OP_TENSOR_NOT) {
        for (T& value : result) {
            value = combine(p.op, value, T{});
        }
    }
    work.cost(2 * static_cast<double>(result.size()), 0);
    work.store(p.c, p.c_desc, result, 1, p.beta);
}

template <typename T>
void reduce(Work& work, const ReductionParams& p) {
    work.use_workspace(p.workspace, p.workspace_bytes);
    const std::vector<T> a = work.load<T>(p.a, p.a_desc);
    const auto results = static_cast<std::size_t>(p.c_desc.elements());
    auto* indices = p.indices == 0
                        ? nullptr
                        : work.span<std::uint32_t>(p.indices, static_cast<std::int64_t>(results));
    if (work.faulted()) {
        return;
    }
    const Reducer reducer(p.op, p.propagate_nan != 0);
    std::vector<double> sums(results, reducer.first());
    std::vector<std::uint32_t> seen(results);
    if (indices != nullptr) {
        std::fill_n(indices, results, 0U);
    }
    Broadcast(p.a_desc, p.c_desc).for_each([&](std::size_t at, std::size_t to) {
        if (reducer.add(sums[to], static_cast<double>(p.alpha) * static_cast<double>(a[at])) &&
            indices != nullptr) {
            indices[to] = seen[to];
        }
        ++seen[to];
    });
    const double count = static_cast<double>(a.size()) / static_cast<double>(results);
    for (double& sum : sums) {
        sum = reducer.last(sum, count);
    }
    work.cost(static_cast<double>(a.size()), 0);
    work.store(p.c, p.c_desc, sums, 1, p.beta);
}

}  // namespace

void host_tensor_op(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<TensorOpParams>();
    compute_as(p.c_desc.data_type(), [&]<typename T>(T) { tensor_op<T>(work, p); });
}

void host_tensor_scale(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<TensorFillParams>();
    compute_as(p.y_desc.data_type(), [&]<typename T>(T) {
        const std::vector<T> values = work.load<T>(p.y, p.y_desc);
        work.store(p.y, p.y_desc, values, p.alpha);
    });
}

void host_tensor_set(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<TensorFillParams>();
    const std::vector<double> values(static_cast<std::size_t>(p.y_desc.elements()), p.alpha);
    work.store(p.y, p.y_desc, values);
}

void host_tensor_reduce(const SimgpuHostLaunch* launch) {
    Work work(launch);
    const auto p = work.params<ReductionParams>();
    compute_as(p.a_desc.data_type(), [&]<typename T>(T) { reduce<T>(work, p); });
}

}  // namespace libswap::simgpu::cudnn
