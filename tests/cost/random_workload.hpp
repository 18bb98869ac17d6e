// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cost/workload.hpp"

namespace libswap::cost {

/// A small training iteration: layers whose activations live from the forward pass to the backward
/// pass, weights used in both, some read only, a few scratch tensors and shared inputs.
inline Workload random_training(std::uint32_t seed, int layers) {
    std::mt19937 random(seed);
    const auto between = [&](std::uint64_t a, std::uint64_t b) {
        return a + random() % (b - a + 1);
    };
    constexpr std::uint64_t kMib = 1 << 20;
    Workload w;
    std::int64_t id = 100;
    std::vector<TensorIndex> weights;
    std::vector<TensorIndex> activations;
    for (int l = 0; l < layers; ++l) {
        weights.push_back(w.add_tensor({id += 3, between(1, 40) * kMib + between(0, 999), true}));
        activations.push_back(w.add_tensor({id += 3, between(1, 64) * kMib, false}));
    }
    const auto op = [&](std::vector<Use> uses, std::vector<TensorIndex> frees) {
        w.add_op(static_cast<double>(between(50, 3000)), between(0, 3) * 4 * kMib, uses, frees,
                 "op");
    };
    for (std::size_t l = 0; l < weights.size(); ++l) {
        std::vector<Use> uses{{weights[l], true, false}, {activations[l], false, true}};
        if (l > 0) uses.push_back({activations[l - 1], true, false});
        if (l > 2 && random() % 3 == 0) uses.push_back({activations[l - 2], true, false});
        op(uses, {});
        if (random() % 3 == 0) {
            const TensorIndex scratch = w.add_tensor({id += 3, between(1, 30) * kMib, false});
            op({{scratch, false, true}}, {});
            op({{scratch, true, false}, {activations[l], true, true}}, {scratch});
        }
    }
    for (std::size_t l = weights.size(); l-- > 0;) {
        std::vector<Use> uses{{activations[l], true, random() % 4 == 0}};
        uses.push_back({weights[l], true, random() % 2 == 0});
        if (l > 0) uses.push_back({activations[l - 1], true, true});
        op(uses, {activations[l]});
    }
    return w;
}

}  // namespace libswap::cost
