// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "simgpu/cudnn/convolution.hpp"
#include "simgpu/cudnn/descriptors.hpp"

namespace libswap::simgpu::cudnn {

/// The shapes of one convolution, checked.
struct Problem {
    Tensor x;
    Tensor w;
    Tensor y;
    ConvolutionShape shape;
};

/// Checks that everything is there, fits and can be computed.
cudnnStatus_t make_problem(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                           cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y,
                           Problem& out);

/// The same of shapes that come from elsewhere.
cudnnStatus_t check_problem(const Problem& problem);

/// An algorithm of a direction: all give the same bits, in other times and with other workspaces.
struct Algorithm {
    enum class Scratch : std::uint8_t { None, Indices, Columns, Filter, TwoFilters };

    int id;  ///< in the direction's enumeration
    double work_factor;
    bool is_deterministic;  ///< as the vendor's documentation has it; here they all are
    Scratch scratch;
};

/// Best first.
std::span<const Algorithm> algorithms(Direction direction);

/// Null: the enumeration has it (or not), but there is none.
const Algorithm* find_algorithm(Direction direction, int id);

/// How many the enumeration has.
int algorithm_count(Direction direction);

std::size_t workspace_bytes(const Algorithm& algorithm, const Problem& problem);

/// Where the operands of a convolution lie; what it does not need is null.
struct Operands {
    const void* x;
    const void* w;
    const void* y;
    void* workspace;
    std::size_t workspace_bytes;
};

/// The kernel's parameters for output = conv(inputs).
ConvolutionParams params_of(const Problem& problem, const Algorithm& algorithm,
                            const Operands& operands);

/// Launches it on the handle's stream.
cudnnStatus_t launch_convolution(const cudnnContext& handle, Direction direction,
                                 const ConvolutionParams& params);

/// A factor as cuDNN takes it: on the host, a double for tensors of doubles, else a float.
double scalar_at(const void* pointer, cudnnDataType_t tensor_type);

/// A device address as kernels' parameters have it.
inline std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace libswap::simgpu::cudnn
