// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// multi_tensor_apply_kernel<lists, functor, arguments...>: one launch for chunks of many tensors,
// whose addresses lie in one struct (torch 2.15's MultiTensorApply.cuh, ForeachFunctors.cuh and
// fused_adam_utils.cuh).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::torch {
namespace {

constexpr std::size_t kMostLists = 5;

/// Where things lie in the struct of tensor lists.
struct ListLayout {
    std::size_t lists = 0;    ///< 0: none that is known.
    std::size_t tensors = 0;  ///< Room for, per list.
    std::size_t blocks = 0;
    std::size_t index_bytes = 1;  ///< Of a block's tensor: 1, or 2 with parameters of up to 32 KB.
    std::size_t sizes = 0;
    std::size_t extra = 0;  ///< A float per tensor, or the address of its step count.
    std::size_t block_tensor = 0;
    std::size_t block_chunk = 0;
    std::size_t bytes = 0;
};

/// Scalars have four bytes each, or eight.
enum class Lists : std::uint8_t { Plain, WithScalars, WithWideScalars, WithSteps };

bool have_scalars(Lists kind) {
    return kind == Lists::WithScalars || kind == Lists::WithWideScalars;
}

ListLayout layout_of(std::size_t lists, bool large, Lists kind) {
    constexpr std::array<std::size_t, kMostLists> kTensors{110, 64, 48, 36, 30};
    constexpr std::array<std::size_t, kMostLists> kTensorsWithScalars{96, 64, 48, 36, 30};
    const std::size_t factor = large ? 7 : 1;
    const auto& tensors = have_scalars(kind) ? kTensorsWithScalars : kTensors;
    ListLayout layout;
    layout.lists = lists;
    layout.tensors = tensors[lists - 1] * factor;
    layout.blocks = 320 * factor;
    layout.index_bytes = large ? 2 : 1;
    layout.sizes = lists * layout.tensors * 8;
    layout.extra = layout.sizes + layout.tensors * 8;
    layout.block_tensor = layout.extra;
    if (have_scalars(kind))
        layout.block_tensor += layout.tensors * (kind == Lists::WithScalars ? 4 : 8);
    if (kind == Lists::WithSteps)
        layout.block_tensor += kTensorsWithScalars[lists - 1] * factor * 8;
    layout.block_chunk = (layout.block_tensor + layout.blocks * layout.index_bytes + 3) / 4 * 4;
    // Those with scalars lack the number of the first tensor.
    const std::size_t last = have_scalars(kind) ? 0 : 4;
    layout.bytes = (layout.block_chunk + layout.blocks * 4 + last + 7) / 8 * 8;
    return layout;
}

/// Of the two sizes that PyTorch has, the one that a struct of these bytes has; no lists if
/// neither.
ListLayout layout_for(std::size_t bytes, std::size_t lists, Lists kind) {
    for (const bool large : {false, true}) {
        const ListLayout layout = layout_of(lists, large, kind);
        if (layout.bytes == bytes) return layout;
    }
    return {};
}

ListLayout layout_for(const NamedLaunch& launch, std::size_t lists, Lists kind) {
    return layout_for(launch.parameter(0).size(), lists, kind);
}

/// One block's part of its tensor, in every list.
struct Chunk {
    std::uint64_t tensor = 0;
    std::uint64_t count = 0;
    std::array<std::uint64_t, kMostLists> addresses{};
};

constexpr std::uint64_t kChunkElements = 65536;

Chunk chunk_of(const NamedLaunch& launch, const ListLayout& layout, std::uint64_t block) {
    Chunk chunk;
    const std::size_t at = layout.block_tensor + block * layout.index_bytes;
    chunk.tensor = layout.index_bytes == 2 ? launch.get<std::uint16_t>(0, at)
                                           : launch.get<std::uint8_t>(0, at);
    const std::uint64_t first =
        kChunkElements * launch.get<std::uint32_t>(0, layout.block_chunk + block * 4);
    const auto all = launch.get<std::uint64_t>(0, layout.sizes + chunk.tensor * 8);
    chunk.count = all > first ? std::min(all - first, kChunkElements) : 0;
    for (std::size_t list = 0; list < layout.lists; ++list) {
        const auto base = launch.get<std::uint64_t>(0, (list * layout.tensors + chunk.tensor) * 8);
        chunk.addresses[list] = base + first * sizeof(float);
    }
    return chunk;
}

/// What a functor does with one element: inputs in the order of the lists, scalars as passed.
struct ForeachOp {
    std::size_t inputs = 1;
    double (*apply)(const double* x, const double* scalars) = nullptr;
};

struct ForeachForm {
    ForeachOp op;
    std::size_t lists = 1;
    std::size_t output = 0;
    /// The scalars come with the tensors.
    bool listed = false;
    /// The first scalar lies at an address; the one behind it is its factor.
    bool pointed = false;
    /// Index of the first scalar among the kernel's parameters.
    std::size_t first_scalar = 3;
};

bool run_foreach(const NamedLaunch& launch, const ForeachForm& form) {
    const ListLayout layout =
        layout_for(launch, form.lists, form.listed ? Lists::WithScalars : Lists::Plain);
    if (layout.lists == 0) return false;
    std::array<double, 2> scalars{};
    for (std::size_t i = 0; i < scalars.size(); ++i)
        scalars[i] = static_cast<double>(launch.get<float>(form.first_scalar + i));
    if (form.pointed) {
        const auto* scalar = launch.read<float>(launch.get<std::uint64_t>(form.first_scalar), 1);
        if (scalar == nullptr) return true;
        scalars[0] = static_cast<double>(*scalar) * scalars[1];
    }
    for (std::uint64_t block = 0; block < launch.grid()[0]; ++block) {
        const Chunk chunk = chunk_of(launch, layout, block);
        if (form.listed)
            scalars[0] = static_cast<double>(
                launch.get<float>(0, layout.extra + chunk.tensor * sizeof(float)));
        std::array<const float*, kMostLists> in{};
        for (std::size_t i = 0; i < form.op.inputs; ++i) {
            in[i] = launch.read<float>(chunk.addresses[i], chunk.count);
            if (in[i] == nullptr) return true;
        }
        auto* out = launch.write<float>(chunk.addresses[form.output], chunk.count);
        if (out == nullptr) return true;
        for (std::uint64_t n = 0; n < chunk.count; ++n) {
            std::array<double, kMostLists> x{};
            for (std::size_t i = 0; i < form.op.inputs; ++i) x[i] = static_cast<double>(in[i][n]);
            out[n] = static_cast<float>(form.op.apply(x.data(), scalars.data()));
        }
        launch.cost(static_cast<double>(chunk.count * form.op.inputs),
                    4.0 * static_cast<double>(chunk.count * (form.op.inputs + 1)));
    }
    return true;
}

double lerp(double a, double b, double weight) {
    return std::fabs(weight) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight);
}

