// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// reduce_kernel<threads, vector, ReduceOp<element, operation, index, result, ...>>(ReduceOp): one
// struct with the operation, the neutral element, the launch's shape, offsets of the reduced and of
// the kept dimensions, and addresses (torch 2.15's ATen/native/cuda/Reduce.cuh). Sums here are in
// double, so their order does not matter.

#include <cmath>
#include <limits>
#include <string>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/reduction.hpp"
#include "simgpu/host_kernels/torch/scalar_type.hpp"

namespace simgpu::torch {
namespace {

enum class Kind : std::uint8_t { Sum, Mean, NormOne, NormTwo, Max, Min, Or, And, Product };

struct ReduceForm {
    Kind kind;
    ScalarType in;
    ScalarType out;
    /// Of the accumulator, whose neutral element lies in the struct.
    std::size_t accumulator_bytes;
};

struct Row {
    std::string_view name;
    Kind kind;
};

constexpr Row kRows[] = {
    {"sum_functor", Kind::Sum},     {"MeanOps<", Kind::Mean},       {"NormOneOps<", Kind::NormOne},
    {"NormTwoOps<", Kind::NormTwo}, {"MaxNanFunctor<", Kind::Max},  {"MinNanFunctor<", Kind::Min},
    {"or_kernel_cuda", Kind::Or},   {"and_kernel_cuda", Kind::And}, {"prod_functor", Kind::Product},
};

std::size_t aligned(std::size_t offset, std::size_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

double start(Kind kind) {
    switch (kind) {
        case Kind::Max:
            return -std::numeric_limits<double>::infinity();
        case Kind::Min:
            return std::numeric_limits<double>::infinity();
        case Kind::And:
        case Kind::Product:
            return 1;
        default:
            return 0;
    }
}

double step(Kind kind, double sum, double x) {
    switch (kind) {
        case Kind::NormTwo:
            return sum + x * x;
        case Kind::NormOne:
            return sum + std::fabs(x);
        case Kind::Max:
            return std::isnan(x) || x > sum ? x : sum;
        case Kind::Min:
            return std::isnan(x) || x < sum ? x : sum;
        case Kind::Or:
            return sum != 0 || x != 0;
        case Kind::And:
            return sum != 0 && x != 0;
        case Kind::Product:
            return sum * x;
        case Kind::Sum:
        case Kind::Mean:
            break;
    }
    return sum + x;
}

double finish(Kind kind, double sum, float factor) {
    if (kind == Kind::Mean) return sum * static_cast<double>(factor);
    return kind == Kind::NormTwo ? std::sqrt(sum) : sum;
}

bool run(const NamedLaunch& launch, const ReduceForm& form) {
    Reduction r;
    // The operation is empty, or holds a factor of the accumulator's type.
    if (!r.read(launch, aligned(2 * form.accumulator_bytes, 4))) return false;
    const std::uint32_t in_bytes = size_of(form.in);
    const std::uint32_t out_bytes = size_of(form.out);
    const auto* in = r.read_input(launch, in_bytes);
    auto* out = r.write_output(launch, 0, out_bytes, out_bytes);
    if (in == nullptr || out == nullptr) return true;
    const auto factor = launch.get<float>(0, 0);
    r.kept.for_each(r.outputs, [&](std::uint64_t, const auto& place) {
        double sum = start(form.kind);
        const std::byte* row = in + place[1];
        r.reduced.for_each(r.inputs, [&](std::uint64_t, const auto& offsets) {
            sum = step(form.kind, sum, load(form.in, row + offsets[0]));
        });
        store(form.out, out + place[0], finish(form.kind, sum, factor));
    });
    r.cost(launch, in_bytes, out_bytes);
    return true;
}

}  // namespace

NamedKernel find_reduce(const KernelName& name) {
    if (name.base != "reduce_kernel" || name.template_arguments.size() < 3) return {};
    const std::string& op = name.template_arguments[2];
    const auto types = split_list(inside_bracket(op, op.find('<')));
    if (types.size() < 4 || types[2] != "unsigned int") return {};
    ReduceForm form{Kind::Sum, scalar_type(types[0]), scalar_type(types[3]), 4};
    const bool plain = form.in != ScalarType::Unknown && form.out != ScalarType::Unknown;
    if (!plain) return {};
    for (const Row& row : kRows) {
        if (types[1].find(row.name) == std::string::npos) continue;
        form.kind = row.kind;
        // Accumulators are floats for floats and halves; sums of integers and doubles take 8 bytes.
        const bool wide = form.out == ScalarType::Double || form.out == ScalarType::Long;
        const bool flag = form.kind == Kind::Or || form.kind == Kind::And;
        form.accumulator_bytes = flag ? 1 : wide ? 8 : 4;
        // The greatest and least are kept in the elements' own type.
        if (form.kind == Kind::Max || form.kind == Kind::Min)
            form.accumulator_bytes = size_of(form.out);
        if (form.kind == Kind::Mean && wide) return {};
        return [form](const NamedLaunch& launch) { return run(launch, form); };
    }
    return {};
}

}  // namespace simgpu::torch
