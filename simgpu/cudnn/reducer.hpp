// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "simgpu/cudnn/api.hpp"

namespace libswap::simgpu::cudnn {

/// A reduction by one of cudnnReduceTensorOp_t, in double whatever the tensors are.
class Reducer {
  public:
    Reducer(std::int32_t op, bool propagate_nan) : op_(op), propagate_nan_(propagate_nan) {}

    double first() const {
        switch (op_) {
            case CUDNN_REDUCE_TENSOR_MUL:
            case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
                return 1;
            case CUDNN_REDUCE_TENSOR_MIN:
                return std::numeric_limits<double>::infinity();
            case CUDNN_REDUCE_TENSOR_MAX:
                return -std::numeric_limits<double>::infinity();
            default:
                return 0;
        }
    }

    /// True where `value` is the new extremum.
    bool add(double& sum, double value) const {
        switch (op_) {
            case CUDNN_REDUCE_TENSOR_MUL:
                sum *= value;
                return false;
            case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
                sum *= value == 0 ? 1 : value;
                return false;
            case CUDNN_REDUCE_TENSOR_MIN:
                return extremum(sum, value, value < sum);
            case CUDNN_REDUCE_TENSOR_MAX:
                return extremum(sum, value, value > sum);
            case CUDNN_REDUCE_TENSOR_AMAX:
                return extremum(sum, std::abs(value), std::abs(value) > sum);
            case CUDNN_REDUCE_TENSOR_NORM1:
                sum += std::abs(value);
                return false;
            case CUDNN_REDUCE_TENSOR_NORM2:
                sum += value * value;
                return false;
            default:
                sum += value;
                return false;
        }
    }

    double last(double sum, double count) const {
        return op_ == CUDNN_REDUCE_TENSOR_AVG     ? sum / count
               : op_ == CUDNN_REDUCE_TENSOR_NORM2 ? std::sqrt(sum)
                                                  : sum;
    }

  private:
    bool extremum(double& sum, double value, bool is_new) const {
        if (std::isnan(sum)) {
            return false;
        }
        if (is_new || (propagate_nan_ && std::isnan(value))) {
            sum = value;
            return true;
        }
        return false;
    }

    std::int32_t op_;
    bool propagate_nan_;
};

}  // namespace libswap::simgpu::cudnn