struct FunctorRow {
    std::string_view functor;
    std::string_view operation;
    ForeachOp op;
};

const FunctorRow kFunctors[] = {
    {"BinaryOpScalarFunctor<",
     "std::plus",
     {1, [](const double* x, const double* s) { return x[0] + s[0]; }}},
    {"BinaryOpScalarFunctor<",
     "std::minus",
     {1, [](const double* x, const double* s) { return x[0] - s[0]; }}},
    {"BinaryOpScalarFunctor<",
     "std::multiplies",
     {1, [](const double* x, const double* s) { return x[0] * s[0]; }}},
    {"BinaryOpScalarFunctor<",
     "std::divides",
     {1, [](const double* x, const double* s) { return x[0] / s[0]; }}},
    {"BinaryOpScalarFunctor<",
     "reverse_power_functor",
     {1, [](const double* x, const double* s) { return std::pow(s[0], x[0]); }}},
    {"BinaryOpScalarFunctor<",
     "power_functor",
     {1, [](const double* x, const double* s) { return std::pow(x[0], s[0]); }}},
    {"BinaryOpScalarTensorFunctor<",
     "std::multiplies",
     {1, [](const double* x, const double* s) { return x[0] * s[0]; }}},
    {"BinaryOpScalarTensorFunctor<",
     "std::divides",
     {1, [](const double* x, const double* s) { return x[0] / s[0]; }}},
    {"BinaryOpScalarListFunctor<",
     "std::plus",
     {1, [](const double* x, const double* s) { return x[0] + s[0]; }}},
    {"BinaryOpScalarListFunctor<",
     "std::multiplies",
     {1, [](const double* x, const double* s) { return x[0] * s[0]; }}},
    {"BinaryOpScalarListFunctor<",
     "std::divides",
     {1, [](const double* x, const double* s) { return x[0] / s[0]; }}},
    // The scalar multiplies the second list.
    {"BinaryOpListAlphaFunctor<",
     "std::plus",
     {2, [](const double* x, const double* s) { return x[0] + s[0] * x[1]; }}},
    {"BinaryOpListAlphaFunctor<",
     "std::minus",
     {2, [](const double* x, const double* s) { return x[0] - s[0] * x[1]; }}},
    {"BinaryOpListAlphaFunctor<",
     "std::multiplies",
     {2, [](const double* x, const double* s) { return x[0] * s[0] * x[1]; }}},
    {"BinaryOpListAlphaFunctor<",
     "std::divides",
     {2, [](const double* x, const double* s) { return x[0] / (s[0] * x[1]); }}},
    {"PointwiseOpScalarFunctor<",
     "std::multiplies",
     {3, [](const double* x, const double* s) { return x[0] + s[0] * (x[1] * x[2]); }}},
    {"PointwiseOpScalarFunctor<",
     "std::divides",
     {3, [](const double* x, const double* s) { return x[0] + s[0] * (x[1] / x[2]); }}},
    {"PointwiseOpScalarListFunctor<",
     "std::multiplies",
     {3, [](const double* x, const double* s) { return x[0] + s[0] * (x[1] * x[2]); }}},
    {"PointwiseOpScalarListFunctor<",
     "std::divides",
     {3, [](const double* x, const double* s) { return x[0] + s[0] * (x[1] / x[2]); }}},
    {"TernaryOpScalarFunctor<",
     "LerpFunctor",
     {2, [](const double* x, const double* s) { return lerp(x[0], x[1], s[0]); }}},
    {"BinaryOpListAlphaFunctor<",
     "maximum<",
     {2, [](const double* x,
            const double*) { return std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1]; }}},
    {"BinaryOpListAlphaFunctor<",
     "minimum<",
     {2, [](const double* x,
            const double*) { return std::isnan(x[0]) || x[0] < x[1] ? x[0] : x[1]; }}},
    {"UnaryOpFunctor<",
     "Abs<",
     {1, [](const double* x, const double*) { return std::fabs(x[0]); }}},
    {"UnaryOpFunctor<",
     "Sqrt<",
     {1, [](const double* x, const double*) { return std::sqrt(x[0]); }}},
    {"UnaryOpFunctor<",
     "Reciprocal<",
     {1, [](const double* x, const double*) { return 1 / x[0]; }}},
    {"UnaryOpFunctor<", "std::negate", {1, [](const double* x, const double*) { return -x[0]; }}},
    {"UnaryOpFunctor<",
     "Copy<float, float>",
     {1, [](const double* x, const double*) { return x[0]; }}},
    {"ZeroFunctor<", "", {0, [](const double*, const double*) { return 0.0; }}},
};

