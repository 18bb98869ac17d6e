// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// PyTorch's element-wise functors by name. Where a functor holds values, they lie as its C++
// definition in torch 2.15 orders them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/host_kernels/torch/elementwise_rows.hpp"
#include "simgpu/host_kernels/torch/number_ops.hpp"

namespace simgpu::torch {
namespace {

double relu_like(double x, double low, double high) {
    return std::isnan(x) ? x : std::fmin(std::fmax(x, low), high);
}

double gelu_tanh(double x) {
    constexpr double kBeta = 0.79788456080286535588;  // sqrt(2 / pi)
    return 0.5 * x * (1 + std::tanh(kBeta * (x + 0.044715 * x * x * x)));
}

double gelu_tanh_slope(double x) {
    constexpr double kBeta = 0.79788456080286535588;
    const double t = std::tanh(kBeta * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kBeta * (1 + 3 * 0.044715 * x * x);
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }

double gelu_slope(double x) {
    constexpr double kDensity = 0.39894228040143267794;  // 1 / sqrt(2 pi)
    return 0.5 * (1 + std::erf(x * M_SQRT1_2)) + x * kDensity * std::exp(-0.5 * x * x);
}

template <typename F>
void on_tensors(const Elements& e) {
    if (e.all_integers())
        for_each_integer<2>(e, F{});
    else
        for_each_element<2>(e, F{});
}

/// With the functor's one value on the left, or on the right. The operation itself comes first, an
/// empty object, or an enumerator.
template <typename F, bool Left>
void with_scalar(const Elements& e) {
    const ScalarType type = e.functor[1];
    const std::size_t at = size_of(calculating(type));
    if (e.all_integers() && at + size_of(type) <= e.state.size()) {
        const std::int64_t held = load_integer(type, e.state.data() + at);
        for_each_integer<1>(e,
                            [held](std::int64_t x) { return Left ? F{}(held, x) : F{}(x, held); });
        return;
    }
    const double held = value(e, 0, type, at);
    for_each_element<1>(e, [held](double x) { return Left ? F{}(held, x) : F{}(x, held); });
}

template <double (*F)(double)>
void times_slope(const Elements& e) {
    for_each_element<2>(e, [](double grad, double x) { return grad * F(x); });
}

void fill(const Elements& e) {
    const double held = value(e, 0);
    for_each_element<0>(e, [held] { return held; });
}

void copy(const Elements& e) {
    if (e.all_integers()) return for_each_integer<1>(e, [](std::int64_t x) { return x; });
    for_each_element<1>(e, [](double x) { return x; });
}

void add_scaled(const Elements& e) {
    if (e.all_integers()) {
        const std::int64_t times = load_integer(e.functor[0], e.state.data());
        for_each_integer<2>(e, [times](std::int64_t a, std::int64_t b) { return a + times * b; });
        return;
    }
    const double alpha = value(e, 0);
    for_each_element<2>(e, [alpha](double a, double b) { return a + alpha * b; });
}

/// The functor's two values (other, times) in a sum of whole numbers.
template <bool ToOther>
void add_whole(const Elements& e) {
    const std::uint32_t width = size_of(e.functor[0]);
    const std::int64_t other = load_integer(e.functor[0], e.state.data());
    const std::int64_t times = load_integer(e.functor[0], e.state.data() + width);
    for_each_integer<1>(
        e, [=](std::int64_t x) { return ToOther ? other + times * x : x + times * other; });
}

void add_scalar(const Elements& e) {
    if (e.all_integers()) return add_whole<false>(e);
    const double other = value(e, 0);
    const double alpha = value(e, 1);
    for_each_element<1>(e, [=](double x) { return x + alpha * other; });
}

void add_to_scalar(const Elements& e) {
    if (e.all_integers()) return add_whole<true>(e);
    const double other = value(e, 0);
    const double alpha = value(e, 1);
    for_each_element<1>(e, [=](double x) { return other + alpha * x; });
}

/// The lambda holds which limits there are (least, most, both), then two; one alone is the first.
void clamp(const Elements& e) {
    constexpr std::int32_t kLeast = 0;
    constexpr std::int32_t kMost = 1;
    const auto limits = e.held<std::int32_t>(0);
    const ScalarType type = e.functor[0];
    const std::size_t width = size_of(calculating(type));
    const std::size_t at = width < 4 ? 4 : width;
    const double first = value(e, 0, type, at);
    const double low = limits == kMost ? -HUGE_VAL : first;
    const double high = limits == kMost    ? first
                        : limits == kLeast ? HUGE_VAL
                                           : value(e, 1, type, at);
    for_each_element<1>(e, [=](double x) { return relu_like(x, low, high); });
}

/// The lambda holds (threshold, value) as elements: also the gradient of ReLU.
void threshold(const Elements& e) {
    const ScalarType type = e.functor[0];
    const std::size_t width = size_of(type);
    if (2 * width > e.state.size()) return;
    const double limit = load(type, e.state.data());
    const double held = load(type, e.state.data() + width);
    for_each_element<2>(e, [=](double x, double other) { return x <= limit ? held : other; });
}

void masked_fill(const Elements& e) {
    const double held = value(e, 0);
    for_each_element<2>(e, [held](double x, double mask) { return mask != 0 ? held : x; });
}

void where(const Elements& e) {
    if (e.types[0] != e.types[2] || e.types[0] != e.types[3]) {
        for_each_element<3>(e, [](double mask, double a, double b) { return mask != 0 ? a : b; });
        return;
    }
    // They may be anything, taken for numbers of as many bits.
    const std::uint32_t width = size_of(e.types[0]);
    e.offsets.for_each(e.count, [&](std::uint64_t, const auto& at) {
        const std::size_t from = load(e.types[1], e.data[1] + at[1]) != 0 ? 2 : 3;
        std::memmove(e.data[0] + at[0], e.data[from] + at[from], width);
    });
}

void addcmul(const Elements& e) {
    const double factor = value(e, 0);
    for_each_element<3>(e, [factor](double x, double a, double b) { return x + factor * a * b; });
}

void addcdiv(const Elements& e) {
    const double factor = value(e, 0);
    for_each_element<3>(e, [factor](double x, double a, double b) { return x + factor * (a / b); });
}

void lerp_scalar(const Elements& e) {
    const double weight = value(e, 0);
    for_each_element<2>(e, [weight](double a, double b) {
        return std::fabs(weight) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight);
    });
}

template <bool Equality, typename T>
T compare(std::int32_t operation, T a, T b) {
    if (Equality) return operation == 0 ? a == b : a != b;
    switch (operation) {
        case 0:
            return a >= b;
        case 1:
            return a > b;
        case 2:
            return a <= b;
        default:
            return a < b;
    }
}

template <bool Equality>
void compare_tensors(const Elements& e) {
    const auto operation = e.held<std::int32_t>(0);
    const auto on = [=](auto a, auto b) { return compare<Equality>(operation, a, b); };
    if (e.all_integers())
        for_each_integer<2>(e, on);
    else
        for_each_element<2>(e, on);
}

/// An enumerator that says which comparison, then the value.
template <bool Equality, bool Left>
void compare_scalar(const Elements& e) {
    const auto operation = e.held<std::int32_t>(0);
    const ScalarType type = e.functor[1];
    const std::size_t width = size_of(calculating(type));
    const std::size_t at = width < 4 ? 4 : width;
    if (e.all_integers() && at + width <= e.state.size()) {
        const std::int64_t held = load_integer(type, e.state.data() + at);
        for_each_integer<1>(e, [=](std::int64_t x) {
            return Left ? compare<Equality>(operation, held, x)
                        : compare<Equality>(operation, x, held);
        });
        return;
    }
    const double held = value(e, 0, type, at);
    for_each_element<1>(e, [=](double x) {
        return Left ? compare<Equality>(operation, held, x) : compare<Equality>(operation, x, held);
    });
}

double negate(double x) { return -x; }
void negate_all(const Elements& e) {
    if (e.all_integers())
        for_each_integer<1>(e, [](std::int64_t x) { return -x; });
    else
        for_each_element<1>(e, negate);
}
double reciprocal(double x) { return 1 / x; }
double inverse_root(double x) { return 1 / std::sqrt(x); }
double no(double x) { return x == 0; }
double sign(double x) { return (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0); }
double square(double x) { return x * x; }
double cube(double x) { return x * x * x; }
double inverse_square(double x) { return 1 / (x * x); }
double power(double x, double y) { return std::pow(x, y); }

void bits_not(const Elements& e) {
    if (e.types[1] == ScalarType::Bool)
        for_each_element<1>(e, no);
    else
        for_each_integer<1>(e, [](std::int64_t x) { return ~x; });
}

void power_scalar(const Elements& e) {
    const double exponent = value(e, 0);
    for_each_element<1>(e, [exponent](double x) { return std::pow(x, exponent); });
}

void clamp_tensors(const Elements& e) {
    for_each_element<3>(e, [](double x, double low, double high) {
        if (std::isnan(x)) return x;
        if (std::isnan(low) || std::isnan(high)) return low + high;
        return std::fmin(std::fmax(x, low), high);
    });
}

void lerp_tensor(const Elements& e) {
    for_each_element<3>(e, [](double a, double b, double weight) {
        return std::fabs(weight) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight);
    });
}

/// (for NaN, for infinity, for its negative)
void replace_infinities(const Elements& e) {
    const double nan = value(e, 0);
    const double most = value(e, 1);
    const double least = value(e, 2);
    for_each_element<1>(e, [=](double x) {
        if (std::isnan(x)) return nan;
        return !std::isinf(x) ? x : x > 0 ? most : least;
    });
}

/// (address of the source): its next element for each one that the mask chooses. The third input
/// counts them.
void masked_scatter(const Elements& e) {
    const auto source = e.held<std::uint64_t>(0);
    const std::uint32_t width = size_of(e.types[0]);
    e.offsets.for_each(e.count, [&](std::uint64_t, const auto& at) {
        const std::byte* from = e.data[1] + at[1];
        if (load(e.types[2], e.data[2] + at[2]) != 0) {
            const auto place = static_cast<std::uint64_t>(load(e.types[3], e.data[3] + at[3]));
            from = e.launch->read<std::byte>(source + place * width, width);
        }
        if (from != nullptr) std::memmove(e.data[0] + at[0], from, width);
    });
}

/// The operation inside BinaryFunctor, AUnaryFunctor and BUnaryFunctor.
struct BinaryRow {
    std::string_view name;
    void (*tensors)(const Elements&);
    void (*scalar_left)(const Elements&);
    void (*scalar_right)(const Elements&);
};

template <typename F>
constexpr BinaryRow binary_row(std::string_view name) {
    return {name, on_tensors<F>, with_scalar<F, true>, with_scalar<F, false>};
}

constexpr std::array kBinary{
    binary_row<Multiply>("MulFunctor<"),
    binary_row<Divide>("DivFunctor<"),
    BinaryRow{"CompareFunctor<", compare_tensors<false>, compare_scalar<false, true>,
              compare_scalar<false, false>},
    BinaryRow{"CompareEqFunctor<", compare_tensors<true>, compare_scalar<true, true>,
              compare_scalar<true, false>},
    binary_row<OnBits<std::bit_and<>>>("BitwiseAndFunctor<"),
    binary_row<OnBits<std::bit_or<>>>("BitwiseOrFunctor<"),
    binary_row<OnBits<std::bit_xor<>>>("BitwiseXorFunctor<"),
    binary_row<OnBits<ShiftLeft>>("::lshift_kernel_cuda"),
    binary_row<OnBits<ShiftRight>>("::rshift_kernel_cuda"),
    binary_row<DivideDown>("::div_floor_kernel_cuda"),
    binary_row<DivideToZero>("::div_trunc_kernel_cuda"),
    binary_row<Remainder>("::remainder_kernel_cuda"),
    binary_row<FloatRemainder>("::fmod_kernel_cuda"),
    binary_row<Greater>("::maximum_kernel_cuda"),
    binary_row<Less>("::minimum_kernel_cuda"),
    binary_row<Floating<GreaterNumber>>("::fmax_kernel_cuda"),
    binary_row<Floating<LessNumber>>("::fmin_kernel_cuda"),
    binary_row<Floating<ArcTangent>>("::atan2_kernel_cuda"),
    binary_row<Floating<TimesLog>>("::xlogy_kernel_cuda"),
    binary_row<Floating<Both>>("::logical_and_kernel_cuda"),
    binary_row<Floating<Either>>("::logical_or_kernel_cuda"),
    binary_row<Floating<OneOf>>("::logical_xor_kernel_cuda"),
};

constexpr std::array kRows{
    ElementwiseRow{"CUDAFunctor_add<", "", 2, Result::AsInputs, add_scaled},
    ElementwiseRow{"CUDAFunctorOnSelf_add<", "", 1, Result::AsInputs, add_scalar},
    ElementwiseRow{"CUDAFunctorOnOther_add<", "", 1, Result::AsInputs, add_to_scalar},
    ElementwiseRow{"AbsFunctor<", "", 1, Result::AsInputs, unary<std::fabs>},
    ElementwiseRow{"FillFunctor<", "", 0, Result::AsInputs, fill},
    ElementwiseRow{"direct_copy_kernel_cuda", "", 1, Result::AsInputs, copy},
    ElementwiseRow{"GeluCUDAKernelImpl", "GeluType)::{lambda()#1}", 1, Result::AsInputs,
                   unary<gelu_tanh>},
    ElementwiseRow{"GeluCUDAKernelImpl", "GeluType)::{lambda()#2}", 1, Result::AsInputs,
                   unary<gelu>},
    ElementwiseRow{"GeluBackwardCUDAKernelImpl", "GeluType)::{lambda()#1}", 2, Result::AsInputs,
                   times_slope<gelu_tanh_slope>},
    ElementwiseRow{"GeluBackwardCUDAKernelImpl", "GeluType)::{lambda()#2}", 2, Result::AsInputs,
                   times_slope<gelu_slope>},
    ElementwiseRow{"launch_clamp_scalar", "", 1, Result::AsInputs, clamp},
    ElementwiseRow{"threshold_kernel_impl", "", 2, Result::AsInputs, threshold},
    ElementwiseRow{"masked_fill_kernel", "", 2, Result::AsFirst, masked_fill},
    ElementwiseRow{"where_kernel_impl", "", 3, Result::AsInputs, where},
    ElementwiseRow{"addcmul_cuda", "", 3, Result::AsInputs, addcmul},
    ElementwiseRow{"addcdiv_cuda", "", 3, Result::AsInputs, addcdiv},
    ElementwiseRow{"lerp_scalar_kernel", "", 2, Result::AsInputs, lerp_scalar},
    ElementwiseRow{"::rsqrt_kernel_cuda", "", 1, Result::AsInputs, unary<inverse_root>},
    ElementwiseRow{"::sqrt_kernel_cuda", "", 1, Result::AsInputs, unary<std::sqrt>},
    ElementwiseRow{"::exp_kernel_cuda", "", 1, Result::AsInputs, unary<std::exp>},
    ElementwiseRow{"::log_kernel_cuda", "", 1, Result::AsInputs, unary<std::log>},
    ElementwiseRow{"::tanh_kernel_cuda", "", 1, Result::AsInputs, unary<std::tanh>},
    ElementwiseRow{"::sin_kernel_cuda", "", 1, Result::AsInputs, unary<std::sin>},
    ElementwiseRow{"::cos_kernel_cuda", "", 1, Result::AsInputs, unary<std::cos>},
    ElementwiseRow{"::sigmoid_kernel_cuda", "", 1, Result::AsInputs, unary<sigmoid>},
    ElementwiseRow{"::neg_kernel_cuda", "", 1, Result::AsInputs, negate_all},
    ElementwiseRow{"::abs_kernel_cuda", "", 1, Result::AsInputs, unary<std::fabs>},
    ElementwiseRow{"::reciprocal_kernel_cuda", "", 1, Result::AsInputs, unary<reciprocal>},
    ElementwiseRow{"compare_scalar_kernel<", "::{lambda(", 1, Result::Bool,
                   compare_scalar<false, false>},
    ElementwiseRow{"logical_not_kernel_cuda", "", 1, Result::Bool, unary<no>},
    ElementwiseRow{"::CompareFunctor<", "", 2, Result::Bool, compare_tensors<false>},
    ElementwiseRow{"::CompareEqFunctor<", "", 2, Result::Bool, compare_tensors<true>},
    ElementwiseRow{"::bitwise_not_kernel_cuda", "", 1, Result::AsInputs, bits_not},
    ElementwiseRow{"::floor_kernel_cuda", "", 1, Result::AsInputs, unary<std::floor>},
    ElementwiseRow{"::ceil_kernel_cuda", "", 1, Result::AsInputs, unary<std::ceil>},
    ElementwiseRow{"::trunc_kernel_cuda", "", 1, Result::AsInputs, unary<std::trunc>},
    ElementwiseRow{"::round_kernel_cuda", "", 1, Result::AsInputs, unary<std::nearbyint>},
    ElementwiseRow{"::sign_kernel_cuda", "", 1, Result::AsInputs, unary<sign>},
    ElementwiseRow{"::log2_kernel_cuda", "", 1, Result::AsInputs, unary<std::log2>},
    ElementwiseRow{"::log10_kernel_cuda", "", 1, Result::AsInputs, unary<std::log10>},
    ElementwiseRow{"::log1p_kernel_cuda", "", 1, Result::AsInputs, unary<std::log1p>},
    ElementwiseRow{"::expm1_kernel_cuda", "", 1, Result::AsInputs, unary<std::expm1>},
    ElementwiseRow{"::erf_kernel_cuda", "", 1, Result::AsInputs, unary<std::erf>},
    ElementwiseRow{"pow_tensor_scalar_kernel_impl", ")#1}", 1, Result::AsInputs, unary<square>},
    ElementwiseRow{"pow_tensor_scalar_kernel_impl", ")#2}", 1, Result::AsInputs, unary<cube>},
    ElementwiseRow{"pow_tensor_scalar_kernel_impl", ")#3}", 1, Result::AsInputs,
                   unary<inverse_square>},
    ElementwiseRow{"pow_tensor_scalar_kernel_impl", ")#4}", 1, Result::AsInputs, power_scalar},
    ElementwiseRow{"::pow_tensor_tensor_kernel", "", 2, Result::AsInputs, binary<power>},
    ElementwiseRow{"::clamp_kernel_impl", "", 3, Result::AsInputs, clamp_tensors},
    ElementwiseRow{"::lerp_tensor_kernel", "", 3, Result::AsInputs, lerp_tensor},
    ElementwiseRow{"::nan_to_num_kernel_cuda", "", 1, Result::AsInputs, replace_infinities},
    ElementwiseRow{"launch_masked_scatter_kernel", "", 3, Result::AsFirst, masked_scatter},
};

/// The types of the elements, from the functor's template arguments or its lambda's parameters.
bool set_types(ElementwiseOp& op, std::vector<std::string_view> names, Result result) {
    if (names.empty()) return false;
    for (std::size_t i = 0; i < op.inputs; ++i) {
        op.types[i + 1] = scalar_type(names[i < names.size() ? i : names.size() - 1]);
        if (op.types[i + 1] == ScalarType::Unknown) return false;
    }
    const std::string_view out = result == Result::AsFirst ? names.front() : names.back();
    op.types[0] = result == Result::Bool ? ScalarType::Bool : scalar_type(out);
    return op.types[0] != ScalarType::Unknown;
}

/// The last lambda's parameters: {lambda(float, bool)#1}.
std::vector<std::string_view> lambda_parameters(std::string_view text) {
    const std::size_t at = text.rfind("{lambda(");
    return at == std::string_view::npos ? std::vector<std::string_view>()
                                        : split_list(inside_bracket(text, at + 7));
}

ElementwiseOp find_binary(std::string_view text) {
    const bool left = text.find("AUnaryFunctor<") != std::string_view::npos;
    const bool right = text.find("BUnaryFunctor<") != std::string_view::npos;
    const bool both_tensors = text.find("BinaryFunctor<") != std::string_view::npos;
    if (!left && !right && !both_tensors) return {};
    // <first, second, result, operation>
    const auto types = split_list(inside_bracket(text, text.find('<')));
    if (types.size() < 4) return {};
    for (const BinaryRow& row : kBinary) {
        if (types[3].find(row.name) == std::string_view::npos) continue;
        ElementwiseOp op;
        op.inputs = both_tensors ? 2 : 1;
        op.types[0] = scalar_type(types[2]);
        op.types[1] = scalar_type(types[left ? 1 : 0]);
        op.types[2] = scalar_type(types[1]);
        op.empty = both_tensors && types[3].find("Compare") == std::string_view::npos;
        op.apply = both_tensors ? row.tensors : left ? row.scalar_left : row.scalar_right;
        for (std::size_t i = 0; i <= op.inputs; ++i) {
            if (op.types[i] == ScalarType::Unknown) return {};
        }
        return op;
    }
    return {};
}

/// converting_copy_kernel_cuda<from, to>.
ElementwiseOp find_conversion(std::string_view text) {
    constexpr std::string_view kName = "converting_copy_kernel_cuda<";
    const std::size_t at = text.find(kName);
    if (at == std::string_view::npos) return {};
    const auto types = split_list(inside_bracket(text, at + kName.size() - 1));
    if (types.size() != 2) return {};
    ElementwiseOp op;
    op.inputs = 1;
    op.types[0] = scalar_type(types[1]);
    op.types[1] = scalar_type(types[0]);
    const bool known = op.types[0] != ScalarType::Unknown && op.types[1] != ScalarType::Unknown;
    if (known) op.apply = copy;
    return op;
}

}  // namespace

ElementwiseOp find_elementwise_op(std::string_view text) {
    ElementwiseOp op = find_complex_op(text);
    if (op.apply != nullptr) return op;
    op = find_binary(text);
    if (op.apply != nullptr) return op;
    op = find_conversion(text);
    if (op.apply != nullptr) return op;
    for (const auto rows : {std::span<const ElementwiseRow>(kRows), activation_rows()}) {
        for (const ElementwiseRow& row : rows) {
            if (text.find(row.name) == std::string_view::npos ||
                text.find(row.also) == std::string_view::npos)
                continue;
            op.inputs = row.inputs;
            const bool lambda = row.name.back() != '<';
            const auto names =
                lambda
                    ? lambda_parameters(text)
                    : split_list(inside_bracket(text, text.find(row.name) + row.name.size() - 1));
            if (set_types(op, names, row.result)) op.apply = row.apply;
            op.empty = row.apply == copy;
            return op;
        }
    }
    return {};
}

}  // namespace simgpu::torch
