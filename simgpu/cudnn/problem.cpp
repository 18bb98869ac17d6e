// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/problem.hpp"

#include <algorithm>

#include "simgpu/cudnn/kernels.hpp"

namespace libswap::simgpu::cudnn {
namespace {

using Scratch = Algorithm::Scratch;

constexpr Algorithm kForward[] = {
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1.0, true, Scratch::Indices},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 1.3, true, Scratch::None},
    {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 1.6, true, Scratch::Columns},
};
constexpr Algorithm kBackwardData[] = {
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, 1.0, true, Scratch::Indices},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, 1.3, false, Scratch::None},
};
constexpr Algorithm kBackwardFilter[] = {
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, 1.0, true, Scratch::TwoFilters},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, 1.2, false, Scratch::Filter},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, 1.4, false, Scratch::None},
};

std::int64_t pixels_of(const Tensor& tensor) {
    return tensor.elements() / tensor.dims[0] / tensor.dims[1];
}

}  // namespace

cudnnStatus_t make_problem(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                           cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y,
                           Problem& out) {
    if (x == nullptr || w == nullptr || convolution == nullptr || y == nullptr) {
        return bad_param("a descriptor is missing");
    }
    out = {x->tensor, w->tensor, y->tensor, convolution->shape};
    return check_problem(out);
}

cudnnStatus_t check_problem(const Problem& problem) {
    int dims[Tensor::kMaxRank];
    if (!convolution_output(problem.shape, problem.x, problem.w, dims) ||
        problem.y.rank != problem.x.rank ||
        !std::equal(dims, dims + problem.y.rank, problem.y.dims)) {
        return bad_param("the shapes of a convolution do not fit");
    }
    const cudnnDataType_t type = problem.x.data_type();
    if (!is_floating(type) || problem.w.type != type || problem.y.type != type) {
        return not_supported("a convolution of these data types");
    }
    // As far as oneDNN goes.
    if (problem.shape.spatial > 3) {
        return not_supported("a convolution of more than three dimensions");
    }
    return CUDNN_STATUS_SUCCESS;
}

std::span<const Algorithm> algorithms(Direction direction) {
    switch (direction) {
        case Direction::Forward:
            return kForward;
        case Direction::BackwardData:
            return kBackwardData;
        case Direction::BackwardFilter:
            break;
    }
    return kBackwardFilter;
}

const Algorithm* find_algorithm(Direction direction, int id) {
    const auto all = algorithms(direction);
    const auto found =
        std::find_if(all.begin(), all.end(), [id](const Algorithm& a) { return a.id == id; });
    return found == all.end() ? nullptr : &*found;
}

int algorithm_count(Direction direction) {
    switch (direction) {
        case Direction::Forward:
            return CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
        case Direction::BackwardData:
            return CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
        case Direction::BackwardFilter:
            break;
    }
    return CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
}

std::size_t workspace_bytes(const Algorithm& algorithm, const Problem& problem) {
    constexpr std::size_t kIndexBytes = 8;
    const auto taps = static_cast<std::size_t>(problem.w.elements() / problem.w.dims[0]);
    const auto pixels = static_cast<std::size_t>(pixels_of(problem.y));
    const std::size_t element_bytes = bytes_of(problem.x.data_type());
    switch (algorithm.scratch) {
        case Scratch::None:
            break;
        case Scratch::Indices:
            return (taps + pixels) * kIndexBytes;
        case Scratch::Columns:
            return taps * static_cast<std::size_t>(problem.shape.groups) * pixels * element_bytes;
        case Scratch::Filter:
            return static_cast<std::size_t>(problem.w.elements()) * element_bytes;
        case Scratch::TwoFilters:
            return static_cast<std::size_t>(problem.w.elements()) * element_bytes * 2;
    }
    return 0;
}

ConvolutionParams params_of(const Problem& problem, const Algorithm& algorithm,
                            const Operands& operands) {
    ConvolutionParams params{};
    params.x = address_of(operands.x);
    params.w = address_of(operands.w);
    params.y = address_of(operands.y);
    params.z = params.y;
    params.workspace_bytes = workspace_bytes(algorithm, problem);
    params.workspace = params.workspace_bytes == 0 ? 0 : address_of(operands.workspace);
    params.alpha = 1;
    params.work_factor = algorithm.work_factor;
    params.x_desc = problem.x;
    params.w_desc = problem.w;
    params.y_desc = problem.y;
    params.z_desc = problem.y;
    params.shape = problem.shape;
    return params;
}

cudnnStatus_t launch_convolution(const cudnnContext& handle, Direction direction,
                                 const ConvolutionParams& params) {
    ensure_context(handle);
    switch (direction) {
        case Direction::Forward:
            return status_of(launch(Kernel::convolution_forward, params, handle.stream,
                                    params.y_desc.elements()));
        case Direction::BackwardData:
            return status_of(launch(Kernel::convolution_backward_data, params, handle.stream,
                                    params.x_desc.elements()));
        case Direction::BackwardFilter:
            break;
    }
    return status_of(launch(Kernel::convolution_backward_filter, params, handle.stream,
                            params.w_desc.elements()));
}

double scalar_at(const void* pointer, cudnnDataType_t tensor_type) {
    return tensor_type == CUDNN_DATA_DOUBLE
               ? *static_cast<const double*>(pointer)
               : static_cast<double>(*static_cast<const float*>(pointer));
}

}  // namespace libswap::simgpu::cudnn