/// The functor's numbers after the element type: lists, inputs, index of the written list.
bool read_numbers(const std::string& functor, std::array<std::size_t, 3>& numbers) {
    const auto arguments = split_list(inside_bracket(functor, functor.find('<')));
    if (arguments.empty() || arguments[0] != "float") return false;
    std::size_t found = 0;
    for (std::size_t i = 1; i < arguments.size() && found < numbers.size(); ++i)
        numbers[found++] =
            static_cast<std::size_t>(std::strtoul(std::string(arguments[i]).c_str(), nullptr, 10));
    return found >= 1 && numbers[0] >= 1 && numbers[0] <= kMostLists;
}

NamedKernel find_foreach(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    std::array<std::size_t, 3> numbers{};
    if (!read_numbers(arguments[1], numbers)) return {};
    const std::string operations = arguments.size() > 2 ? arguments[2] : std::string();
    for (const FunctorRow& row : kFunctors) {
        if (arguments[1].find(row.functor) == std::string::npos) continue;
        if (operations.find(row.operation) == std::string::npos) continue;
        ForeachForm form;
        form.op = row.op;
        form.pointed = row.functor == "BinaryOpScalarTensorFunctor<";
        form.listed = name.mentions("TensorListScalarListMetadata");
        form.lists = numbers[0];
        form.output = numbers[2];
        return [form](const NamedLaunch& launch) { return run_foreach(launch, form); };
    }
    return {};
}

