// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Scaled dot product attention in half precision (the flash-attention 2 that torch 2.15 is built
// with): forward and backward, causal or not, grouped heads; no dropout, windows, slopes, caps or
// sequences of several lengths. What it sums up is summed in float.

#include <cmath>
#include <limits>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/scalar_type.hpp"

namespace simgpu::torch {
namespace {

// Flash_fwd_params: three addresses; nine strides in elements (of batches, rows and heads, each for
// q, k, v); heads of q and of k; then the output, and from kSizes on 32-bit sizes.
constexpr std::size_t kStrides = 24;
constexpr std::size_t kHeads = 96;
constexpr std::size_t kKeyHeads = 100;
constexpr std::size_t kOut = 112;
constexpr std::size_t kOutStrides = 128;
constexpr std::size_t kLogSums = 160;
constexpr std::size_t kSizes = 176;
// The scale stands behind nine or ten sizes, then the same for powers of two, then the offsets of
// sequences of several lengths.
constexpr std::size_t kScales[] = {kSizes + 36, kSizes + 40};
// What Flash_bwd_params adds at its end: four addresses, three for sums, twelve strides, then where
// the rows' products with their gradients are.
constexpr std::size_t kBackwardBytes = 176;

/// A matrix of a batch and a head; strides in elements.
struct Place {
    std::uint64_t va = 0;
    std::int64_t batch = 0, row = 0, head = 0;
};

struct Attention {
    std::int64_t batches = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, width = 0;
    std::int64_t padded_queries = 0, padded_width = 0;
    double scale = 0;
    bool causal = false;
    ScalarType type = ScalarType::Half;
    Place q, k, v, out;
    std::uint64_t log_sums = 0;

    std::int64_t key_head(std::int64_t head) const { return head / (heads / key_heads); }
    /// Keys that a query sees.
    std::int64_t seen(std::int64_t query) const {
        if (!causal) return keys;
        const std::int64_t last = query + keys - queries + 1;
        return last < 0 ? 0 : last < keys ? last : keys;
    }
};

Place place_of(const NamedLaunch& launch, std::size_t va_at, std::size_t strides,
               std::size_t step) {
    return {launch.get<std::uint64_t>(0, va_at), launch.get<std::int64_t>(0, strides),
            launch.get<std::int64_t>(0, strides + step),
            launch.get<std::int64_t>(0, strides + 2 * step)};
}

bool read(const NamedLaunch& launch, Attention& a) {
    for (const std::size_t at : kScales) {
        const auto scale = launch.get<float>(0, at);
        const auto of_two = launch.get<float>(0, at + 4);
        if (scale <= 0 || std::fabs(of_two / scale - static_cast<float>(M_LOG2E)) > 1e-5F) continue;
        a.scale = static_cast<double>(scale);
        // Sequences of several lengths have their offsets here.
        const std::size_t offsets = (at + 8 + 7) / 8 * 8;
        if (launch.get<std::uint64_t>(0, offsets) != 0 ||
            launch.get<std::uint64_t>(0, offsets + 8) != 0)
            return false;
    }
    a.q = place_of(launch, 0, kStrides, 24);
    a.k = place_of(launch, 8, kStrides + 8, 24);
    a.v = place_of(launch, 16, kStrides + 16, 24);
    a.out = place_of(launch, kOut, kOutStrides, 8);
    a.log_sums = launch.get<std::uint64_t>(0, kLogSums);
    a.heads = launch.get<std::int32_t>(0, kHeads);
    a.key_heads = launch.get<std::int32_t>(0, kKeyHeads);
    a.batches = launch.get<std::int32_t>(0, kSizes);
    a.queries = launch.get<std::int32_t>(0, kSizes + 4);
    a.keys = launch.get<std::int32_t>(0, kSizes + 8);
    a.width = launch.get<std::int32_t>(0, kSizes + 16);
    a.padded_queries = launch.get<std::int32_t>(0, kSizes + 20);
    a.padded_width = launch.get<std::int32_t>(0, kSizes + 28);
    return a.scale > 0 && a.batches > 0 && a.queries > 0 && a.keys > 0 && a.width > 0 &&
           a.padded_queries >= a.queries && a.padded_width >= a.width && a.heads > 0 &&
           a.key_heads > 0 && a.heads % a.key_heads == 0;
}

using Matrix = std::vector<float>;

std::uint64_t address(const Place& place, std::int64_t batch, std::int64_t head,
                      std::uint32_t bytes) {
    return place.va + static_cast<std::uint64_t>(batch * place.batch + head * place.head) * bytes;
}

std::uint64_t extent(const Place& place, std::int64_t rows, std::int64_t width) {
    return static_cast<std::uint64_t>((rows - 1) * place.row + width);
}

/// False where it is not mapped.
bool fetch(const NamedLaunch& launch, const Attention& a, const Place& place, std::int64_t batch,
           std::int64_t head, std::int64_t rows, Matrix& to) {
    const auto* from =
        launch.read<std::uint16_t>(address(place, batch, head, 2), extent(place, rows, a.width));
    if (from == nullptr) return false;
    to.resize(static_cast<std::size_t>(rows * a.width));
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < a.width; ++c)
            to[static_cast<std::size_t>(r * a.width + c)] =
                static_cast<float>(load(a.type, from + r * place.row + c));
    return true;
}

bool keep(const NamedLaunch& launch, const Attention& a, const Place& place, std::int64_t batch,
          std::int64_t head, std::int64_t rows, const Matrix& from) {
    auto* to =
        launch.write<std::uint16_t>(address(place, batch, head, 2), extent(place, rows, a.width));
    if (to == nullptr) return false;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < a.width; ++c)
            store(a.type, to + r * place.row + c,
                  static_cast<double>(from[static_cast<std::size_t>(r * a.width + c)]));
    return true;
}

