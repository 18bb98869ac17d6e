// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Softmax and its logarithm over the last dimension, forward and backward: rows of up to 2,048
// elements by a warp each, longer ones by a block each (torch 2.15's PersistentSoftmax.cuh and
// SoftMax.cu).

#include <algorithm>
#include <cmath>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/scalar_type.hpp"

namespace simgpu::torch {
namespace {

struct Rows {
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    /// Elements from row to row.
    std::uint64_t stride = 0;

    std::uint64_t extent() const { return rows == 0 ? 0 : (rows - 1) * stride + columns; }
};

void forward_row(const float* in, float* out, std::uint64_t columns, bool log) {
    const float top = *std::max_element(in, in + columns);
    double sum = 0;
    for (std::uint64_t i = 0; i < columns; ++i) sum += std::exp(in[i] - top);
    if (log) {
        const auto rest = static_cast<float>(top + std::log(sum));
        for (std::uint64_t i = 0; i < columns; ++i) out[i] = in[i] - rest;
    } else {
        const auto scale = static_cast<float>(1 / sum);
        for (std::uint64_t i = 0; i < columns; ++i) out[i] = std::exp(in[i] - top) * scale;
    }
}

/// `grad` is the gradient times the output where there is no logarithm.
void backward_row(const float* grad, const float* output, float* out, std::uint64_t columns,
                  bool log) {
    double sum = 0;
    for (std::uint64_t i = 0; i < columns; ++i) sum += static_cast<double>(grad[i]);
    const auto total = static_cast<float>(sum);
    for (std::uint64_t i = 0; i < columns; ++i)
        out[i] = grad[i] - (log ? std::exp(output[i]) : output[i]) * total;
}

/// Element types of what is read and of what is written; sums are in float.
struct Types {
    ScalarType in = ScalarType::Float;
    ScalarType out = ScalarType::Float;
};

/// A matrix's rows as floats: where they lie, or one row's copy if its elements are halves.
class RowReader {
  public:
    RowReader(const NamedLaunch& launch, std::uint64_t va, const Rows& r, ScalarType type)
        : type_(type),
          data_(launch.read<std::byte>(va, r.extent() * size_of(type))),
          copy_(type == ScalarType::Float ? 0 : r.columns),
          stride_(r.stride) {}

    bool missing() const { return data_ == nullptr; }
    const float* row(std::uint64_t row) {
        const std::byte* from = data_ + row * stride_ * size_of(type_);
        if (type_ == ScalarType::Float) return reinterpret_cast<const float*>(from);
        for (std::size_t i = 0; i < copy_.size(); ++i)
            copy_[i] = static_cast<float>(load(type_, from + i * size_of(type_)));
        return copy_.data();
    }

