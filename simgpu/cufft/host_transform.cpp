// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "simgpu/cufft/fourier.hpp"
#include "simgpu/cufft/kernels.hpp"
#include "simgpu/half_float.hpp"
#include "simgpu/launch_memory.hpp"

namespace libswap::simgpu::cufft {
namespace {

using Extents = std::array<std::int64_t, kMaxRank>;

std::int64_t bytes_of(const Layout& layout) {
    const std::int64_t number = layout.precision == Precision::Double  ? 8
                                : layout.precision == Precision::Float ? 4
                                                                       : 2;
    return layout.is_complex ? 2 * number : number;
}

double load(Precision precision, const std::byte* at) {
    if (precision == Precision::Double) {
        double value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    if (precision == Precision::Float) {
        float value;
        std::memcpy(&value, at, sizeof value);
        return static_cast<double>(value);
    }
    std::uint16_t value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(::simgpu::half_to_float(value));
}

void store(Precision precision, std::byte* at, double value) {
    if (precision == Precision::Double) {
        std::memcpy(at, &value, sizeof value);
    } else if (precision == Precision::Float) {
        const auto narrow = static_cast<float>(value);
        std::memcpy(at, &narrow, sizeof narrow);
    } else {
        const std::uint16_t half = ::simgpu::double_to_half(value);
        std::memcpy(at, &half, sizeof half);
    }
}

/// One array of the batch in double precision, without gaps; real numbers are complex ones.
class Array {
  public:
    Array(const TransformParams& params, std::int64_t last) : params_(params), shape_(params.n) {
        shape_[rank() - 1] = last;
        std::int64_t elements = 1;
        for (std::size_t i = 0; i < rank(); ++i) elements *= shape_[i];
        values_.resize(static_cast<std::size_t>(elements));
    }

    void read(const Layout& layout, const std::byte* data) {
        for_each_place(layout, [&](Complex& value, std::int64_t place) {
            const std::byte* at = data + place * bytes_of(layout);
            const std::byte* imaginary = at + bytes_of(layout) / 2;
            value = {load(layout.precision, at),
                     layout.is_complex ? load(layout.precision, imaginary) : 0};
        });
    }
    void write(const Layout& layout, std::byte* data) {
        for_each_place(layout, [&](const Complex& value, std::int64_t place) {
            std::byte* at = data + place * bytes_of(layout);
            store(layout.precision, at, value.real());
            if (layout.is_complex) store(layout.precision, at + bytes_of(layout) / 2, value.imag());
        });
    }
    /// Along a dimension of its full length.
    void transform(std::size_t dimension) {
        const auto length = static_cast<std::size_t>(shape_[dimension]);
        std::size_t stride = 1;
        for (std::size_t i = dimension + 1; i < rank(); ++i)
            stride *= static_cast<std::size_t>(shape_[i]);
        Fourier fourier(shape_[dimension], params_.sign);
        std::vector<Complex> line(length);
        for (std::size_t begin = 0; begin < values_.size(); begin += length * stride)
            for (std::size_t i = begin; i < begin + stride; ++i) {
                for (std::size_t k = 0; k < length; ++k) line[k] = values_[i + k * stride];
                fourier(line);
                for (std::size_t k = 0; k < length; ++k) values_[i + k * stride] = line[k];
            }
    }
    /// Calls `change(row here, row there)` for each row along the last dimension.
    template <typename Change>
    void for_each_row(Array& other, const Change& change) {
        const auto here = static_cast<std::size_t>(shape_[rank() - 1]);
        const auto there = static_cast<std::size_t>(other.shape_[rank() - 1]);
        for (std::size_t row = 0; row * here < values_.size(); ++row)
            change(std::span(values_).subspan(row * here, here),
                   std::span(other.values_).subspan(row * there, there));
    }
    std::size_t rank() const { return static_cast<std::size_t>(params_.rank); }

  private:
    template <typename Visit>
    void for_each_place(const Layout& layout, const Visit& visit) {
        Extents at{};
        for (Complex& value : values_) {
            std::int64_t place = 0;
            for (std::size_t i = 0; i < rank(); ++i) place = place * layout.embed[i] + at[i];
            visit(value, place * layout.stride);
            for (std::size_t i = rank(); i-- > 0 && ++at[i] == shape_[i];) at[i] = 0;
        }
    }

    const TransformParams& params_;
    Extents shape_;
    std::vector<Complex> values_;
};

/// What a real array's transform does not say, as the other half of it does.
void complete(std::span<const Complex> half, std::span<Complex> all) {
    std::copy(half.begin(), half.end(), all.begin());
    // Of a real array's transform these are real; what is there in their place is not looked at.
    all[0] = all[0].real();
    if (all.size() % 2 == 0) all[all.size() / 2] = all[all.size() / 2].real();
    for (std::size_t i = half.size(); i < all.size(); ++i) all[i] = std::conj(all[all.size() - i]);
}

/// Elements along the last dimension of an array that lies so.
std::int64_t last_of(const TransformParams& p, const Layout& layout) {
    const std::int64_t n = p.n[static_cast<std::size_t>(p.rank - 1)];
    const bool half = layout.is_complex && (!p.from.is_complex || !p.to.is_complex);
    return half ? n / 2 + 1 : n;
}

void transform_one(const TransformParams& p, const std::byte* input, std::byte* output) {
    const auto rank = static_cast<std::size_t>(p.rank);
    Array from(p, last_of(p, p.from));
    Array to(p, last_of(p, p.to));
    from.read(p.from, input);
    if (p.from.is_complex) {
        for (std::size_t i = 0; i + 1 < rank; ++i) from.transform(i);
        if (p.to.is_complex) {
            from.transform(rank - 1);
            from.write(p.to, output);
            return;
        }
        from.for_each_row(to, complete);
        to.transform(rank - 1);
    } else {
        from.transform(rank - 1);
        from.for_each_row(to, [](std::span<const Complex> all, std::span<Complex> half) {
            std::copy_n(all.begin(), half.size(), half.begin());
        });
        for (std::size_t i = 0; i + 1 < rank; ++i) to.transform(i);
    }
    to.write(p.to, output);
}

}  // namespace

std::int64_t extent(const Layout& layout, const TransformParams& params, std::int64_t last) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(params.rank); ++i) {
        const bool is_last = i + 1 == static_cast<std::size_t>(params.rank);
        place = place * layout.embed[i] + (is_last ? last : params.n[i]) - 1;
    }
    return (params.batch - 1) * layout.distance + place * layout.stride + 1;
}

void host_transform(const SimgpuHostLaunch* launch) {
    TransformParams p;
    std::memcpy(&p, launch->params, std::min<std::size_t>(sizeof p, launch->param_bytes));
    LaunchMemory memory(launch);
    const std::int64_t in_bytes = extent(p.from, p, last_of(p, p.from)) * bytes_of(p.from);
    const std::int64_t out_bytes = extent(p.to, p, last_of(p, p.to)) * bytes_of(p.to);
    const auto* input = memory.span<const std::byte>(p.input, in_bytes);
    auto* output = memory.span<std::byte>(p.output, out_bytes);
    if (memory.faulted()) return;
    for (std::int64_t i = 0; i < p.batch; ++i)
        transform_one(p, input + i * p.from.distance * bytes_of(p.from),
                      output + i * p.to.distance * bytes_of(p.to));
    auto elements = static_cast<double>(p.batch);
    for (std::int32_t i = 0; i < p.rank; ++i)
        elements *= static_cast<double>(p.n[static_cast<std::size_t>(i)]);
    memory.cost(5 * elements * std::log2(std::max(elements / static_cast<double>(p.batch), 2.0)),
                static_cast<double>(in_bytes + out_bytes));
}

}  // namespace libswap::simgpu::cufft
