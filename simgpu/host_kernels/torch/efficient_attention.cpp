// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Scaled dot product attention by CUTLASS (torch 2.15's mem_eff_attention: kernel_forward.h,
// kernel_backward.h), which float32 and masks go through: causal or not, with a summand per pair,
// grouped heads, dropout. No windows, nor sequences of several lengths.

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/philox.hpp"
#include "simgpu/host_kernels/torch/scalar_type.hpp"

namespace simgpu::torch {
namespace {

/// A matrix of a batch and a head; strides in elements.
struct Place {
    std::uint64_t va = 0;
    std::int64_t batch = 0;
    std::int64_t head = 0;
    std::int64_t row = 0;
};

/// What both directions are told.
struct Attention {
    ScalarType type = ScalarType::Float;
    std::int64_t batches = 0, heads = 0, group = 1, queries = 0, keys = 0, width = 0, out_width = 0;
    /// A query sees keys up to this many behind its own number; all without a mask.
    std::int64_t diagonal = 0;
    double scale = 1;
    double dropped = 0;
    std::uint64_t seed = 0, offset = 0;
    Place q, k, v, bias, out;

    std::int64_t seen(std::int64_t query) const {
        return std::clamp<std::int64_t>(query + diagonal + 1, 0, keys);
    }
    void set_mask(std::uint8_t kind) {
        diagonal = kind == 0 ? keys : kind == 1 ? 0 : keys - queries;
    }
    bool sane() const {
        return batches > 0 && heads > 0 && group > 0 && queries > 0 && keys > 0 && width > 0 &&
               out_width > 0;
    }
};

/// One batch's and head's matrix, as doubles. Empty where it may not be read.
std::vector<double> load_rows(const NamedLaunch& launch, const Attention& a, const Place& p,
                              std::int64_t batch, std::int64_t head, std::int64_t rows,
                              std::int64_t width) {
    const std::uint32_t bytes = size_of(a.type);
    const auto first = static_cast<std::uint64_t>(batch * p.batch + head * p.head);
    const auto extent = static_cast<std::uint64_t>((rows - 1) * p.row + width);
    const auto* data = launch.read<std::byte>(p.va + first * bytes, extent * bytes);
    std::vector<double> all;
    if (data == nullptr) return all;
    all.reserve(static_cast<std::size_t>(rows * width));
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < width; ++c)
            all.push_back(load(a.type, data + static_cast<std::uint64_t>(r * p.row + c) * bytes));
    return all;
}

bool store_rows(const NamedLaunch& launch, const Attention& a, const Place& p, std::int64_t batch,
                std::int64_t head, std::int64_t width, const std::vector<double>& values) {
    const std::uint32_t bytes = size_of(a.type);
    const auto rows = static_cast<std::int64_t>(values.size()) / width;
    const auto first = static_cast<std::uint64_t>(batch * p.batch + head * p.head);
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::uint64_t at = first + static_cast<std::uint64_t>(r * p.row);
        auto* to =
            launch.write<std::byte>(p.va + at * bytes, static_cast<std::uint64_t>(width) * bytes);
        if (to == nullptr) return false;
        for (std::int64_t c = 0; c < width; ++c)
            store(a.type, to + static_cast<std::uint64_t>(c) * bytes,
                  values[static_cast<std::size_t>(r * width + c)]);
    }
    return true;
}

double dot(const double* a, const double* b, std::int64_t width) {
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i) sum += a[i] * b[i];
    return sum;
}

/// A batch's and head's inputs.
struct Inputs {
    std::vector<double> q, k, v, bias;

    bool read(const NamedLaunch& launch, const Attention& a, std::int64_t batch,
              std::int64_t head) {
        q = load_rows(launch, a, a.q, batch, head, a.queries, a.width);
        k = load_rows(launch, a, a.k, batch, head / a.group, a.keys, a.width);
        v = load_rows(launch, a, a.v, batch, head / a.group, a.keys, a.out_width);
        if (a.bias.va != 0) bias = load_rows(launch, a, a.bias, batch, head, a.queries, a.keys);
        return !q.empty() && !k.empty() && !v.empty() && (a.bias.va == 0 || !bias.empty());
    }
    /// Of a query and a key that it sees.
    double score(const Attention& a, std::int64_t query, std::int64_t key) const {
        const double x = a.scale * dot(&q[static_cast<std::size_t>(query * a.width)],
                                       &k[static_cast<std::size_t>(key * a.width)], a.width);
        return bias.empty() ? x : x + bias[static_cast<std::size_t>(query * a.keys + key)];
    }
};

