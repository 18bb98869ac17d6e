// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// PyTorch's element-wise functors by name. Where a functor holds values, they lie as its C++
// definition in torch 2.15 orders them.

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/host_kernels/torch/elementwise.hpp"

namespace simgpu::torch {
namespace {

/// The type in which a functor for elements of `type` calculates, and holds its values.
ScalarType calculating(ScalarType type) {
    return type == ScalarType::Half || type == ScalarType::BFloat16 ? ScalarType::Float : type;
}

/// The functor's value number `index`, values of one type in a row.
double value(const Elements& e, std::size_t index, ScalarType type, std::size_t first = 0) {
    const ScalarType held = calculating(type);
    const std::size_t at = first + index * size_of(held);
    return at + size_of(held) <= e.state.size() ? load(held, e.state.data() + at) : 0;
}

double value(const Elements& e, std::size_t index) { return value(e, index, e.types[0]); }

double multiply(double a, double b) { return a * b; }
double divide(double a, double b) { return a / b; }

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

template <double (*F)(double)>
void unary(const Elements& e) {
    for_each_element<1>(e, F);
}

template <double (*F)(double, double)>
void binary(const Elements& e) {
    for_each_element<2>(e, F);
}

/// With the functor's one value on the left, or on the right. The operation itself comes first, an
/// empty object, or an enumerator.
template <double (*F)(double, double), bool Left>
void with_scalar(const Elements& e) {
    const ScalarType type = e.types[1];
    const double held = value(e, 0, type, size_of(calculating(type)));
    for_each_element<1>(e, [held](double x) { return Left ? F(held, x) : F(x, held); });
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
    for_each_element<1>(e, [](double x) { return x; });
}

void add_scaled(const Elements& e) {
    const double alpha = value(e, 0);
    for_each_element<2>(e, [alpha](double a, double b) { return a + alpha * b; });
}

void add_scalar(const Elements& e) {
    const double other = value(e, 0);
    const double alpha = value(e, 1);
    for_each_element<1>(e, [=](double x) { return x + alpha * other; });
}

void add_to_scalar(const Elements& e) {
    const double other = value(e, 0);
    const double alpha = value(e, 1);
    for_each_element<1>(e, [=](double x) { return other + alpha * x; });
}

/// The lambda holds which limits there are (least, most, both), then two; one alone is the first.
void clamp(const Elements& e) {
    constexpr std::int32_t kLeast = 0;
    constexpr std::int32_t kMost = 1;
    const auto limits = e.held<std::int32_t>(0);
    const ScalarType type = e.types[0];
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
    const ScalarType type = e.types[0];
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
    for_each_element<3>(e, [](double mask, double a, double b) { return mask != 0 ? a : b; });
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

template <bool Equality>
double compare(std::int32_t operation, double a, double b) {
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
    for_each_element<2>(e, [=](double a, double b) { return compare<Equality>(operation, a, b); });
}

/// An enumerator that says which comparison, then the value.
template <bool Equality, bool Left>
void compare_scalar(const Elements& e) {
    const auto operation = e.held<std::int32_t>(0);
    const ScalarType type = e.types[1];
    const std::size_t width = size_of(calculating(type));
    const double held = value(e, 0, type, width < 4 ? 4 : width);
    for_each_element<1>(e, [=](double x) {
        return Left ? compare<Equality>(operation, held, x) : compare<Equality>(operation, x, held);
    });
}

double bits_and(double a, double b) {
    return static_cast<double>(static_cast<std::int64_t>(a) & static_cast<std::int64_t>(b));
}
double bits_or(double a, double b) {
    return static_cast<double>(static_cast<std::int64_t>(a) | static_cast<std::int64_t>(b));
}
double negate(double x) { return -x; }
double reciprocal(double x) { return 1 / x; }
double inverse_root(double x) { return 1 / std::sqrt(x); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double no(double x) { return x == 0; }

/// The operation inside BinaryFunctor, AUnaryFunctor and BUnaryFunctor.
struct BinaryRow {
    std::string_view name;
    void (*tensors)(const Elements&);
    void (*scalar_left)(const Elements&);
    void (*scalar_right)(const Elements&);
};

template <double (*F)(double, double)>
constexpr BinaryRow binary_row(std::string_view name) {
    return {name, binary<F>, with_scalar<F, true>, with_scalar<F, false>};
}

constexpr std::array kBinary{
    binary_row<multiply>("MulFunctor<"),
    binary_row<divide>("DivFunctor<"),
    BinaryRow{"CompareFunctor<", compare_tensors<false>, compare_scalar<false, true>,
              compare_scalar<false, false>},
    BinaryRow{"CompareEqFunctor<", compare_tensors<true>, compare_scalar<true, true>,
              compare_scalar<true, false>},
    binary_row<bits_and>("BitwiseAndFunctor<"),
    binary_row<bits_or>("BitwiseOrFunctor<"),
};

/// Of the last input's type, of the first one's, or a truth value.
enum class Result : std::uint8_t { AsInputs, AsFirst, Bool };

struct Row {
    std::string_view name;
    /// Something else that the name must say, where the first does not tell apart.
    std::string_view also;
    std::size_t inputs;
    Result result;
    void (*apply)(const Elements&);
};

constexpr std::array kRows{
    Row{"CUDAFunctor_add<", "", 2, Result::AsInputs, add_scaled},
    Row{"CUDAFunctorOnSelf_add<", "", 1, Result::AsInputs, add_scalar},
    Row{"CUDAFunctorOnOther_add<", "", 1, Result::AsInputs, add_to_scalar},
    Row{"AbsFunctor<", "", 1, Result::AsInputs, unary<std::fabs>},
    Row{"FillFunctor<", "", 0, Result::AsInputs, fill},
    Row{"direct_copy_kernel_cuda", "", 1, Result::AsInputs, copy},
    Row{"GeluCUDAKernelImpl", "GeluType)::{lambda()#1}", 1, Result::AsInputs, unary<gelu_tanh>},
    Row{"GeluCUDAKernelImpl", "GeluType)::{lambda()#2}", 1, Result::AsInputs, unary<gelu>},
    Row{"GeluBackwardCUDAKernelImpl", "GeluType)::{lambda()#1}", 2, Result::AsInputs,
        times_slope<gelu_tanh_slope>},
    Row{"GeluBackwardCUDAKernelImpl", "GeluType)::{lambda()#2}", 2, Result::AsInputs,
        times_slope<gelu_slope>},
    Row{"launch_clamp_scalar", "", 1, Result::AsInputs, clamp},
    Row{"threshold_kernel_impl", "", 2, Result::AsInputs, threshold},
    Row{"masked_fill_kernel", "", 2, Result::AsFirst, masked_fill},
    Row{"where_kernel_impl", "", 3, Result::AsInputs, where},
    Row{"addcmul_cuda", "", 3, Result::AsInputs, addcmul},
    Row{"addcdiv_cuda", "", 3, Result::AsInputs, addcdiv},
    Row{"lerp_scalar_kernel", "", 2, Result::AsInputs, lerp_scalar},
    Row{"rsqrt_kernel_cuda", "", 1, Result::AsInputs, unary<inverse_root>},
    Row{"sqrt_kernel_cuda", "", 1, Result::AsInputs, unary<std::sqrt>},
    Row{"exp_kernel_cuda", "", 1, Result::AsInputs, unary<std::exp>},
    Row{"log_kernel_cuda", "", 1, Result::AsInputs, unary<std::log>},
    Row{"tanh_kernel_cuda", "", 1, Result::AsInputs, unary<std::tanh>},
    Row{"sin_kernel_cuda", "", 1, Result::AsInputs, unary<std::sin>},
    Row{"cos_kernel_cuda", "", 1, Result::AsInputs, unary<std::cos>},
    Row{"sigmoid_kernel_cuda", "", 1, Result::AsInputs, unary<sigmoid>},
    Row{"neg_kernel_cuda", "", 1, Result::AsInputs, unary<negate>},
    Row{"abs_kernel_cuda", "", 1, Result::AsInputs, unary<std::fabs>},
    Row{"reciprocal_kernel_cuda", "", 1, Result::AsInputs, unary<reciprocal>},
    Row{"compare_scalar_kernel<", "::{lambda(", 1, Result::Bool, compare_scalar<false, false>},
    Row{"logical_not_kernel_cuda", "", 1, Result::Bool, unary<no>},
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
    ElementwiseOp op = find_binary(text);
    if (op.apply != nullptr) return op;
    op = find_conversion(text);
    if (op.apply != nullptr) return op;
    for (const Row& row : kRows) {
        if (text.find(row.name) == std::string_view::npos ||
            text.find(row.also) == std::string_view::npos)
            continue;
        op.inputs = row.inputs;
        const bool lambda = row.name.back() != '<';
        const auto names =
            lambda ? lambda_parameters(text)
                   : split_list(inside_bracket(text, text.find(row.name) + row.name.size() - 1));
        if (set_types(op, names, row.result)) op.apply = row.apply;
        return op;
    }
    return {};
}

}  // namespace simgpu::torch
