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
#include "simgpu/host_kernels/torch/offsets.hpp"
#include "simgpu/host_kernels/torch/scalar_type.hpp"

namespace simgpu::torch {
namespace {

enum class Reduction : std::uint8_t { Sum, Mean, NormTwo, Max, Min, Or, And, Product };

struct ReduceForm {
    Reduction reduction;
    ScalarType in;
    ScalarType out;
    /// Of the accumulator, whose neutral element lies in the struct.
    std::size_t accumulator_bytes;
};

struct Row {
    std::string_view name;
    Reduction reduction;
};

constexpr Row kRows[] = {
    {"sum_functor", Reduction::Sum},     {"MeanOps<", Reduction::Mean},
    {"NormTwoOps<", Reduction::NormTwo}, {"MaxNanFunctor<", Reduction::Max},
    {"MinNanFunctor<", Reduction::Min},  {"or_kernel_cuda", Reduction::Or},
    {"and_kernel_cuda", Reduction::And}, {"prod_functor", Reduction::Product},
};

// ReduceConfig: 14 ints, a flag, an int.
constexpr std::size_t kConfigBytes = 64;

std::size_t aligned(std::size_t offset, std::size_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

double start(Reduction reduction) {
    switch (reduction) {
        case Reduction::Max:
            return -std::numeric_limits<double>::infinity();
        case Reduction::Min:
            return std::numeric_limits<double>::infinity();
        case Reduction::And:
        case Reduction::Product:
            return 1;
        default:
            return 0;
    }
}

double step(Reduction reduction, double sum, double x) {
    switch (reduction) {
        case Reduction::NormTwo:
            return sum + x * x;
        case Reduction::Max:
            return std::isnan(x) || x > sum ? x : sum;
        case Reduction::Min:
            return std::isnan(x) || x < sum ? x : sum;
        case Reduction::Or:
            return sum != 0 || x != 0;
        case Reduction::And:
            return sum != 0 && x != 0;
        case Reduction::Product:
            return sum * x;
        case Reduction::Sum:
        case Reduction::Mean:
            break;
    }
    return sum + x;
}

double finish(Reduction reduction, double sum, float factor) {
    if (reduction == Reduction::Mean) return sum * static_cast<double>(factor);
    return reduction == Reduction::NormTwo ? std::sqrt(sum) : sum;
}

bool run(const NamedLaunch& launch, const ReduceForm& form) {
    const auto bytes = launch.parameter(0);
    // The operation is empty, or holds a factor of the accumulator's type.
    const std::size_t config = aligned(2 * form.accumulator_bytes, 4);
    const std::size_t input_calc = config + kConfigBytes;
    const std::size_t output_calc = input_calc + Offsets::bytes_of(1);
    const std::size_t addresses = aligned(output_calc + Offsets::bytes_of(2), 8);
    Offsets reduced;
    Offsets kept;
    if (bytes.size() < addresses + 64 || !reduced.read(bytes.subspan(input_calc), 1) ||
        !kept.read(bytes.subspan(output_calc), 2))
        return false;
    const auto inputs = launch.get<std::uint32_t>(0, config + 4);
    const auto outputs = launch.get<std::uint32_t>(0, config + 8);
    if (reduced.count() != inputs || kept.count() != outputs) return false;
    const auto src = launch.get<std::uint64_t>(0, addresses);
    const auto dst = launch.get<std::uint64_t>(0, addresses + 8);
    const bool accumulates = launch.get<std::uint8_t>(0, addresses + 56) != 0;
    const bool is_final = launch.get<std::uint8_t>(0, addresses + 57) != 0;
    if (accumulates || !is_final) return false;
    const std::uint32_t in_bytes = size_of(form.in);
    const std::uint64_t in_extent =
        kept.extent(1, outputs, 0) + reduced.extent(0, inputs, in_bytes);
    const std::uint64_t out_extent = kept.extent(0, outputs, size_of(form.out));
    const auto* in = launch.read<std::byte>(src, in_extent);
    auto* out = launch.write<std::byte>(dst, out_extent);
    if (in == nullptr || out == nullptr) return true;
    const auto factor = launch.get<float>(0, 0);
    kept.for_each(outputs, [&](std::uint64_t, const auto& place) {
        double sum = start(form.reduction);
        const std::byte* row = in + place[1];
        reduced.for_each(inputs, [&](std::uint64_t, const auto& offsets) {
            sum = step(form.reduction, sum, load(form.in, row + offsets[0]));
        });
        store(form.out, out + place[0], finish(form.reduction, sum, factor));
    });
    launch.cost(static_cast<double>(inputs) * outputs,
                static_cast<double>(in_extent) + static_cast<double>(out_extent));
    return true;
}

}  // namespace

NamedKernel find_reduce(const KernelName& name) {
    if (name.base != "reduce_kernel" || name.template_arguments.size() < 3) return {};
    const std::string& op = name.template_arguments[2];
    const auto types = split_list(inside_bracket(op, op.find('<')));
    if (types.size() < 4 || types[2] != "unsigned int") return {};
    ReduceForm form{Reduction::Sum, scalar_type(types[0]), scalar_type(types[3]), 4};
    const bool plain = form.in != ScalarType::Unknown && form.out != ScalarType::Unknown;
    if (!plain) return {};
    for (const Row& row : kRows) {
        if (types[1].find(row.name) == std::string::npos) continue;
        form.reduction = row.reduction;
        // Accumulators are floats for floats and halves; sums of integers and doubles take 8 bytes.
        const bool wide = form.out == ScalarType::Double || form.out == ScalarType::Long;
        const bool flag = form.reduction == Reduction::Or || form.reduction == Reduction::And;
        form.accumulator_bytes = flag ? 1 : wide ? 8 : 4;
        if (form.reduction == Reduction::Mean && wide) return {};
        return [form](const NamedLaunch& launch) { return run(launch, form); };
    }
    return {};
}

}  // namespace simgpu::torch