/// Norms of tensors, their squares summed chunk by chunk: (lists, functor, sums out, where those of
/// each tensor begin).
bool sum_squares(const NamedLaunch& launch) {
    const ListLayout layout = layout_for(launch, 1, Lists::Plain);
    if (layout.lists == 0) return false;
    const auto first = launch.get<std::uint32_t>(0, layout.block_chunk + layout.blocks * 4);
    for (std::uint64_t block = 0; block < launch.grid()[0]; ++block) {
        const Chunk chunk = chunk_of(launch, layout, block);
        const auto number = launch.get<std::uint32_t>(0, layout.block_chunk + block * 4);
        const auto* begin = launch.read<std::uint64_t>(
            launch.get<std::uint64_t>(3) + (first + chunk.tensor) * 8, 1);
        const auto* values = launch.read<float>(chunk.addresses[0], chunk.count);
        if (begin == nullptr || values == nullptr) return true;
        auto* out = launch.write<float>(launch.get<std::uint64_t>(2) + (*begin + number) * 4, 1);
        if (out == nullptr) return true;
        double sum = 0;
        for (std::uint64_t n = 0; n < chunk.count; ++n)
            sum += static_cast<double>(values[n]) * static_cast<double>(values[n]);
        *out = static_cast<float>(sum);
        launch.cost(2.0 * static_cast<double>(chunk.count), 4.0 * static_cast<double>(chunk.count));
    }
    return true;
}

/// (sums, addresses of the norms, where sums of each tensor begin, number of the first tensor): a
/// block per tensor.
bool finish_norms(const NamedLaunch& launch) {
    const std::uint64_t tensors = launch.grid()[0];
    const std::uint64_t first = launch.get<std::uint32_t>(3);
    if (launch.parameter(1).size() < tensors * 8) return false;
    const auto* begin =
        launch.read<std::uint64_t>(launch.get<std::uint64_t>(2) + first * 8, tensors + 1);
    if (begin == nullptr) return true;
    for (std::uint64_t t = 0; t < tensors; ++t) {
        const auto* sums = launch.read<float>(launch.get<std::uint64_t>(0) + begin[t] * 4,
                                              begin[t + 1] - begin[t]);
        auto* norm = launch.write<float>(launch.get<std::uint64_t>(1, t * 8), 1);
        if (sums == nullptr || norm == nullptr) return true;
        double sum = 0;
        for (std::uint64_t i = 0; i < begin[t + 1] - begin[t]; ++i)
            sum += static_cast<double>(sums[i]);
        *norm = static_cast<float>(std::sqrt(sum));
    }
    return true;
}

/// _amp_foreach_non_finite_check_and_unscale_: (lists, functor, lambda), which has captured the
/// addresses of found_inf and of the inverse scale.
bool run_unscale(const NamedLaunch& launch) {
    const ListLayout layout = layout_for(launch, 1, Lists::Plain);
    if (layout.lists == 0 || launch.parameter(2).size() != 16) return false;
    const auto* inverse = launch.read<float>(launch.get<std::uint64_t>(2, 8), 1);
    if (inverse == nullptr) return true;
    bool finite = true;
    for (std::uint64_t block = 0; block < launch.grid()[0]; ++block) {
        const Chunk chunk = chunk_of(launch, layout, block);
        auto* values = launch.write<float>(chunk.addresses[0], chunk.count);
        if (values == nullptr) return true;
        for (std::uint64_t n = 0; n < chunk.count; ++n) {
            finite = finite && std::isfinite(values[n]);
            values[n] *= *inverse;
        }
        launch.cost(static_cast<double>(chunk.count), 8.0 * static_cast<double>(chunk.count));
    }
    if (finite) return true;
    auto* found = launch.write<float>(launch.get<std::uint64_t>(2, 0), 1);
    if (found != nullptr) *found = 1;
    return true;
}

