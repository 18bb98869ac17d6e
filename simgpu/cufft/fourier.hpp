// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace libswap::simgpu::cufft {

using Complex = std::complex<double>;

/// Discrete Fourier transforms of one length, not scaled: sum over k of x[k] exp(2 pi i sign j k /
/// n). Of a length with large prime factors each costs as many operations per element as their sum.
class Fourier {
  public:
    /// `sign` is -1 (forward) or 1 (inverse); `length` at least 1.
    Fourier(std::int64_t length, int sign);

    /// In place. `line` has the length. Not for two threads at a time.
    void operator()(std::span<Complex> line);

    std::int64_t length() const { return static_cast<std::int64_t>(roots_.size()); }

  private:
    void transform(const Complex* from, std::size_t stride, Complex* to, std::size_t length,
                   std::size_t factor);

    std::vector<Complex> roots_;
    std::vector<std::size_t> factors_;
    std::vector<Complex> copy_;
    std::vector<Complex> column_;
};

}  // namespace libswap::simgpu::cufft
