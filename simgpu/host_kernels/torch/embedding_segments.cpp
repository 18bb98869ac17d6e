// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The gradient of an embedding of many indices (torch 2.15's EmbeddingBackwardKernel.cu): indices
// are sorted; equal ones make a segment, cut into parts of ten; parts are summed, then segments.
// And bags of an embedding (EmbeddingBag.cu). Indices are of 64 bits.

#include <cmath>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"

namespace simgpu::torch {
namespace {

constexpr std::int64_t kRowsOfPart = 10;

/// A tensor of rows or indices behind a launch's parameter.
struct Operands {
    const NamedLaunch& launch;

    std::uint64_t va(std::size_t parameter) const { return launch.get<std::uint64_t>(parameter); }
    const std::int64_t* longs(std::size_t parameter, std::uint64_t number) const {
        return launch.read<std::int64_t>(va(parameter), number);
    }
    std::int64_t* new_longs(std::size_t parameter, std::uint64_t number) const {
        return launch.write<std::int64_t>(va(parameter), number);
    }
    /// What a parameter that points to one number points to; 0 where it may not be read.
    std::uint64_t number_at(std::size_t parameter) const {
        const auto* there = longs(parameter, 1);
        return there == nullptr || *there < 0 ? 0 : static_cast<std::uint64_t>(*there);
    }
};

/// (parts of each segment out, where segments begin, their number, rows)
bool count_parts(const NamedLaunch& launch) {
    const Operands o{launch};
    const std::uint64_t segments = o.number_at(2);
    const auto rows = launch.get<std::int64_t>(3);
    const auto* begin = o.longs(1, segments);
    auto* parts = o.new_longs(0, segments);
    if (begin == nullptr || parts == nullptr) return true;
    for (std::uint64_t i = 0; i < segments; ++i) {
        const std::int64_t end = i + 1 < segments ? begin[i + 1] : rows;
        parts[i] = (end - begin[i] + kRowsOfPart - 1) / kRowsOfPart;
    }
    launch.cost(static_cast<double>(segments), 16.0 * static_cast<double>(segments));
    return true;
}

/// (parts of each segment, those before it, number of segments, number of parts out)
bool count_all_parts(const NamedLaunch& launch) {
    const Operands o{launch};
    const std::uint64_t segments = o.number_at(2);
    if (segments == 0) return true;
    const auto* parts = o.longs(0, segments);
    const auto* before = o.longs(1, segments);
    auto* all = o.new_longs(3, 1);
    if (parts != nullptr && before != nullptr && all != nullptr)
        *all = parts[segments - 1] + before[segments - 1];
    return true;
}

/// (where parts begin out, parts of each segment, those before it, where segments begin, their
/// number)
bool place_parts(const NamedLaunch& launch) {
    const Operands o{launch};
    const std::uint64_t segments = o.number_at(4);
    if (segments == 0) return true;
    const auto* parts = o.longs(1, segments);
    const auto* before = o.longs(2, segments);
    const auto* begin = o.longs(3, segments);
    if (parts == nullptr || before == nullptr || begin == nullptr) return true;
    const std::int64_t all = before[segments - 1] + parts[segments - 1];
    if (all < 0) return true;
    auto* out = o.new_longs(0, static_cast<std::uint64_t>(all));
    if (out == nullptr) return true;
    for (std::uint64_t i = 0; i < segments; ++i) {
        for (std::int64_t part = 0; part < parts[i] && before[i] + part < all; ++part)
            out[before[i] + part] = begin[i] + part * kRowsOfPart;
    }
    launch.cost(static_cast<double>(all), 8.0 * static_cast<double>(all));
    return true;
}

/// Sums rows of gradients into one row, in double.
class RowSum {
  public:
    RowSum(const NamedLaunch& launch, ScalarType type, std::uint64_t va, std::uint64_t width)
        : launch_(launch), type_(type), va_(va), sums_(width) {}
    bool add(std::int64_t row, double scale) {
        const std::uint64_t bytes = size_of(type_);
        const auto* from = launch_.read<std::byte>(
            va_ + static_cast<std::uint64_t>(row) * sums_.size() * bytes, sums_.size() * bytes);
        for (std::size_t i = 0; from != nullptr && i < sums_.size(); ++i)
            sums_[i] += scale * load(type_, from + i * bytes);
        return from != nullptr;
    }
    /// Stores the row and begins a new one.
    void store_to(ScalarType type, std::byte* to) {
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            store(type, to + i * size_of(type), sums_[i]);
            sums_[i] = 0;
        }
    }

