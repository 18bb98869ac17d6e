// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cufft/fourier.hpp"

#include <algorithm>
#include <numbers>

namespace libswap::simgpu::cufft {

Fourier::Fourier(std::int64_t length, int sign) {
    const auto n = static_cast<std::size_t>(length);
    roots_.reserve(n);
    for (std::size_t k = 0; k < n; ++k) {
        const double turn = static_cast<double>(k) / static_cast<double>(n);
        roots_.push_back(std::polar(1.0, 2 * std::numbers::pi * sign * turn));
    }
    std::size_t rest = n;
    for (std::size_t factor = 2; rest > 1; ++factor) {
        if (factor * factor > rest) factor = rest;
        for (; rest % factor == 0; rest /= factor) factors_.push_back(factor);
    }
    copy_.resize(n);
    column_.resize(factors_.empty() ? 1 : factors_.back());
}

void Fourier::operator()(std::span<Complex> line) {
    std::copy(line.begin(), line.end(), copy_.begin());
    transform(copy_.data(), 1, line.data(), line.size(), 0);
}

// Cooley and Tukey: the transforms of every p-th element, then of what they have in the same place.
void Fourier::transform(const Complex* from, std::size_t stride, Complex* to, std::size_t length,
                        std::size_t factor) {
    if (length == 1) {
        *to = *from;
        return;
    }
    const std::size_t p = factors_[factor];
    const std::size_t part = length / p;
    for (std::size_t i = 0; i < p; ++i)
        transform(from + i * stride, stride * p, to + i * part, part, factor + 1);
    const std::size_t n = roots_.size();
    const std::size_t step = n / length;
    for (std::size_t k = 0; k < part; ++k) {
        for (std::size_t i = 0; i < p; ++i) column_[i] = to[i * part + k];
        for (std::size_t j = 0; j < p; ++j) {
            Complex sum = column_[0];
            for (std::size_t i = 1; i < p; ++i)
                sum += column_[i] * roots_[i * (j * part + k) % length * step];
            to[j * part + k] = sum;
        }
    }
}

}  // namespace libswap::simgpu::cufft
