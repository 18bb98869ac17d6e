// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Reductions whose accumulator is more than a number (torch 2.15's SharedReduceOps.h): greatest and
// least elements with their places, both at once, variance with mean.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"
#include "simgpu/host_kernels/torch/reduction.hpp"

namespace simgpu::torch {
namespace {

struct Form {
    ScalarType in = ScalarType::Unknown;
    ScalarType out = ScalarType::Unknown;
    std::size_t config = 0;
    bool least = false;
    bool place_alone = false;
};

/// Grows with how much an element is wanted. NaNs always are most.
std::uint64_t wish(ScalarType type, bool least, const std::byte* from) {
    const std::uint64_t bits = ordered_bits(type, from);
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * size_of(type));
    if (!least || (is_float(type) && bits == all)) return bits;
    return all - bits;
}

void copy(const Form& form, const std::byte* from, std::byte* to) {
    if (form.in == form.out)
        std::memcpy(to, from, size_of(form.in));
    else
        store(form.out, to, load(form.in, from));
}

/// The first of the elements that are wanted most, in each row: its place, or it and its place.
bool find_extreme(const NamedLaunch& launch, const Form& form) {
    Reduction r;
    if (!r.read(launch, form.config)) return false;
    const std::uint32_t out_width = form.place_alone ? 8 : size_of(form.out);
    const auto* in = r.read_input(launch, size_of(form.in));
    auto* out = r.write_output(launch, 0, out_width, out_width);
    const bool places = !form.place_alone && r.results == 2;
    auto* place = places ? r.write_output(launch, 1, 8, out_width) : out;
    if (in == nullptr || out == nullptr || place == nullptr) return true;
    r.kept.for_each(r.outputs, [&](std::uint64_t, const auto& at) {
        const std::byte* row = in + at[1];
        const std::byte* best = nullptr;
        std::uint64_t most = 0;
        std::int64_t found = 0;
        r.reduced.for_each(r.inputs, [&](std::uint64_t i, const auto& offsets) {
            const std::uint64_t here = wish(form.in, form.least, row + offsets[0]);
            if (best != nullptr && here <= most) return;
            best = row + offsets[0];
            most = here;
            found = static_cast<std::int64_t>(i);
        });
        if (!form.place_alone && best != nullptr) copy(form, best, out + at[0]);
        if (form.place_alone)
            std::memcpy(out + at[0], &found, sizeof(found));
        else if (places)
            std::memcpy(place + at[0] / out_width * 8, &found, sizeof(found));
    });
    r.cost(launch, size_of(form.in), out_width);
    return true;
}

/// The least and the greatest of each row; a NaN is both.
bool find_both(const NamedLaunch& launch, const Form& form) {
    Reduction r;
    if (!r.read(launch, form.config)) return false;
    const std::uint32_t width = size_of(form.out);
    const auto* in = r.read_input(launch, size_of(form.in));
    auto* least = r.write_output(launch, 0, width, width);
    auto* most = r.results == 2 ? r.write_output(launch, 1, width, width) : least;
    if (in == nullptr || least == nullptr || most == nullptr) return true;
    r.kept.for_each(r.outputs, [&](std::uint64_t, const auto& at) {
        const std::byte* row = in + at[1];
        std::array<const std::byte*, 2> best{};
        std::array<std::uint64_t, 2> wished{};
        r.reduced.for_each(r.inputs, [&](std::uint64_t, const auto& offsets) {
            for (const std::size_t side : {0U, 1U}) {
                const std::uint64_t here = wish(form.in, side == 0, row + offsets[0]);
                if (best[side] != nullptr && here <= wished[side]) continue;
                best[side] = row + offsets[0];
                wished[side] = here;
            }
        });
        if (best[0] == nullptr) return;
        copy(form, best[0], least + at[0]);
        if (r.results == 2) copy(form, best[1], most + at[0]);
    });
    r.cost(launch, size_of(form.in), 2 * width);
    return true;
}

/// Variance or standard deviation, and the mean: the operation holds what is taken off the number
/// of elements, and whether the root is wanted.
bool variance(const NamedLaunch& launch, const Form& form) {
    Reduction r;
    if (!r.read(launch, form.config)) return false;
    const bool wide = form.config == 48;
    const double correction = wide ? launch.get<double>(0) : launch.get<float>(0);
    const bool root = launch.get<std::uint8_t>(0, wide ? 8 : 4) != 0;
    const std::uint32_t width = size_of(form.out);
    const auto* in = r.read_input(launch, size_of(form.in));
    auto* out = r.write_output(launch, 0, width, width);
    auto* means = r.results == 2 ? r.write_output(launch, 1, width, width) : out;
    if (in == nullptr || out == nullptr || means == nullptr) return true;
    r.kept.for_each(r.outputs, [&](std::uint64_t, const auto& at) {
        const std::byte* row = in + at[1];
        const auto sum = [&](auto part) {
            double all = 0;
            r.reduced.for_each(r.inputs, [&](std::uint64_t, const auto& offsets) {
                all += part(load(form.in, row + offsets[0]));
            });
            return all;
        };
        const double mean = sum([](double x) { return x; }) / r.inputs;
        const double squares = sum([mean](double x) { return (x - mean) * (x - mean); });
        const double spread = squares / std::max(r.inputs - correction, 0.0);
        store(form.out, out + at[0], root ? std::sqrt(spread) : spread);
        if (r.results == 2) store(form.out, means + at[0], mean);
    });
    r.cost(launch, size_of(form.in), 2 * width);
    return true;
}

/// The second of the operation's own types: in what it calculates.
std::uint32_t accumulator_bytes(const std::string& operation) {
    const auto types = split_list(inside_bracket(operation, operation.find('<')));
    return types.size() < 2 ? 0 : size_of(scalar_type(types[1]));
}

}  // namespace

NamedKernel find_arg_reduce(const KernelName& name) {
    if (name.base != "reduce_kernel" || name.template_arguments.size() < 3) return {};
    const std::string& op = name.template_arguments[2];
    const auto types = split_list(inside_bracket(op, op.find('<')));
    if (types.size() < 4 || types[2] != "unsigned int") return {};
    const std::string operation(types[1]);
    const auto is = [&](std::string_view part) {
        return operation.starts_with("at::native::" + std::string(part));
    };
    // A pair of an element and a place takes 16 bytes behind the empty operation's 8.
    Form form{scalar_type(types[0]), scalar_type(types[3]), 24};
    if (form.in == ScalarType::Unknown || form.out == ScalarType::Unknown) return {};
    form.place_alone = is("ArgMaxOps<") || is("ArgMinOps<");
    form.least = is("ArgMinOps<") || is("MinOps<");
    if (form.place_alone || is("MaxOps<") || is("MinOps<"))
        return [form](const NamedLaunch& launch) { return find_extreme(launch, form); };
    const std::size_t width = accumulator_bytes(operation);
    if (is("MinMaxOps<") && width != 0) {
        form.config = (3 * width + 3) / 4 * 4;
        return [form](const NamedLaunch& launch) { return find_both(launch, form); };
    }
    if (is("WelfordOps<") && width >= 4) {
        form.config = width == 8 ? 48 : 24;
        return [form](const NamedLaunch& launch) { return variance(launch, form); };
    }
    return {};
}

}  // namespace simgpu::torch