float dot(const float* a, const float* b, std::int64_t width) {
    float sum = 0;
    for (std::int64_t i = 0; i < width; ++i) sum += a[i] * b[i];
    return sum;
}

void add(float* to, float factor, const float* from, std::int64_t width) {
    for (std::int64_t i = 0; i < width; ++i) to[i] += factor * from[i];
}

/// One query's output; answers the logarithm of the sum of its exponentials.
float attend(const Attention& a, const float* query, const Matrix& keys, const Matrix& values,
             std::int64_t seen, Matrix& scores, float* out) {
    float top = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < seen; ++j) {
        scores[static_cast<std::size_t>(j)] =
            dot(query, keys.data() + j * a.width, a.width) * static_cast<float>(a.scale);
        top = std::fmax(top, scores[static_cast<std::size_t>(j)]);
    }
    float sum = 0;
    for (std::int64_t j = 0; j < seen; ++j)
        sum += scores[static_cast<std::size_t>(j)] =
            std::exp(scores[static_cast<std::size_t>(j)] - top);
    for (std::int64_t j = 0; j < seen; ++j)
        add(out, scores[static_cast<std::size_t>(j)] / sum, values.data() + j * a.width, a.width);
    return seen == 0 ? std::numeric_limits<float>::infinity() : top + std::log(sum);
}

void cost(const NamedLaunch& launch, const Attention& a, double products) {
    const double pairs =
        static_cast<double>(a.batches * a.heads * a.queries * a.keys) / (a.causal ? 2 : 1);
    launch.cost(
        2 * products * pairs * static_cast<double>(a.width),
        4 * products * static_cast<double>(a.batches * a.heads * (a.queries + a.keys) * a.width));
}