  private:
    const NamedLaunch& launch_;
    ScalarType type_;
    std::uint64_t va_;
    std::vector<double> sums_;
};

/// Where the parameters lie of a kernel that sums parts; 0 where it has none such.
struct PartsForm {
    ScalarType type = ScalarType::Unknown;
    bool bags = false;
};

/// (places before sorting, gradient, [bag of each], counts or null, rows, row elements, [mean, bag
/// sizes, weights or null, their stride,] where parts begin, their number, sums out, ...)
bool sum_parts(const NamedLaunch& launch, const PartsForm& form) {
    const Operands o{launch};
    const std::size_t shift = form.bags ? 1 : 0;
    const auto rows = launch.get<std::uint64_t>(3 + shift);
    const auto width = launch.get<std::uint64_t>(4 + shift);
    const std::size_t begins = form.bags ? 10 : 5;
    const std::uint64_t parts = o.number_at(begins + 1);
    const auto* begin = o.longs(begins, parts);
    const auto* places = o.longs(0, rows);
    const std::uint64_t counts_va = o.va(2 + shift);
    const auto* counts = counts_va == 0 ? nullptr : o.longs(2 + shift, rows);
    const auto* bag_of = form.bags ? o.longs(2, rows) : nullptr;
    const bool mean = form.bags && launch.get<std::int32_t>(6) != 0;
    const std::uint64_t weights = form.bags ? o.va(8) : 0;
    const auto weight_stride = launch.get<std::uint64_t>(9);
    auto* out = launch.write<std::byte>(o.va(begins + 2),
                                        parts * width * (form.type == ScalarType::Double ? 8 : 4));
    if (begin == nullptr || places == nullptr || out == nullptr ||
        (form.bags && bag_of == nullptr) || (counts_va != 0 && counts == nullptr))
        return true;
    const ScalarType sum_type =
        form.type == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
    RowSum sum(launch, form.type, o.va(1), width);
    for (std::uint64_t part = 0; part < parts; ++part) {
        const std::uint64_t end =
            part + 1 < parts ? static_cast<std::uint64_t>(begin[part + 1]) : rows;
        for (auto i = static_cast<std::uint64_t>(begin[part]); i < end && i < rows; ++i) {
            const std::int64_t row = form.bags ? bag_of[places[i]] : places[i];
            double scale = counts == nullptr ? 1 : 1 / static_cast<double>(counts[i]);
            if (weights != 0) {
                const auto at = static_cast<std::uint64_t>(places[i]) * weight_stride;
                const auto* weight =
                    launch.read<std::byte>(weights + at * size_of(form.type), size_of(form.type));
                if (weight == nullptr) return true;
                scale *= load(form.type, weight);
            }
            if (mean) {
                const auto* bag =
                    launch.read<std::int64_t>(o.va(7) + static_cast<std::uint64_t>(row) * 8, 1);
                if (bag == nullptr) return true;
                scale /= static_cast<double>(*bag);
            }
            if (!sum.add(row, scale)) return true;
        }
        sum.store_to(sum_type, out + part * width * size_of(sum_type));
    }
    launch.cost(static_cast<double>(rows * width), 8.0 * static_cast<double>(rows * width));
    return true;
}

/// (sorted indices, gradient of the weight, row elements, where segments begin, their number, sums
/// of parts, parts before each segment, number of parts, padding index, ...)
bool sum_segments(const NamedLaunch& launch, ScalarType type) {
    const Operands o{launch};
    const auto width = launch.get<std::uint64_t>(2);
    const std::uint64_t segments = o.number_at(4);
    const std::uint64_t parts = o.number_at(7);
    const auto padding = launch.get<std::int64_t>(8);
    const auto* begin = o.longs(3, segments);
    const auto* before = o.longs(6, segments);
    if (begin == nullptr || before == nullptr) return true;
    const ScalarType sum_type = type == ScalarType::Double ? type : ScalarType::Float;
    RowSum sum(launch, sum_type, o.va(5), width);
    for (std::uint64_t segment = 0; segment < segments; ++segment) {
        const auto* row =
            launch.read<std::int64_t>(o.va(0) + static_cast<std::uint64_t>(begin[segment]) * 8, 1);
        if (row == nullptr) return true;
        if (*row == padding || *row < 0) continue;
        const std::int64_t end =
            segment + 1 < segments ? before[segment + 1] : static_cast<std::int64_t>(parts);
        for (std::int64_t part = before[segment]; part < end; ++part)
            if (!sum.add(part, 1)) return true;
        const std::uint64_t bytes = width * size_of(type);
        auto* to =
            launch.write<std::byte>(o.va(1) + static_cast<std::uint64_t>(*row) * bytes, bytes);
        if (to == nullptr) return true;
        sum.store_to(type, to);
    }
    launch.cost(static_cast<double>(parts * width), 8.0 * static_cast<double>(parts * width));
    return true;
}

/// What both kernels that fill bags begin with: (indices, where bags begin, weight, out, bag of
/// each, indices, bags, row elements, strides of a row and of an element, ...)
struct Bags {
    const std::int64_t* indices = nullptr;
    const std::int64_t* begin = nullptr;
    std::int64_t* bag_of = nullptr;
    std::byte* out = nullptr;
    std::uint64_t number = 0;
    std::uint64_t bags = 0;
    std::uint64_t width = 0;