/// By what the weights of a query are multiplied: 1 without dropout, else 0 or what makes up for
/// it. A word of one stream for each pair.
std::vector<double> kept(const Attention& a, std::int64_t batch, std::int64_t head,
                         std::int64_t query) {
    std::vector<double> factors(static_cast<std::size_t>(a.keys), 1);
    if (a.dropped <= 0) return factors;
    const auto pair =
        static_cast<std::uint64_t>(((batch * a.heads + head) * a.queries + query) * a.keys);
    Philox stream(a.seed, 0, a.offset + pair);
    for (double& factor : factors)
        factor = static_cast<double>(stream.uniform()) > a.dropped ? 1 / (1 - a.dropped) : 0;
    return factors;
}

/// PhiloxCudaState.
bool read_seed(const NamedLaunch& launch, Attention& a, std::size_t at) {
    a.seed = launch.get<std::uint64_t>(0, at);
    a.offset = launch.get<std::uint64_t>(0, at + 8);
    if (a.dropped <= 0 || launch.get<std::uint8_t>(0, at + 24) == 0) return true;
    const auto* seed = launch.read<std::uint64_t>(a.seed, 1);
    const auto* offset = launch.read<std::uint64_t>(a.offset, 1);
    if (seed == nullptr || offset == nullptr) return false;
    a.seed = *seed;
    a.offset = *offset + launch.get<std::uint64_t>(0, at + 16);
    return true;
}

/// Rows of sums are padded to this many.
constexpr std::int64_t kAlignedRows = 32;

bool read_forward(const NamedLaunch& launch, Attention& a) {
    const auto word = [&](std::size_t at) { return std::int64_t{launch.get<std::int32_t>(0, at)}; };
    const auto wide = [&](std::size_t at) { return launch.get<std::int64_t>(0, at); };
    const auto va = [&](std::size_t at) { return launch.get<std::uint64_t>(0, at); };
    // Starts of sequences, lengths of keys, a window, part of the batches or heads.
    if (launch.parameter(0).size() != 280 || va(32) != 0 || va(48) != 0 || word(88) != 0 ||
        word(196) != 0 || word(200) != 0)
        return false;
    a.scale = static_cast<double>(launch.get<float>(0, 92));
    a.width = word(96);
    a.out_width = word(100);
    a.queries = word(104);
    a.keys = word(108);
    a.batches = word(192);
    a.heads = word(204);
    a.group = word(208);
    a.set_mask(launch.get<std::uint8_t>(0, 116));
    a.q = {va(0), wide(160), word(140), word(120)};
    a.k = {va(8), wide(168), word(144), word(124)};
    a.v = {va(16), wide(176), word(148), word(128)};
    a.bias = {va(24), wide(184), wide(152), word(132)};
    a.out = {va(64), word(136) * a.queries, a.out_width, word(136)};
    if (launch.get<std::uint8_t>(0, 212) != 0)
        a.dropped = static_cast<double>(launch.get<float>(0, 224));
    return a.sane();
}

bool forward(const NamedLaunch& launch, ScalarType type) {
    Attention a;
    a.type = type;
    if (!read_forward(launch, a)) return false;
    if (!read_seed(launch, a, 232)) return true;
    const std::int64_t padded = (a.queries + kAlignedRows - 1) / kAlignedRows * kAlignedRows;
    const auto sums_va = launch.get<std::uint64_t>(0, 80);
    for (std::int64_t bh = 0; bh < a.batches * a.heads; ++bh) {
        const std::int64_t batch = bh / a.heads;
        const std::int64_t head = bh % a.heads;
        Inputs in;
        if (!in.read(launch, a, batch, head)) return true;
        std::vector<double> out(static_cast<std::size_t>(a.queries * a.out_width));
        auto* sums = sums_va == 0 ? nullptr
                                  : launch.write<float>(
                                        sums_va + static_cast<std::uint64_t>(bh * padded) * 4,
                                        static_cast<std::uint64_t>(padded));
        if (sums != nullptr) std::fill_n(sums, padded, HUGE_VALF);
        for (std::int64_t query = 0; query < a.queries; ++query) {
            const auto factors = kept(a, batch, head, query);
            std::vector<double> weights;
            double most = -HUGE_VAL;
            for (std::int64_t key = 0; key < a.seen(query); ++key) {
                weights.push_back(in.score(a, query, key));
                most = std::fmax(most, weights.back());
            }
            double sum = 0;
            for (double& weight : weights) {
                weight = std::isinf(most) ? 0 : std::exp(weight - most);
                sum += weight;
            }
            if (sums != nullptr) sums[query] = static_cast<float>(most + std::log(sum));
            double* row = &out[static_cast<std::size_t>(query * a.out_width)];
            for (std::size_t key = 0; key < weights.size() && sum > 0; ++key) {
                const double weight = weights[key] / sum * factors[key];
                const double* value = &in.v[key * static_cast<std::size_t>(a.out_width)];
                for (std::int64_t c = 0; c < a.out_width; ++c) row[c] += weight * value[c];
            }
        }
        if (!store_rows(launch, a, a.out, batch, head, a.out_width, out)) return true;
    }
    const auto pairs = static_cast<double>(a.batches * a.heads * a.queries * a.keys);
    launch.cost(2 * pairs * static_cast<double>(a.width + a.out_width),
                pairs / static_cast<double>(std::max<std::int64_t>(a.keys, 1)) * 8 *
                    static_cast<double>(a.width));
    return true;
}

