// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "cost/workload.hpp"

namespace libswap::cost {

/// Iterations of many shapes, so that the planner is not made for the few that we were handed.
enum class Shape : std::uint8_t {
    Chain,          ///< layers, forward and back, sizes and times of similar layers
    Pyramid,        ///< activations shrink from layer to layer, as in convolutional networks
    Accumulated,    ///< several micro-batches before one update
    Frozen,         ///< the first layers are not trained: read only, activations freed at once
    TinyOps,        ///< thousands of operations of a few microseconds on small tensors
    HugeTensors,    ///< few tensors, each a good part of the peak
    RandomDag,      ///< operations that read any earlier results
    Recurrent,      ///< one operation names most of the peak, as a fused LSTM does
    OptimizerOnly,  ///< states that are touched once per iteration, and little else
    Skips,      ///< long-lived results that are read at many distances, as in U-Net and DenseNet
    Inference,  ///< weights are read in turn, nothing lives long
};
inline constexpr std::array<std::string_view, 11> kShapeNames{
    "chain",      "pyramid",   "accumulated",    "frozen", "tiny-ops", "huge-tensors",
    "random-dag", "recurrent", "optimizer-only", "skips",  "inference"};

/// Builds one iteration; `seed` decides sizes, times and counts.
class FamilyMember {
  public:
    FamilyMember(Shape shape, std::uint32_t seed)
        : shape_(shape), random_(1000 * seed + static_cast<std::uint32_t>(shape)) {}

    Workload build() {
        switch (shape_) {
            case Shape::RandomDag:
                random_dag();
                break;
            case Shape::Recurrent:
                recurrent();
                break;
            case Shape::OptimizerOnly:
                optimizer_only();
                break;
            case Shape::Inference:
                inference();
                break;
            default:
                layers();
                break;
        }
        return std::move(work_);
    }

  private:
    static constexpr std::uint64_t kKib = 1024;
    static constexpr std::uint64_t kMib = 1024 * kKib;

    std::uint64_t between(std::uint64_t a, std::uint64_t b) { return a + random_() % (b - a + 1); }
    double uniform(double a, double b) {
        return a + (b - a) * static_cast<double>(random_()) / 4294967296.0;
    }
    bool chance(double p) { return uniform(0, 1) < p; }
    /// From a to b, small ones as often as large ones.
    std::uint64_t size(std::uint64_t a, std::uint64_t b) {
        const double exponent = uniform(0, 1);
        const double ratio = static_cast<double>(b) / static_cast<double>(a);
        return static_cast<std::uint64_t>(static_cast<double>(a) * std::pow(ratio, exponent));
    }

    TensorIndex tensor(std::uint64_t bytes, bool persistent = false) {
        return work_.add_tensor({id_ += 2, bytes, persistent});
    }
    /// Takes `us_per_mib` of what it touches.
    void op(std::vector<Use> uses, std::vector<TensorIndex> frees, std::uint64_t workspace = 0) {
        std::uint64_t bytes = 0;
        for (const Use& u : uses) bytes += work_.tensors()[u.tensor].bytes;
        const double us = 2 + intensity_ * uniform(0.3, 2) * static_cast<double>(bytes) / kMib;
        work_.add_op(us, workspace, uses, frees, "op");
    }
    static Use read(TensorIndex t) { return {t, true, false}; }
    static Use write(TensorIndex t) { return {t, false, true}; }
    static Use update(TensorIndex t) { return {t, true, true}; }