    bool read(const NamedLaunch& launch, ScalarType type) {
        const Operands o{launch};
        number = launch.get<std::uint64_t>(5);
        bags = launch.get<std::uint64_t>(6);
        width = launch.get<std::uint64_t>(7);
        indices = o.longs(0, number);
        begin = o.longs(1, bags);
        out = launch.write<std::byte>(o.va(3), bags * width * size_of(type));
        bag_of = o.new_longs(4, number);
        return indices != nullptr && begin != nullptr && out != nullptr && bag_of != nullptr;
    }
    std::uint64_t first(std::uint64_t bag) const {
        return bag == 0 ? 0 : static_cast<std::uint64_t>(begin[bag]);
    }
    std::uint64_t end(std::uint64_t bag) const {
        return std::min(bag + 1 < bags ? static_cast<std::uint64_t>(begin[bag + 1]) : number,
                        number);
    }
};

/// One element of the weight by index; null where it may not be read.
const std::byte* weight_at(const NamedLaunch& launch, ScalarType type, std::int64_t row,
                           std::uint64_t feature) {
    const auto at = static_cast<std::uint64_t>(row) * launch.get<std::uint64_t>(8) +
                    feature * launch.get<std::uint64_t>(9);
    return launch.read<std::byte>(launch.get<std::uint64_t>(2) + at * size_of(type), size_of(type));
}

/// (..., mode, bag sizes out, weights of samples or null, their stride, padding index, rows)
bool sum_bags(const NamedLaunch& launch, ScalarType type) {
    Bags b;
    if (!b.read(launch, type)) return true;
    const bool mean = launch.get<std::int32_t>(10) == 1;
    auto* sizes = launch.write<std::int64_t>(launch.get<std::uint64_t>(11), b.bags);
    const auto weights = launch.get<std::uint64_t>(12);
    const auto weight_stride = launch.get<std::uint64_t>(13);
    const auto padding = launch.get<std::int64_t>(14);
    if (sizes == nullptr) return true;
    const std::uint32_t bytes = size_of(type);
    for (std::uint64_t bag = 0; bag < b.bags; ++bag) {
        std::vector<double> sums(b.width);
        sizes[bag] = 0;
        for (std::uint64_t i = b.first(bag); i < b.end(bag); ++i) {
            b.bag_of[i] = static_cast<std::int64_t>(bag);
            if (b.indices[i] == padding || b.indices[i] < 0) continue;
            ++sizes[bag];
            double scale = 1;
            if (weights != 0) {
                const auto* w = launch.read<std::byte>(weights + i * weight_stride * bytes, bytes);
                if (w == nullptr) return true;
                scale = load(type, w);
            }
            for (std::uint64_t f = 0; f < b.width; ++f) {
                const auto* from = weight_at(launch, type, b.indices[i], f);
                if (from == nullptr) return true;
                sums[f] += scale * load(type, from);
            }
        }
        const double divisor = mean && sizes[bag] != 0 ? static_cast<double>(sizes[bag]) : 1;
        for (std::uint64_t f = 0; f < b.width; ++f)
            store(type, b.out + (bag * b.width + f) * bytes, sums[f] / divisor);
    }
    launch.cost(static_cast<double>(b.number * b.width),
                static_cast<double>((b.number + b.bags) * b.width * bytes));
    return true;
}

/// (..., bag sizes out, indices of the greatest out, padding index, rows)
bool max_bags(const NamedLaunch& launch, ScalarType type) {
    Bags b;
    if (!b.read(launch, type)) return true;
    auto* sizes = launch.write<std::int64_t>(launch.get<std::uint64_t>(10), b.bags);
    auto* chosen = launch.write<std::int64_t>(launch.get<std::uint64_t>(11), b.bags * b.width);
    const auto padding = launch.get<std::int64_t>(12);
    if (sizes == nullptr || chosen == nullptr) return true;
    for (std::uint64_t bag = 0; bag < b.bags; ++bag) {
        for (std::uint64_t f = 0; f < b.width; ++f) {
            double most = 0;
            std::int64_t best = -1;
            sizes[bag] = 0;
            for (std::uint64_t i = b.first(bag); i < b.end(bag); ++i) {
                b.bag_of[i] = static_cast<std::int64_t>(bag);
                if (b.indices[i] == padding || b.indices[i] < 0) continue;
                const auto* from = weight_at(launch, type, b.indices[i], f);
                if (from == nullptr) return true;
                const double value = load(type, from);
                if (sizes[bag]++ == 0 || value > most) {
                    most = value;
                    best = b.indices[i];
                }
            }
            chosen[bag * b.width + f] = best;
            store(type, b.out + (bag * b.width + f) * size_of(type), most);
        }
    }
    launch.cost(static_cast<double>(b.number * b.width),
                static_cast<double>(b.number * b.width * size_of(type)));
    return true;
}

/// (indices of the greatest, gradient, gradient of the weight, row elements, bags, padding index,
/// ...): adds.
bool max_bags_gradient(const NamedLaunch& launch, ScalarType type) {
    const Operands o{launch};
    const auto width = launch.get<std::uint64_t>(3);
    const std::uint64_t number = launch.get<std::uint64_t>(4) * width;
    const auto padding = launch.get<std::int64_t>(5);
    const std::uint32_t bytes = size_of(type);
    const auto* chosen = o.longs(0, number);
    const auto* grad = launch.read<std::byte>(o.va(1), number * bytes);
    if (chosen == nullptr || grad == nullptr) return true;
    for (std::uint64_t i = 0; i < number; ++i) {
        if (chosen[i] < 0 || chosen[i] == padding) continue;
        const std::uint64_t at = static_cast<std::uint64_t>(chosen[i]) * width + i % width;
        auto* to = launch.write<std::byte>(o.va(2) + at * bytes, bytes);
        if (to == nullptr) return true;
        store(type, to, load(type, to) + load(type, grad + i * bytes));
    }
    launch.cost(static_cast<double>(number), static_cast<double>(number * (8 + 3 * bytes)));
    return true;
}

}  // namespace