/// amp_update_scale_cuda_kernel: (scale, steps since it grew, found_inf, growth, backoff,
/// interval).
bool update_scale(const NamedLaunch& launch) {
    auto* scale = launch.write<float>(launch.get<std::uint64_t>(0), 1);
    auto* steps = launch.write<std::int32_t>(launch.get<std::uint64_t>(1), 1);
    const auto* found = launch.read<float>(launch.get<std::uint64_t>(2), 1);
    if (scale == nullptr || steps == nullptr || found == nullptr) return true;
    if (*found != 0) {
        *scale = static_cast<float>(static_cast<double>(*scale) * launch.get<double>(4));
        *steps = 0;
    } else if (++*steps == launch.get<std::int32_t>(5)) {
        const auto grown = static_cast<float>(static_cast<double>(*scale) * launch.get<double>(3));
        if (std::isfinite(grown)) *scale = grown;
        *steps = 0;
    }
    return true;
}

/// The step of Adam and AdamW as fused_adam_impl_ has it.
struct Adam {
    double lr, beta1, beta2, weight_decay, eps;
    bool maximize, decoupled;
    double correction1, correction2_root;

    void step(float& param, float grad, float& mean, float& square) const {
        double p = static_cast<double>(param);
        double g = static_cast<double>(maximize ? -grad : grad);
        if (decoupled) {
            p -= lr * weight_decay * p;
        } else {
            g += weight_decay * p;
        }
        mean = static_cast<float>(lerp(static_cast<double>(mean), g, 1 - beta1));
        square = static_cast<float>(beta2 * static_cast<double>(square) + (1 - beta2) * g * g);
        const double denominator = std::sqrt(static_cast<double>(square)) / correction2_root + eps;
        param = static_cast<float>(p - lr / correction1 * static_cast<double>(mean) / denominator);
    }
};

/// (lists, functor, lr pointer, lr, beta1, beta2, weight decay, eps, maximize, grad scale, found
/// inf): parameters, gradients, means and squares.
bool run_adam(const NamedLaunch& launch, bool decoupled) {
    const ListLayout layout = layout_for(launch, 4, Lists::WithSteps);
    if (layout.lists == 0) return false;
    if (const auto found_va = launch.get<std::uint64_t>(10); found_va != 0) {
        const auto* found = launch.read<float>(found_va, 1);
        if (found == nullptr || *found == 1) return true;
    }
    Adam adam{launch.get<double>(3),
              launch.get<double>(4),
              launch.get<double>(5),
              launch.get<double>(6),
              launch.get<double>(7),
              launch.get<std::uint8_t>(8) != 0,
              decoupled,
              1,
              1};
    if (const auto lr_va = launch.get<std::uint64_t>(2); lr_va != 0) {
        const auto* lr = launch.read<float>(lr_va, 1);
        if (lr == nullptr) return true;
        adam.lr = static_cast<double>(*lr);
    }
    double scale = 1;
    const auto scale_va = launch.get<std::uint64_t>(9);
    if (scale_va != 0) {
        const auto* data = launch.read<float>(scale_va, 1);
        if (data == nullptr) return true;
        scale = static_cast<double>(*data);
    }
    for (std::uint64_t block = 0; block < launch.grid()[0]; ++block) {
        const Chunk chunk = chunk_of(launch, layout, block);
        const auto* steps =
            launch.read<float>(launch.get<std::uint64_t>(0, layout.extra + chunk.tensor * 8), 1);
        if (steps == nullptr) return true;
        adam.correction1 = 1 - std::pow(adam.beta1, static_cast<double>(*steps));
        adam.correction2_root = std::sqrt(1 - std::pow(adam.beta2, static_cast<double>(*steps)));
        auto* param = launch.write<float>(chunk.addresses[0], chunk.count);
        const auto* grad = launch.read<float>(chunk.addresses[1], chunk.count);
        auto* mean = launch.write<float>(chunk.addresses[2], chunk.count);
        auto* square = launch.write<float>(chunk.addresses[3], chunk.count);
        auto* unscaled =
            scale_va != 0 ? launch.write<float>(chunk.addresses[1], chunk.count) : nullptr;
        if (param == nullptr || grad == nullptr || mean == nullptr || square == nullptr)
            return true;
        for (std::uint64_t n = 0; n < chunk.count; ++n) {
            const auto g = static_cast<float>(static_cast<double>(grad[n]) / scale);
            adam.step(param[n], g, mean[n], square[n]);
            if (unscaled != nullptr) unscaled[n] = g;
        }
        launch.cost(12.0 * static_cast<double>(chunk.count),
                    28.0 * static_cast<double>(chunk.count));
    }
    return true;
}

