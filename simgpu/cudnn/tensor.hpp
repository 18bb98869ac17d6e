// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/cudnn/api.hpp"

namespace libswap::simgpu::cudnn {

/// A tensor as descriptors and kernels' parameters have it: no constructor, any bytes are valid to
/// copy. Strides count elements. rank 0: none.
struct Tensor {
    static constexpr int kMaxRank = CUDNN_DIM_MAX;

    std::int32_t type;
    std::int32_t rank;
    std::int32_t dims[kMaxRank];
    std::int64_t strides[kMaxRank];

    cudnnDataType_t data_type() const { return static_cast<cudnnDataType_t>(type); }
    /// Product of the dimensions.
    std::int64_t elements() const;
    /// Elements from the first to the last, both included.
    std::int64_t extent() const;
    /// Of the extent.
    std::int64_t bytes() const;
    /// In row-major order without gaps.
    bool is_dense() const;
};

/// Bytes of an element; 0 for types that the stand-in cannot compute with.
std::size_t bytes_of(cudnnDataType_t type);

/// Whether it is one of the header's enumerators.
bool is_data_type(cudnnDataType_t type);

/// float, double, half, bfloat16.
bool is_floating(cudnnDataType_t type);

/// Row-major without gaps. `rank` within 0 and kMaxRank.
Tensor dense_tensor(cudnnDataType_t type, int rank, const int* dims);

/// As dense_tensor, but with the channels, dimension 1, innermost.
Tensor channels_last_tensor(cudnnDataType_t type, int rank, const int* dims);

bool same_dims(const Tensor& a, const Tensor& b);

/// Calls use(T{}): T is what values of the type are computed in, float or, for doubles, double.
template <typename Use>
void compute_as(cudnnDataType_t type, const Use& use) {
    if (type == CUDNN_DATA_DOUBLE) {
        use(double{});
    } else {
        use(float{});
    }
}

/// Calls visit(channel, begin, end) for each channel of each image: its pixels' places in row-major
/// order. Of tensors of rank 2 or more.
template <typename Visit>
void for_each_channel(const Tensor& tensor, const Visit& visit) {
    const auto channels = static_cast<std::size_t>(tensor.dims[1]);
    const auto rows = static_cast<std::size_t>(tensor.dims[0]) * channels;
    const std::size_t pixels = rows == 0 ? 0 : static_cast<std::size_t>(tensor.elements()) / rows;
    for (std::size_t row = 0; row < rows; ++row) {
        visit(row % channels, row * pixels, (row + 1) * pixels);
    }
}

}  // namespace libswap::simgpu::cudnn