NamedKernel find_embedding_segments(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    // All of them are of the index's type alone, or of the element's and the index's.
    if (arguments.empty() || arguments.back() != "long") return {};
    if (name.base == "krn_partials_per_segment") return count_parts;
    if (name.base == "krn_partial_segment_offset") return place_parts;
    if (name.base == "compute_num_of_partial_segments") return count_all_parts;
    const ScalarType type = scalar_type(arguments.front());
    if (type == ScalarType::Unknown) return {};
    const auto bind = [type](auto work) -> NamedKernel {
        return [=](const NamedLaunch& launch) { return work(launch, type); };
    };
    if (name.base == "compute_grad_weight" || name.base == "compute_grad_weight_bags") {
        const PartsForm form{type, name.base.ends_with("_bags")};
        return [form](const NamedLaunch& launch) { return sum_parts(launch, form); };
    }
    if (name.base == "sum_and_scatter") return bind(sum_segments);
    if (name.base == "EmbeddingBag_updateOutputKernel_sum_mean") return bind(sum_bags);
    if (name.base == "EmbeddingBag_updateOutputKernel_max") return bind(max_bags);
    if (name.base == "EmbeddingBag_accGradParametersKernel_max") return bind(max_bags_gradient);
    return {};
}

}  // namespace simgpu::torch
