// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Which algorithm to take: by what is known (Get..._v7), and by trying (Find...).

#include <algorithm>
#include <vector>

#include "simgpu/cudnn/device_memory.hpp"
#include "simgpu/cudnn/problem.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// What both kinds of answer consist of.
struct Candidate {
    const Algorithm* algorithm;  ///< null: the enumeration has it, but it is not there
    int id;
    cudnnStatus_t status;
    float time_ms;  ///< -1: unknown
    std::size_t memory;
};

std::vector<Candidate> candidates(Direction direction, const Problem& problem) {
    std::vector<Candidate> all;
    for (const Algorithm& algorithm : algorithms(direction)) {
        all.push_back({&algorithm, algorithm.id, CUDNN_STATUS_SUCCESS, -1,
                       workspace_bytes(algorithm, problem)});
    }
    for (int id = 0; id < algorithm_count(direction); ++id) {
        if (find_algorithm(direction, id) == nullptr) {
            all.push_back({nullptr, id, CUDNN_STATUS_NOT_SUPPORTED, -1, 0});
        }
    }
    return all;
}

template <typename Perf>
cudnnStatus_t answer(const std::vector<Candidate>& all, int requested, int* returned,
                     Perf* results) {
    const int count = std::min(requested, static_cast<int>(all.size()));
    for (int i = 0; i < count; ++i) {
        const Candidate& candidate = all[static_cast<std::size_t>(i)];
        Perf& result = results[i];
        result = {};
        result.algo = static_cast<decltype(result.algo)>(candidate.id);
        result.status = candidate.status;
        result.time = candidate.time_ms;
        result.memory = candidate.memory;
        const bool varies =
            candidate.algorithm != nullptr && !candidate.algorithm->is_deterministic;
        result.determinism = varies ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
        result.mathType = CUDNN_DEFAULT_MATH;
    }
    *returned = count;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_request(cudnnHandle_t handle, int requested, const int* returned,
                            const void* results) {
    if (handle == nullptr || requested < 1 || returned == nullptr || results == nullptr) {
        return bad_param("no handle, nothing requested, or no place for the answer");
    }
    return CUDNN_STATUS_SUCCESS;
}

/// Runs each algorithm that the workspace is large enough for, and sorts by time.
cudnnStatus_t try_all(const cudnnContext& handle, Direction direction, const Problem& problem,
                      const Operands& operands, std::vector<Candidate>& all) {
    ensure_context(handle);
    for (Candidate& candidate : all) {
        if (candidate.algorithm == nullptr) {
            continue;
        }
        if (candidate.memory > operands.workspace_bytes ||
            (candidate.memory != 0 && operands.workspace == nullptr)) {
            candidate.status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
            continue;
        }
        const TimingEvent start;
        const TimingEvent stop;
        cudnnStatus_t status = status_of(start.record(handle.stream));
        if (status == CUDNN_STATUS_SUCCESS) {
            status = launch_convolution(handle, direction,
                                        params_of(problem, *candidate.algorithm, operands));
        }
        if (status == CUDNN_STATUS_SUCCESS) {
            status = status_of(stop.record(handle.stream));
        }
        if (status == CUDNN_STATUS_SUCCESS) {
            candidate.time_ms = stop.since(start);
            status = candidate.time_ms < 0 ? CUDNN_STATUS_EXECUTION_FAILED : status;
        }
        candidate.status = status;
    }
    std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
        const bool a_ran = a.status == CUDNN_STATUS_SUCCESS;
        const bool b_ran = b.status == CUDNN_STATUS_SUCCESS;
        return a_ran != b_ran ? a_ran : a_ran && a.time_ms < b.time_ms;
    });
    return CUDNN_STATUS_SUCCESS;
}

/// With memory of our own, as the calls without Ex.
cudnnStatus_t try_all_elsewhere(const cudnnContext& handle, Direction direction,
                                const Problem& problem, std::vector<Candidate>& all) {
    ensure_context(handle);
    const auto size = [](const Tensor& tensor) { return static_cast<std::size_t>(tensor.bytes()); };
    std::size_t most = 0;
    for (const Candidate& candidate : all) {
        most = std::max(most, candidate.memory);
    }
    const DeviceMemory x(size(problem.x));
    const DeviceMemory w(size(problem.w));
    const DeviceMemory y(size(problem.y));
    const DeviceMemory workspace(most);
    for (const DeviceMemory* memory : {&x, &w, &y}) {
        if (memory->status() != CUDA_SUCCESS) {
            return status_of(memory->status());
        }
    }
    const bool has_workspace = workspace.get() != nullptr;
    return try_all(handle, direction, problem,
                   {x.get(), w.get(), y.get(), workspace.get(), has_workspace ? most : 0}, all);
}