  private:
    ScalarType type_;
    const std::byte* data_;
    std::vector<float> copy_;
    std::uint64_t stride_;
};

/// Writes each row that `make` computes into a buffer of floats.
template <typename Make>
bool write_rows(const NamedLaunch& launch, const Rows& r, ScalarType type, Make make) {
    auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(0), r.extent() * size_of(type));
    if (out == nullptr) return true;
    std::vector<float> buffer(r.columns);
    for (std::uint64_t row = 0; row < r.rows && r.columns != 0; ++row) {
        make(row, buffer.data());
        std::byte* to = out + row * r.stride * size_of(type);
        for (std::size_t i = 0; i < buffer.size(); ++i)
            store(type, to + i * size_of(type), static_cast<double>(buffer[i]));
    }
    launch.cost(5.0 * static_cast<double>(r.extent()), 12.0 * static_cast<double>(r.extent()));
    return true;
}

bool forward(const NamedLaunch& launch, const Rows& r, const Types& types, bool log) {
    RowReader in(launch, launch.get<std::uint64_t>(1), r, types.in);
    if (in.missing()) return true;
    return write_rows(launch, r, types.out, [&](std::uint64_t row, float* out) {
        forward_row(in.row(row), out, r.columns, log);
    });
}

bool backward(const NamedLaunch& launch, const Rows& r, const Types& types, std::uint64_t grad_va,
              std::uint64_t output_va, bool log) {
    RowReader grad(launch, grad_va, r, types.in);
    RowReader output(launch, output_va, r, types.in);
    if (grad.missing() || output.missing()) return true;
    return write_rows(launch, r, types.out, [&](std::uint64_t row, float* out) {
        backward_row(grad.row(row), output.row(row), out, r.columns, log);
    });
}

/// <input, output, accumulator> from the template argument `first` on; the accumulator is a float.
bool read_types(const KernelName& name, std::size_t first, Types& types) {
    const auto& arguments = name.template_arguments;
    if (first + 3 > arguments.size()) return false;
    types = {scalar_type(arguments[first]), scalar_type(arguments[first + 1])};
    const auto is_float = [](ScalarType type) {
        return type == ScalarType::Float || type == ScalarType::Half ||
               type == ScalarType::BFloat16;
    };
    return is_float(types.in) && is_float(types.out) && arguments[first + 2] == "float";
}

/// Three floats, behind a number or not.
bool all_float(const KernelName& name, Types& types) {
    for (const std::size_t first : {0U, 1U}) {
        if (read_types(name, first, types) && types.in == ScalarType::Float &&
            types.out == ScalarType::Float)
            return true;
    }
    return false;
}

/// (out, in, rows, stride, columns, mask, ...)
NamedKernel warp_forward(const Types& types, bool log) {
    return [types, log](const NamedLaunch& launch) {
        if (launch.get<std::uint64_t>(5) != 0) return false;
        const Rows rows{launch.get<std::uint32_t>(2), launch.get<std::uint32_t>(4),
                        launch.get<std::uint32_t>(3)};
        return forward(launch, rows, types, log);
    };
}

/// (grad_in, grad, output, rows, stride, columns, mask)
NamedKernel warp_backward(const Types& types, bool log) {
    return [types, log](const NamedLaunch& launch) {
        if (launch.get<std::uint64_t>(6) != 0) return false;
        const Rows rows{launch.get<std::uint32_t>(3), launch.get<std::uint32_t>(5),
                        launch.get<std::uint32_t>(4)};
        return backward(launch, rows, types, launch.get<std::uint64_t>(1),
                        launch.get<std::uint64_t>(2), log);
    };
}

/// A block per row; the last argument is the row's length.
Rows block_rows(const NamedLaunch& launch, std::size_t length) {
    const std::uint64_t columns = launch.parameter(length).size() == 8
                                      ? launch.get<std::uint64_t>(length)
                                      : launch.get<std::uint32_t>(length);
    return {launch.grid()[0], columns, columns};
}

}  // namespace

NamedKernel find_softmax(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    const bool log =
        name.mentions("LogSoftMax") || (arguments.size() > 4 && arguments[4] == "true");
    Types types;
    if (name.base == "softmax_warp_forward" && read_types(name, 0, types))
        return warp_forward(types, log);
    if (name.base == "softmax_warp_backward" && read_types(name, 0, types))
        return warp_backward(types, log);
    // Those that begin with a number have it in front; of these only floats are built.
    const bool block = name.base.starts_with("cunn_SoftMax") && all_float(name, types);
    if (block && name.base.starts_with("cunn_SoftMaxForward"))
        return [types, log](const NamedLaunch& launch) {
            return forward(launch, block_rows(launch, 2), types, log);
        };
    // (grad_in, output, grad, length)
    if (block && name.base.starts_with("cunn_SoftMaxBackward"))
        return [types, log](const NamedLaunch& launch) {
            return backward(launch, block_rows(launch, 3), types, launch.get<std::uint64_t>(2),
                            launch.get<std::uint64_t>(1), log);
        };
    return {};
}

}  // namespace simgpu::torch