    void layers() {
        struct Layer {
            TensorIndex weight, gradient, state, out;
            std::vector<TensorIndex> reads;
            bool frozen = false;
        };
        const bool tiny = shape_ == Shape::TinyOps;
        const bool huge = shape_ == Shape::HugeTensors;
        const std::size_t count = tiny   ? between(300, 900)
                                  : huge ? between(4, 9)
                                         : between(10, 120);
        const std::size_t batches = shape_ == Shape::Accumulated ? between(2, 6) : 1;
        const std::size_t frozen = shape_ == Shape::Frozen ? count * between(3, 8) / 10 : 0;
        const bool states = chance(0.5);
        // Compute per byte: from far below what the link can follow to far above.
        intensity_ = uniform(5, 120);
        std::vector<Layer> all(count);
        for (std::size_t l = 0; l < count; ++l) {
            const std::uint64_t bytes = tiny   ? size(4 * kKib, 2 * kMib)
                                        : huge ? size(512 * kMib, 6144 * kMib)
                                               : size(512 * kKib, 96 * kMib);
            all[l].weight = tensor(bytes, true);
            all[l].gradient = tensor(bytes, true);
            all[l].state = states ? tensor(2 * bytes, true) : kNoTensor;
            all[l].frozen = l < frozen;
        }
        for (std::size_t b = 0; b < batches; ++b) {
            for (std::size_t l = 0; l < count; ++l) {
                Layer& layer = all[l];
                const double shrink = shape_ == Shape::Pyramid
                                          ? std::pow(0.5, static_cast<double>(8 * l / count))
                                          : 1.0;
                const std::uint64_t bytes = tiny   ? size(16 * kKib, 4 * kMib)
                                            : huge ? size(1024 * kMib, 8192 * kMib)
                                                   : size(8 * kMib, 128 * kMib);
                layer.out = tensor(std::max<std::uint64_t>(
                    4096, static_cast<std::uint64_t>(shrink * static_cast<double>(bytes))));
                layer.reads.clear();
                if (l > 0) layer.reads.push_back(l - 1);
                if (shape_ == Shape::Skips) {
                    for (int k = 0; k < 3; ++k) {
                        if (l > 1 && chance(0.5)) layer.reads.push_back(between(0, l - 2));
                    }
                }
                std::vector<Use> uses{read(layer.weight), write(layer.out)};
                for (const std::size_t r : layer.reads) uses.push_back(read(all[r].out));
                std::vector<TensorIndex> frees;
                if (layer.frozen && l > 0 && shape_ == Shape::Frozen) {
                    frees.push_back(all[l - 1].out);
                }
                op(uses, frees, chance(0.3) ? size(kMib, 64 * kMib) / (tiny ? 64 : 1) : 0);
                if (!layer.frozen && chance(0.3)) op({update(layer.out)}, {});
            }
            TensorIndex gradient = tensor(work_.tensors()[all[count - 1].out].bytes);
            op({read(all[count - 1].out), write(gradient)}, {});
            for (std::size_t l = count; l-- > frozen;) {
                Layer& layer = all[l];
                std::vector<Use> uses{read(layer.weight), read(gradient), update(layer.gradient)};
                for (const std::size_t r : layer.reads) uses.push_back(read(all[r].out));
                std::vector<TensorIndex> frees{layer.out, gradient};
                if (l > frozen) {
                    const TensorIndex next = tensor(work_.tensors()[all[l - 1].out].bytes);
                    uses.push_back(write(next));
                    op(uses, frees, chance(0.3) ? size(kMib, 64 * kMib) / (tiny ? 64 : 1) : 0);
                    gradient = next;
                } else {
                    op(uses, frees);
                }
            }
            if (frozen > 0) op({read(all[frozen - 1].weight)}, {all[frozen - 1].out});
        }
        for (std::size_t l = frozen; l < count; ++l) {
            std::vector<Use> uses{update(all[l].weight), update(all[l].gradient)};
            if (states) uses.push_back(update(all[l].state));
            op(uses, {});
        }
    }

