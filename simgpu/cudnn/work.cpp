// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/work.hpp"

#include "simgpu/cudnn/element.hpp"

namespace libswap::simgpu::cudnn {
namespace {

/// Calls visit(first element, stride, count, place in row-major order) for each innermost row.
template <typename Visit>
void for_each_row(const Tensor& tensor, const Visit& visit) {
    const int last = tensor.rank - 1;
    const std::int64_t count = tensor.dims[last];
    const std::int64_t rows = count == 0 ? 0 : tensor.elements() / count;
    std::int32_t index[Tensor::kMaxRank] = {};
    std::int64_t offset = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        visit(offset, tensor.strides[last], count, row * count);
        for (int i = last - 1; i >= 0; --i) {
            offset += tensor.strides[i];
            if (++index[i] < tensor.dims[i]) {
                break;
            }
            offset -= tensor.strides[i] * tensor.dims[i];
            index[i] = 0;
        }
    }
}

/// Each element type as it lies in memory, and how it is read and written.
template <typename Stored>
struct Plain {
    using Type = Stored;
    template <typename T>
    static T read(Stored value) {
        return static_cast<T>(value);
    }
    template <typename T>
    static Stored write(T value) {
        return static_cast<Stored>(value);
    }
};

struct Half {
    using Type = std::uint16_t;
    template <typename T>
    static T read(std::uint16_t value) {
        return static_cast<T>(float_of_half(value));
    }
    template <typename T>
    static std::uint16_t write(T value) {
        return half_of_float(static_cast<float>(value));
    }
};

struct Bfloat {
    using Type = std::uint16_t;
    template <typename T>
    static T read(std::uint16_t value) {
        return static_cast<T>(float_of_bfloat(value));
    }
    template <typename T>
    static std::uint16_t write(T value) {
        return bfloat_of_float(static_cast<float>(value));
    }
};

/// Calls use(element type) for the tensor's type. Callers have refused those that are not here.
template <typename Use>
void with_type(cudnnDataType_t type, const Use& use) {
    switch (type) {
        case CUDNN_DATA_FLOAT:
            return use(Plain<float>{});
        case CUDNN_DATA_DOUBLE:
            return use(Plain<double>{});
        case CUDNN_DATA_HALF:
            return use(Half{});
        case CUDNN_DATA_BFLOAT16:
            return use(Bfloat{});
        case CUDNN_DATA_INT8:
            return use(Plain<std::int8_t>{});
        case CUDNN_DATA_UINT8:
        case CUDNN_DATA_BOOLEAN:
            return use(Plain<std::uint8_t>{});
        case CUDNN_DATA_INT32:
            return use(Plain<std::int32_t>{});
        case CUDNN_DATA_INT64:
            return use(Plain<std::int64_t>{});
        default:
            return;
    }
}

}  // namespace

template <typename T>
std::vector<T> Work::load(std::uint64_t va, const Tensor& tensor) {
    std::vector<T> values;
    with_type(tensor.data_type(), [&]<typename Kind>(Kind) {
        using Stored = typename Kind::Type;
        const Stored* from = span<const Stored>(va, tensor.extent());
        if (from == nullptr) {
            return;
        }
        values.resize(static_cast<std::size_t>(tensor.elements()));
        T* to = values.data();
        for_each_row(tensor, [&](std::int64_t first, std::int64_t stride, std::int64_t count,
                                 std::int64_t place) {
            for (std::int64_t i = 0; i < count; ++i) {
                to[place + i] = Kind::template read<T>(from[first + i * stride]);
            }
        });
    });
    cost(0, static_cast<double>(values.size() * bytes_of(tensor.data_type())));
    return values;
}

template <typename T>
void Work::store(std::uint64_t va, const Tensor& tensor, const std::vector<T>& values, double alpha,
                 double beta) {
    if (faulted() || values.empty()) {
        return;
    }
    with_type(tensor.data_type(), [&]<typename Kind>(Kind) {
        using Stored = typename Kind::Type;
        Stored* to = span<Stored>(va, tensor.extent());
        if (to == nullptr) {
            return;
        }
        const T* from = values.data();
        const T a = static_cast<T>(alpha);
        const T b = static_cast<T>(beta);
        for_each_row(tensor, [&](std::int64_t first, std::int64_t stride, std::int64_t count,
                                 std::int64_t place) {
            for (std::int64_t i = 0; i < count; ++i) {
                Stored& at = to[first + i * stride];
                const T value = a == T{1} ? from[place + i] : a * from[place + i];
                at = Kind::template write<T>(b == T{} ? value
                                                      : value + b * Kind::template read<T>(at));
            }
        });
    });
    const double passes = beta == 0 ? 1 : 2;
    cost(0, passes * static_cast<double>(values.size() * bytes_of(tensor.data_type())));
}

void Work::use_workspace(std::uint64_t va, std::uint64_t bytes) {
    if (bytes == 0) {
        return;
    }
    auto* scratch = span<unsigned char>(va, static_cast<std::int64_t>(bytes));
    if (scratch != nullptr) {
        std::memset(scratch, 0x5a, bytes);
        cost(0, 2 * static_cast<double>(bytes));
    }
}

template std::vector<float> Work::load<float>(std::uint64_t, const Tensor&);
template std::vector<double> Work::load<double>(std::uint64_t, const Tensor&);
template std::vector<std::int64_t> Work::load<std::int64_t>(std::uint64_t, const Tensor&);
template void Work::store<float>(std::uint64_t, const Tensor&, const std::vector<float>&, double,
                                 double);
template void Work::store<double>(std::uint64_t, const Tensor&, const std::vector<double>&, double,
                                  double);

}  // namespace libswap::simgpu::cudnn
