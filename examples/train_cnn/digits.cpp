// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "digits.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <utility>

#include "random.hpp"

namespace train_cnn {
namespace {

int shade(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'g' ? c - 'a' + 10 : -1;
}

}  // namespace

Digits read_digits(const std::string& path) {
    std::ifstream file(path);
    Digits digits;
    std::string line;
    while (std::getline(file, line)) {
        bool valid = line.size() == kPixels + 2 && line[kPixels] == ' ';
        for (int i = 0; valid && i < kPixels; ++i) {
            valid = shade(line[i]) >= 0;
            digits.pixels.push_back(static_cast<float>(shade(line[i]) - 5) / 6.0f);
        }
        const int label = valid ? shade(line[kPixels + 1]) : -1;
        if (label < 0 || label >= kClasses) {
            std::fprintf(stderr, "%s: line %d is no image\n", path.c_str(), digits.count() + 1);
            return {};
        }
        digits.labels.push_back(label);
    }
    if (digits.count() == 0) {
        std::fprintf(stderr, "%s: no images\n", path.c_str());
    }
    return digits;
}

Split split_digits(const Digits& digits, int batch) {
    Split split{std::max(1, digits.count() - batch), {}};
    for (int i = 0; i < batch; ++i) {
        split.held_out.push_back((split.train_count + i) % digits.count());
    }
    return split;
}

Batches::Batches(int train_count, int batch, std::uint64_t seed)
    : order_(train_count), batch_(batch), position_(order_.size()), random_(seed ^ 0xba7c4e5) {
    std::iota(order_.begin(), order_.end(), 0);
}

const std::vector<int>& Batches::next() {
    for (int& index : batch_) {
        if (position_ == order_.size()) {
            for (std::size_t i = order_.size(); i > 1; --i) {
                std::swap(order_[i - 1], order_[next_random(random_) % i]);
            }
            position_ = 0;
        }
        index = order_[position_++];
    }
    return batch_;
}

}  // namespace train_cnn
