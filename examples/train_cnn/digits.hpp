// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace train_cnn {

constexpr int kSide = 8;
constexpr int kPixels = kSide * kSide;
constexpr int kClasses = 10;

/// Hand-written digits: pixels from 0 to 1, `kPixels` an image, row by row.
struct Digits {
    std::vector<float> pixels;
    std::vector<std::int32_t> labels;
    int count() const { return static_cast<int>(labels.size()); }
    const float* image(int index) const {
        return pixels.data() + static_cast<std::size_t>(index) * kPixels;
    }
};

/// Reads data/digits.txt. Returns an empty set, having said why, if that fails.
Digits read_digits(const std::string& path);

/// The last `batch` images are held out, the others are trained on.
struct Split {
    int train_count;
    std::vector<int> held_out;
};
Split split_digits(const Digits& digits, int batch);

/// The images of one training step after another: the first `train_count`, in an order that is
/// drawn anew for every pass over them.
class Batches {
  public:
    Batches(int train_count, int batch, std::uint64_t seed);
    /// Indices of the next batch.
    const std::vector<int>& next();

  private:
    std::vector<int> order_;
    std::vector<int> batch_;
    std::size_t position_;
    std::uint64_t random_;
};

}  // namespace train_cnn