/// Where gradients lie, besides what Attention holds.
struct Gradients {
    Place grad, q, k, v, bias;
    std::uint64_t sums = 0;
    std::int64_t sums_batch = 0, sums_head = 0;
    std::uint64_t deltas = 0;
    std::int64_t deltas_batch = 0, deltas_head = 0;
};

bool read_backward(const NamedLaunch& launch, Attention& a, Gradients& g) {
    const auto word = [&](std::size_t at) { return std::int64_t{launch.get<std::int32_t>(0, at)}; };
    const auto wide = [&](std::size_t at) { return launch.get<std::int64_t>(0, at); };
    const auto va = [&](std::size_t at) { return launch.get<std::uint64_t>(0, at); };
    if (launch.parameter(0).size() != 480 || va(64) != 0 || va(72) != 0 || word(136) != 0 ||
        word(388) != 0 || word(392) != 0)
        return false;
    a.scale = static_cast<double>(launch.get<float>(0, 140));
    a.width = word(144);
    a.out_width = word(148);
    a.queries = word(152);
    a.keys = word(156);
    a.heads = word(160);
    a.group = word(164);
    a.batches = word(384);
    a.set_mask(launch.get<std::uint8_t>(0, 168));
    a.q = {va(0), wide(320), word(288), wide(176)};
    a.k = {va(8), wide(328), word(292), wide(184)};
    a.v = {va(16), wide(336), word(296), wide(192)};
    a.bias = {va(24), wide(344), wide(304), wide(200)};
    a.out = {va(40), wide(312), wide(280), a.out_width * a.heads};
    a.dropped = static_cast<double>(launch.get<float>(0, 272));
    const std::int64_t packed = launch.get<std::int8_t>(0, 224);
    g.grad = {va(48), wide(400), wide(440), wide(208)};
    g.q = {va(80), wide(408), wide(448), packed * a.heads * a.width};
    g.k = {va(88), wide(416), wide(456), packed * a.heads * a.width};
    g.v = {va(96), wide(424), wide(464), packed * a.heads * a.out_width};
    g.bias = {va(104), wide(432), wide(472), wide(216)};
    g.sums = va(32);
    g.sums_batch = wide(352);
    g.sums_head = wide(360);
    g.deltas = va(56);
    g.deltas_batch = wide(368);
    g.deltas_head = wide(376);
    return a.sane();
}

/// The gradients of one batch's and head's inputs.
struct Sums {
    std::vector<double> q, k, v, bias;

    explicit Sums(const Attention& a)
        : q(static_cast<std::size_t>(a.queries * a.width)),
          k(static_cast<std::size_t>(a.keys * a.width)),
          v(static_cast<std::size_t>(a.keys * a.out_width)),
          bias(static_cast<std::size_t>(a.queries * a.keys)) {}
};

/// The products of outputs and their gradients, a query's each. Kernels of halves (but Volta's)
/// compute them from the outputs, which are where forward() puts them; to others PyTorch gives
/// them, of outputs that may lie in any way. Empty where it may not be read.
std::vector<double> load_deltas(const NamedLaunch& launch, const Attention& a, const Gradients& g,
                                std::int64_t batch, std::int64_t head,
                                const std::vector<double>& grad) {
    std::vector<double> deltas;
    if (a.type == ScalarType::Float) {
        const auto first =
            static_cast<std::uint64_t>(batch * g.deltas_batch + head * g.deltas_head);
        const auto* given = launch.read<float>(g.deltas + first * sizeof(float),
                                               static_cast<std::uint64_t>(a.queries));
        if (given != nullptr) deltas.assign(given, given + a.queries);
        return deltas;
    }
    const auto out = load_rows(launch, a, a.out, batch, head, a.queries, a.out_width);
    for (std::size_t at = 0; at < out.size(); at += static_cast<std::size_t>(a.out_width))
        deltas.push_back(dot(&grad[at], &out[at], a.out_width));
    return deltas;
}