template <typename Perf>
cudnnStatus_t get(cudnnHandle_t handle, Direction direction, const Problem& problem, int requested,
                  int* returned, Perf* results) {
    const cudnnStatus_t status = check_request(handle, requested, returned, results);
    return status != CUDNN_STATUS_SUCCESS
               ? status
               : answer(candidates(direction, problem), requested, returned, results);
}

template <typename Perf>
cudnnStatus_t find(cudnnHandle_t handle, Direction direction, const Problem& problem,
                   const Operands* operands, int requested, int* returned, Perf* results) {
    cudnnStatus_t status = check_request(handle, requested, returned, results);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    if (operands != nullptr &&
        (operands->x == nullptr || operands->w == nullptr || operands->y == nullptr)) {
        return bad_param("a tensor's address is missing");
    }
    std::vector<Candidate> all = candidates(direction, problem);
    status = operands != nullptr ? try_all(*handle, direction, problem, *operands, all)
                                 : try_all_elsewhere(*handle, direction, problem, all);
    return status != CUDNN_STATUS_SUCCESS ? status : answer(all, requested, returned, results);
}

cudnnStatus_t count(cudnnHandle_t handle, Direction direction, int* out) {
    if (handle == nullptr || out == nullptr) {
        return bad_param("no handle, or no place for the answer");
    }
    *out = algorithm_count(direction);
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace libswap::simgpu::cudnn

using namespace libswap::simgpu::cudnn;  // NOLINT: the C ABI's bodies below are one-liners

#define SIMGPU_CUDNN_PROBLEM(x, w, y)                                           \
    Problem problem;                                                            \
    if (const cudnnStatus_t made = make_problem(x, w, convolution, y, problem); \
        made != CUDNN_STATUS_SUCCESS) {                                         \
        return made;                                                            \
    }

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* out) {
    return count(handle, Direction::Forward, out);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* out) {
    return count(handle, Direction::BackwardData, out);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* out) {
    return count(handle, Direction::BackwardFilter, out);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
    SIMGPU_CUDNN_PROBLEM(x, w, y)
    return get(handle, Direction::Forward, problem, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
    SIMGPU_CUDNN_PROBLEM(dx, w, dy)
    return get(handle, Direction::BackwardData, problem, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
    SIMGPU_CUDNN_PROBLEM(x, dw, dy)
    return get(handle, Direction::BackwardFilter, problem, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
    SIMGPU_CUDNN_PROBLEM(x, w, y)
    return find(handle, Direction::Forward, problem, nullptr, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
    SIMGPU_CUDNN_PROBLEM(dx, w, dy)
    return find(handle, Direction::BackwardData, problem, nullptr, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
    SIMGPU_CUDNN_PROBLEM(x, dw, dy)
    return find(handle, Direction::BackwardFilter, problem, nullptr, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnFilterDescriptor_t w_desc, const void* w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y_desc, void* y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* results, void* workspace,
    std::size_t workspace_bytes) {
    SIMGPU_CUDNN_PROBLEM(x_desc, w_desc, y_desc)
    const Operands operands{x, w, y, workspace, workspace_bytes};
    return find(handle, Direction::Forward, problem, &operands, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w_desc, const void* w,
    const cudnnTensorDescriptor_t dy_desc, const void* dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx_desc, void* dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace,
    std::size_t workspace_bytes) {
    SIMGPU_CUDNN_PROBLEM(dx_desc, w_desc, dy_desc)
    const Operands operands{dx, w, dy, workspace, workspace_bytes};
    return find(handle, Direction::BackwardData, problem, &operands, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnTensorDescriptor_t dy_desc, const void* dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw_desc, void* dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results,
    void* workspace, std::size_t workspace_bytes) {
    SIMGPU_CUDNN_PROBLEM(x_desc, dw_desc, dy_desc)
    const Operands operands{x, dw, dy, workspace, workspace_bytes};
    return find(handle, Direction::BackwardFilter, problem, &operands, requested, returned,
                results);
}

}  // extern "C"

#undef SIMGPU_CUDNN_PROBLEM