    void random_dag() {
        intensity_ = uniform(5, 80);
        const std::size_t count = between(30, 400);
        std::vector<TensorIndex> alive;
        for (std::size_t i = 0; i < between(3, 20); ++i) {
            alive.push_back(tensor(size(kMib, 64 * kMib), true));
        }
        const std::size_t persistent = alive.size();
        for (std::size_t i = 0; i < count; ++i) {
            std::vector<Use> uses;
            for (std::size_t k = between(1, 4); k-- > 0;) {
                const TensorIndex t = alive[between(0, alive.size() - 1)];
                if (std::none_of(uses.begin(), uses.end(),
                                 [t](const Use& u) { return u.tensor == t; })) {
                    uses.push_back(chance(0.2) ? update(t) : read(t));
                }
            }
            const TensorIndex out = tensor(size(256 * kKib, 128 * kMib));
            uses.push_back(write(out));
            std::vector<TensorIndex> frees;
            const bool full = alive.size() > persistent + 30;
            if (alive.size() > persistent && (full || chance(0.4))) {
                const std::size_t victim = between(persistent, alive.size() - 1);
                frees.push_back(alive[victim]);
                alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(victim));
            }
            alive.push_back(out);
            op(uses, frees, chance(0.2) ? size(kMib, 32 * kMib) : 0);
        }
        std::vector<TensorIndex> rest(alive.begin() + static_cast<std::ptrdiff_t>(persistent),
                                      alive.end());
        op({update(alive[0])}, rest);
    }

    void recurrent() {
        intensity_ = uniform(10, 60);
        const std::size_t layers = between(1, 4);
        const std::size_t others = between(4, 40);
        std::vector<TensorIndex> weights;
        std::vector<TensorIndex> reserves;
        std::vector<TensorIndex> side;
        for (std::size_t i = 0; i < others; ++i) {
            side.push_back(tensor(size(kMib, 64 * kMib), chance(0.5)));
            op({work_.tensors()[side.back()].persistent ? read(side.back()) : write(side.back())},
               {});
        }
        const std::uint64_t bytes = size(256 * kMib, 4096 * kMib);
        TensorIndex in = tensor(bytes / 8);
        op({write(in)}, {});
        std::vector<TensorIndex> outs{in};
        for (std::size_t l = 0; l < layers; ++l) {
            weights.push_back(tensor(bytes / 16, true));
            reserves.push_back(tensor(bytes));
            outs.push_back(tensor(bytes / 8));
            op({read(weights[l]), read(outs[l]), write(reserves[l]), write(outs[l + 1])}, {},
               size(kMib, bytes / 4));
        }
        for (std::size_t l = layers; l-- > 0;) {
            op({read(reserves[l]), read(outs[l]), read(outs[l + 1]), update(weights[l])},
               {reserves[l], outs[l + 1]}, size(kMib, bytes / 4));
        }
        std::vector<TensorIndex> frees{in};
        for (std::size_t i = others; i-- > 0;) {
            const bool persistent = work_.tensors()[side[i]].persistent;
            op({update(side[i])},
               persistent ? std::vector<TensorIndex>{} : std::vector<TensorIndex>{side[i]});
        }
        op({update(weights[0])}, frees);
    }

    void optimizer_only() {
        intensity_ = uniform(5, 200);
        for (std::size_t i = between(20, 300); i-- > 0;) {
            const std::uint64_t bytes = size(256 * kKib, 256 * kMib);
            const TensorIndex weight = tensor(bytes, true);
            std::vector<Use> uses{update(weight), update(tensor(bytes, true))};
            if (chance(0.5)) uses.push_back(update(tensor(bytes, true)));
            if (chance(0.3)) op({read(weight)}, {});
            op(uses, {});
        }
    }

    void inference() {
        intensity_ = uniform(20, 300);
        TensorIndex in = tensor(size(kMib, 64 * kMib), true);
        const TensorIndex first = in;
        for (std::size_t i = between(20, 200); i-- > 0;) {
            const TensorIndex weight = tensor(size(kMib, 256 * kMib), true);
            const TensorIndex out = tensor(size(kMib, 64 * kMib));
            std::vector<TensorIndex> frees;
            if (in != first) frees.push_back(in);
            op({read(weight), read(in), write(out)}, frees);
            in = out;
        }
        op({read(in), update(first)}, {in});
    }

    Shape shape_;
    std::mt19937 random_;
    double intensity_ = 20;  ///< us per MiB touched
    std::int64_t id_ = 11;
    Workload work_;
};

inline Workload family_member(Shape shape, std::uint32_t seed) {
    return FamilyMember(shape, seed).build();
}

}  // namespace libswap::cost