/// Of the scalars in a TensorListScalarListMetadata<type, lists>.
std::optional<Lists> scalars_of(std::string_view type) {
    for (const std::string_view narrow : {"float", "int", "unsigned int"})
        if (type == narrow) return Lists::WithScalars;
    for (const std::string_view wide : {"double", "long", "c10::complex<float>"})
        if (type == wide) return Lists::WithWideScalars;
    return std::nullopt;
}

/// By the name of the struct: how many lists, and of which kind. No lists: none that is known.
std::pair<std::size_t, Lists> lists_of(std::string_view type) {
    constexpr std::string_view kStruct = "Metadata<";
    constexpr std::pair<std::size_t, Lists> kUnknown{0, Lists::Plain};
    const std::size_t at = type.find(kStruct);
    if (type.find("TensorList") == std::string_view::npos || at == std::string_view::npos)
        return kUnknown;
    const auto arguments = split_list(inside_bracket(type, at + kStruct.size() - 1));
    if (arguments.empty() || arguments.back().size() != 1) return kUnknown;
    const auto lists = static_cast<std::size_t>(arguments.back()[0] - '0');
    if (lists < 1 || lists > kMostLists) return kUnknown;
    if (arguments.size() > 1) {
        const auto scalars = scalars_of(arguments[0]);
        return scalars ? std::pair{lists, *scalars} : kUnknown;
    }
    return {lists,
            type.find("FusedTensor") != std::string_view::npos ? Lists::WithSteps : Lists::Plain};
}

}  // namespace

bool lists_address(const KernelName& name, std::span<const std::byte> lists, std::uint32_t blocks,
                   std::size_t offset) {
    if (name.base != "multi_tensor_apply_kernel" || name.template_arguments.empty()) return true;
    const auto [count, kind] = lists_of(name.template_arguments[0]);
    const ListLayout layout = count == 0 ? ListLayout{} : layout_for(lists.size(), count, kind);
    if (layout.lists == 0) return true;
    std::size_t used = 0;
    for (std::size_t block = 0; block < std::min<std::size_t>(blocks, layout.blocks); ++block) {
        std::uint16_t tensor = 0;
        std::memcpy(&tensor, lists.data() + layout.block_tensor + block * layout.index_bytes,
                    layout.index_bytes);
        used = std::max<std::size_t>(used, tensor + std::size_t{1});
    }
    if (offset < layout.sizes) return offset / 8 % layout.tensors < used;
    return kind == Lists::WithSteps && offset >= layout.extra && offset < layout.extra + used * 8;
}

NamedKernel find_multi_tensor(const KernelName& name) {
    if (name.base == "amp_update_scale_cuda_kernel") return update_scale;
    const auto& arguments = name.template_arguments;
    if (name.full.find("lpnorm_cleanup<float, (at::native::NormType)2, float, true, float>") !=
        std::string::npos)
        return finish_norms;
    if (name.base != "multi_tensor_apply_kernel" || arguments.size() < 2) return {};
    if (arguments[1].find("FusedAdamMathFunctor<float, 4") != std::string::npos) {
        const bool decoupled = arguments[1].find("(at::native::ADAM_MODE)1") != std::string::npos;
        return [=](const NamedLaunch& launch) { return run_adam(launch, decoupled); };
    }
    if (arguments[1].find("UnaryOpFunctor<float, 1, 1, 0>") != std::string::npos &&
        name.mentions("_amp_foreach_non_finite_check_and_unscale_cuda_"))
        return run_unscale;
    if (arguments[1].find("LpNormFunctor<float, (at::native::NormType)2, float, 1, 1, 0>") !=
            std::string::npos &&
        name.parameters.size() == 4)
        return sum_squares;
    return find_foreach(name);
}

}  // namespace simgpu::torch