void add_query(const Attention& a, const Inputs& in, std::int64_t query, const double* grad,
               double delta, double log_sum, const std::vector<double>& factors, Sums& sums) {
    double* of_q = &sums.q[static_cast<std::size_t>(query * a.width)];
    const double* q = &in.q[static_cast<std::size_t>(query * a.width)];
    for (std::int64_t key = 0; key < a.seen(query); ++key) {
        const double chance = std::exp(in.score(a, query, key) - log_sum);
        const double factor = factors[static_cast<std::size_t>(key)];
        const double* value = &in.v[static_cast<std::size_t>(key * a.out_width)];
        double* of_v = &sums.v[static_cast<std::size_t>(key * a.out_width)];
        for (std::int64_t c = 0; c < a.out_width; ++c) of_v[c] += chance * factor * grad[c];
        const double slope = chance * (factor * dot(grad, value, a.out_width) - delta);
        sums.bias[static_cast<std::size_t>(query * a.keys + key)] = slope;
        const double* k = &in.k[static_cast<std::size_t>(key * a.width)];
        double* of_k = &sums.k[static_cast<std::size_t>(key * a.width)];
        for (std::int64_t c = 0; c < a.width; ++c) {
            of_q[c] += slope * a.scale * k[c];
            of_k[c] += slope * a.scale * q[c];
        }
    }
}

bool backward(const NamedLaunch& launch, ScalarType type) {
    Attention a;
    Gradients g;
    a.type = type;
    if (!read_backward(launch, a, g)) return false;
    if (!read_seed(launch, a, 232)) return true;
    for (std::int64_t bh = 0; bh < a.batches * a.heads; ++bh) {
        const std::int64_t batch = bh / a.heads;
        const std::int64_t head = bh % a.heads;
        Inputs in;
        if (!in.read(launch, a, batch, head)) return true;
        const auto grad = load_rows(launch, a, g.grad, batch, head, a.queries, a.out_width);
        const auto* log_sums = launch.read<float>(
            g.sums + static_cast<std::uint64_t>(batch * g.sums_batch + head * g.sums_head) * 4,
            static_cast<std::uint64_t>(a.queries));
        if (grad.empty() || log_sums == nullptr) return true;
        const auto deltas = load_deltas(launch, a, g, batch, head, grad);
        if (deltas.empty()) return true;
        Sums sums(a);
        for (std::int64_t query = 0; query < a.queries; ++query) {
            const auto row = static_cast<std::size_t>(query * a.out_width);
            add_query(a, in, query, &grad[row], deltas[static_cast<std::size_t>(query)],
                      static_cast<double>(log_sums[query]), kept(a, batch, head, query), sums);
        }
        if (!store_rows(launch, a, g.q, batch, head, a.width, sums.q) ||
            !store_rows(launch, a, g.k, batch, head, a.width, sums.k) ||
            !store_rows(launch, a, g.v, batch, head, a.out_width, sums.v) ||
            (g.bias.va != 0 && !store_rows(launch, a, g.bias, batch, head, a.keys, sums.bias)))
            return true;
    }
    const auto pairs = static_cast<double>(a.batches * a.heads * a.queries * a.keys);
    launch.cost(5 * pairs * static_cast<double>(a.width + a.out_width),
                pairs / static_cast<double>(a.keys) * 16 * static_cast<double>(a.width));
    return true;
}

ScalarType type_of(const KernelName& name) {
    if (name.mentions("_f32_")) return ScalarType::Float;
    if (name.mentions("_bf16_")) return ScalarType::BFloat16;
    return name.mentions("_f16_") ? ScalarType::Half : ScalarType::Unknown;
}

}  // namespace

NamedKernel find_efficient_attention(const KernelName& name) {
    const bool forwards = name.base.starts_with("fmha_cutlassF_");
    if (!forwards && !name.base.starts_with("fmha_cutlassB_")) return {};
    const ScalarType type = type_of(name);
    if (type == ScalarType::Unknown) return {};
    return [=](const NamedLaunch& launch) {
        return forwards ? forward(launch, type) : backward(launch, type);
    };
}

}  // namespace simgpu::torch