bool forward(const NamedLaunch& launch, Attention a) {
    if (!read(launch, a)) return false;
    auto* log_sums = launch.write<float>(
        a.log_sums, static_cast<std::uint64_t>(a.batches * a.heads * a.queries));
    if (log_sums == nullptr) return true;
    Matrix q, k, v, out, scores(static_cast<std::size_t>(a.keys));
    for (std::int64_t batch = 0; batch < a.batches; ++batch) {
        for (std::int64_t head = 0; head < a.heads; ++head) {
            if (!fetch(launch, a, a.q, batch, head, a.queries, q) ||
                !fetch(launch, a, a.k, batch, a.key_head(head), a.keys, k) ||
                !fetch(launch, a, a.v, batch, a.key_head(head), a.keys, v))
                return true;
            out.assign(q.size(), 0);
            for (std::int64_t i = 0; i < a.queries; ++i)
                *log_sums++ = attend(a, q.data() + i * a.width, k, v, a.seen(i), scores,
                                     out.data() + i * a.width);
            if (!keep(launch, a, a.out, batch, head, a.queries, out)) return true;
        }
    }
    cost(launch, a, 2);
    return true;
}

/// What the backward kernels have beside: gradients, and sums kept between them.
struct Gradients {
    Place out, q, k, v;
    std::uint64_t q_sums = 0;  ///< Floats, a padded matrix for each batch and head.
    std::uint64_t row_sums = 0;

    explicit Gradients(const NamedLaunch& launch) {
        const std::size_t at = launch.parameter(0).size() - kBackwardBytes;
        const std::size_t strides = at + 56;
        out = place_of(launch, at, strides, 8);
        q = place_of(launch, at + 8, strides + 24, 24);
        k = place_of(launch, at + 16, strides + 32, 24);
        v = place_of(launch, at + 24, strides + 40, 24);
        q_sums = launch.get<std::uint64_t>(0, at + 32);
        row_sums = launch.get<std::uint64_t>(0, at + 152);
    }
};

bool has_gradients(const NamedLaunch& launch) {
    return launch.parameter(0).size() >= kScales[1] + kBackwardBytes;
}

/// The products of each row's output and gradient.
bool backward_rows(const NamedLaunch& launch, Attention a) {
    if (!has_gradients(launch) || !read(launch, a)) return false;
    const Gradients g(launch);
    auto* sums = launch.write<float>(
        g.row_sums, static_cast<std::uint64_t>(a.batches * a.heads * a.padded_queries));
    if (sums == nullptr) return true;
    Matrix out, grad;
    for (std::int64_t batch = 0; batch < a.batches; ++batch) {
        for (std::int64_t head = 0; head < a.heads; ++head) {
            if (!fetch(launch, a, a.out, batch, head, a.queries, out) ||
                !fetch(launch, a, g.out, batch, head, a.queries, grad))
                return true;
            for (std::int64_t i = 0; i < a.padded_queries; ++i)
                *sums++ = i < a.queries
                              ? dot(out.data() + i * a.width, grad.data() + i * a.width, a.width)
                              : 0;
        }
    }
    return true;
}

/// Of one batch and head.
struct HeadGradients {
    Matrix q, k, v, grad, dq, dk, dv;
};

void add_gradients(const Attention& a, const float* log_sums, const float* row_sums,
                   HeadGradients& m) {
    for (std::int64_t i = 0; i < a.queries; ++i) {
        const float* query = m.q.data() + i * a.width;
        const float* grad = m.grad.data() + i * a.width;
        for (std::int64_t j = 0; j < a.seen(i); ++j) {
            const float* key = m.k.data() + j * a.width;
            const float scale = static_cast<float>(a.scale);
            const float weight = std::exp(dot(query, key, a.width) * scale - log_sums[i]);
            const float slope =
                weight * (dot(grad, m.v.data() + j * a.width, a.width) - row_sums[i]) * scale;
            add(m.dq.data() + i * a.width, slope, key, a.width);
            add(m.dk.data() + j * a.width, slope, query, a.width);
            add(m.dv.data() + j * a.width, weight, grad, a.width);
        }
    }
}

/// The gradients of keys and values, and in float those of the queries.
bool backward(const NamedLaunch& launch, Attention a) {
    if (!has_gradients(launch) || !read(launch, a)) return false;
    const Gradients g(launch);
    const auto matrices = static_cast<std::uint64_t>(a.batches * a.heads);
    const auto* log_sums =
        launch.read<float>(a.log_sums, matrices * static_cast<std::uint64_t>(a.queries));
    const auto* row_sums =
        launch.read<float>(g.row_sums, matrices * static_cast<std::uint64_t>(a.padded_queries));
    auto* q_sums = launch.write<float>(
        g.q_sums, matrices * static_cast<std::uint64_t>(a.padded_queries * a.padded_width));
    if (log_sums == nullptr || row_sums == nullptr || q_sums == nullptr) return true;
    HeadGradients m;
    for (std::int64_t batch = 0; batch < a.batches; ++batch) {
        for (std::int64_t head = 0; head < a.heads; ++head) {
            if (!fetch(launch, a, a.q, batch, head, a.queries, m.q) ||
                !fetch(launch, a, a.k, batch, a.key_head(head), a.keys, m.k) ||
                !fetch(launch, a, a.v, batch, a.key_head(head), a.keys, m.v) ||
                !fetch(launch, a, g.out, batch, head, a.queries, m.grad))
                return true;
            m.dq.assign(m.q.size(), 0);
            m.dk.assign(m.k.size(), 0);
            m.dv.assign(m.v.size(), 0);
            add_gradients(a, log_sums, row_sums, m);
            if (!keep(launch, a, g.k, batch, head, a.keys, m.dk) ||
                !keep(launch, a, g.v, batch, head, a.keys, m.dv))
                return true;
            std::copy(m.dq.begin(), m.dq.end(), q_sums);
            log_sums += a.queries;
            row_sums += a.padded_queries;
            q_sums += a.padded_queries * a.padded_width;
        }
    }
    cost(launch, a, 5);
    return true;
}

/// Rounds the gradients of the queries.
bool backward_queries(const NamedLaunch& launch, Attention a) {
    if (!has_gradients(launch) || !read(launch, a)) return false;
    const Gradients g(launch);
    const auto matrix = static_cast<std::uint64_t>(a.padded_queries * a.padded_width);
    const auto* sums =
        launch.read<float>(g.q_sums, static_cast<std::uint64_t>(a.batches * a.heads) * matrix);
    if (sums == nullptr) return true;
    for (std::int64_t batch = 0; batch < a.batches; ++batch) {
        for (std::int64_t head = 0; head < a.heads; ++head, sums += matrix) {
            const Matrix rows(sums, sums + a.queries * a.width);
            if (!keep(launch, a, g.q, batch, head, a.queries, rows)) return true;
        }
    }
    return true;
}

/// Template arguments from `first` on that must all be false.
bool are_off(const KernelName& name, std::initializer_list<std::size_t> arguments) {
    for (const std::size_t i : arguments)
        if (i >= name.template_arguments.size() || name.template_arguments[i] != "false")
            return false;
    return true;
}

}  // namespace

NamedKernel find_flash_attention(const KernelName& name) {
    if (!name.mentions("pytorch_flash::")) return {};
    Attention form;
    form.type = name.mentions("bfloat16_t") ? ScalarType::BFloat16 : ScalarType::Half;
    const auto bind = [&](auto kernel, std::size_t causal) -> NamedKernel {
        form.causal = causal != 0 && name.template_arguments[causal] == "true";
        return [kernel, form](const NamedLaunch& launch) { return kernel(launch, form); };
    };
    // <traits, dropout, causal, local, slopes, even rows, even width, cap, weights wanted>
    if (name.base == "flash_fwd_kernel" && are_off(name, {1, 3, 4, 7, 8})) return bind(forward, 2);
    if (name.base == "flash_bwd_dot_do_o_kernel") return bind(backward_rows, 0);
    // <traits, dropout, causal, local, slopes, even rows, even width, cap>
    if (name.base == "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel" && are_off(name, {1, 3, 4, 7}))
        return bind(backward, 2);
    if (name.base == "flash_bwd_convert_dq_kernel") return bind(backward_queries, 0);
    return {};
}

}  // namespace simgpu::torch
