// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// PyTorch's kernels by name, on parameters laid out as its launches have them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "tests/simgpu/host_kernels/host_launch.hpp"

namespace simgpu {
namespace {

TEST(TorchKernels, AddScalesItsSecondTensor) {
    const std::vector<float> a{1, 2, 3};
    const std::vector<float> b{10, 20, 30};
    std::vector<float> out(3);
    ASSERT_TRUE(
        run("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5array"
            "IPcLm3EEEEviT0_T1_",
            {value(3), value(2.0F), pointers({out.data(), a.data(), b.data()})}));
    EXPECT_EQ(out, (std::vector<float>{21, 42, 63}));
}

TEST(TorchKernels, ScalarsStandOnTheirSide) {
    const std::vector<float> a{1, 2, 4};
    std::vector<float> out(3);
    // {operation, scalar}
    Bytes functor(8);
    put(functor, 4, 8.0F);
    ASSERT_TRUE(
        run("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15bina"
            "ry_internal10DivFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_",
            {value(3), functor, pointers({out.data(), a.data()})}));
    EXPECT_EQ(out, (std::vector<float>{8, 4, 2}));
    ASSERT_TRUE(
        run("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BUnaryFunctorIfffNS0_15bina"
            "ry_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_",
            {value(3), functor, pointers({out.data(), a.data()})}));
    EXPECT_EQ(out, (std::vector<float>{8, 16, 32}));
}

TEST(TorchKernels, ThresholdGivesTheGradientOfRelu) {
    const std::vector<float> result{0, 2, 0, 4};
    const std::vector<float> grad{1, 2, 3, 4};
    std::vector<float> out(4);
    Bytes functor(8);  // {threshold, value}
    ASSERT_TRUE(
        run("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIfffZNS0_21thre"
            "shold_kernel_implIfEEvRNS_18TensorIteratorBaseET_S6_EUlffE_EESt5arrayIPcLm3EELb0EEEvi"
            "T0_T1_",
            {value(4), functor, pointers({out.data(), result.data(), grad.data()})}));
    EXPECT_EQ(out, (std::vector<float>{0, 2, 0, 4}));
}

TEST(TorchKernels, ClampHasOneLimitOrBoth) {
    const std::vector<float> in{-2, -1, 0, 1, 2};
    std::vector<float> out(5);
    const auto clamped = [&](std::int32_t limits) {
        Bytes functor;  // {which limits, first, second}
        put(functor, 0, limits);
        put(functor, 4, -1.0F);
        put(functor, 8, 1.5F);
        EXPECT_TRUE(
            run("void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
                "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, "
                "c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
                "const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, "
                "2ul> >(int, at::native::(anonymous namespace)::launch_clamp_scalar, "
                "std::array<char*, 2ul>)",
                {value(5), functor, pointers({out.data(), in.data()})}));
        return out;
    };
    EXPECT_EQ(clamped(0), (std::vector<float>{-1, -1, 0, 1, 2}));
    EXPECT_EQ(clamped(1), (std::vector<float>{-2, -1, -1, -1, -1}));
    EXPECT_EQ(clamped(2), (std::vector<float>{-1, -1, 0, 1, 1.5}));
}

TEST(TorchKernels, StridedFormsFollowTheirOffsets) {
    // A row added to a transposed matrix.
    const std::vector<float> matrix{1, 2, 3, 4, 5, 6};
    const std::vector<float> row{10, 20};
    std::vector<float> out(6);
    Bytes lambda;
    put_offsets(lambda, 0, {2, 3}, {{4, 12, 4}, {8, 4, 0}}, 3);
    const std::size_t data = (lambda.size() + 7) / 8 * 8;
    put(lambda, data, out.data());
    put(lambda, data + 8, matrix.data());
    put(lambda, data + 16, row.data());
    put(lambda, data + 24, 1.0F);
    ASSERT_TRUE(
        run("_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_15CU"
            "DAFunctor_addIfEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_",
            {value(6), lambda}));
    EXPECT_EQ(out, (std::vector<float>{11, 24, 12, 25, 13, 26}));
}

TEST(TorchKernels, MasksFillWhatIsOfAnotherType) {
    const std::vector<float> in{1, -2, 3};
    const std::array<bool, 3> mask{false, true, false};
    std::vector<float> out(3);
    ASSERT_TRUE(
        run("void at::native::vectorized_elementwise_kernel<4, "
            "at::native::masked_fill_kernel(at::TensorIterator&)::{lambda(float, bool)#1}, "
            "std::array<char*, 3ul>, false>(int)",
            {value(3), value(7.0F), pointers({out.data(), in.data(), mask.data()})}));
    EXPECT_EQ(out, (std::vector<float>{1, 7, 3}));
}

TEST(TorchKernels, ComparesWithANumber) {
    const std::vector<float> in{1, -2, 3};
    std::array<bool, 3> out{};
    // Greater than, and the number.
    Bytes state = value(1);
    put(state, 4, 0.5F);
    ASSERT_TRUE(
        run("void at::native::vectorized_elementwise_kernel<4, "
            "at::native::compare_scalar_kernel<float>(at::TensorIteratorBase&)::"
            "{lambda(float)#1}, std::array<char*, 2ul>, false>(int)",
            {value(3), state, pointers({out.data(), in.data()})}));
    EXPECT_EQ(out, (std::array<bool, 3>{true, false, true}));
}

TEST(TorchKernels, ArangeCountsInTheTypeThatItsLambdaIsNumberedBy) {
    const auto range = [](int number) {
        return "void elementwise_kernel_with_index<int, at::native::arange_cuda_out(at::Tensor&)::"
               "{lambda()#1}::operator()() const::{lambda()#" +
               std::to_string(number) + "}::operator()() const::{lambda(long)#1}>(int)";
    };
    std::vector<std::int64_t> longs(3);
    Bytes steps(16);
    put(steps, 0, std::int64_t{5});
    put(steps, 8, std::int64_t{-2});
    ASSERT_TRUE(run(range(4).c_str(), {value(3), steps, value(longs.data())}));
    EXPECT_EQ(longs, (std::vector<std::int64_t>{5, 3, 1}));
    std::vector<float> floats(3);
    put(steps, 0, 0.5F);
    put(steps, 4, 0.25F);
    ASSERT_TRUE(run(range(7).c_str(), {value(3), steps, value(floats.data())}));
    EXPECT_EQ(floats, (std::vector<float>{0.5F, 0.75F, 1}));
}

TEST(TorchKernels, FindsAndCountsWhatIsNotZero) {
    const std::vector<float> in{0, 2, 0, -1};
    std::int32_t count = 0;
    const std::string flags = "transform_iterator<NonZeroOp<float>, float const*>";
    Bytes iterator(16);
    put(iterator, 0, in.data());
    ASSERT_TRUE(run(("void cub::DeviceReduceSingleTileKernel<policy_hub<int, unsigned long long, "
                     "cuda::std::__4::plus<void> >::Policy1000, " +
                     flags + ", int*>(" + flags + ", int*)")
                        .c_str(),
                    {iterator, value(&count), value(std::uint64_t{4}), Bytes(1), value(0)}));
    EXPECT_EQ(count, 2);
    std::vector<std::int64_t> places(2);
    ASSERT_TRUE(
        run(("void cub::DeviceSelectSweepKernel<long, " + flags + ">(" + flags + ")").c_str(),
            {value(std::int64_t{0}), iterator, value(places.data()), value(&count),
             value(std::uint64_t{0}), Bytes(1), Bytes(1), value(4), value(1)}));
    EXPECT_EQ(places, (std::vector<std::int64_t>{1, 3}));
}

TEST(TorchKernels, MaxPoolTakesTheMostOfAWindowAndGivesItsGradientBack) {
    // Two channels of 3 x 3, windows of 2 x 2 at each second place of the padded plane.
    const std::vector<float> in{1, 5, 2, 7, 3, 4, 0, 6, 9, -1, -5, -2, -7, -3, -4, -9, -6, -8};
    std::vector<float> out(8);
    std::vector<std::int64_t> places(8);
    std::vector<Bytes> parameters{value(8),
                                  pointers({in.data()}),
                                  value(std::int64_t{2}),
                                  value(std::int64_t{3}),
                                  value(3),
                                  value(2),
                                  value(2)};
    for (const int number : {2, 2, 2, 2, 1, 1, 1, 1}) parameters.push_back(value(number));
    parameters.push_back(pointers({out.data()}));
    parameters.push_back(pointers({places.data()}));
    ASSERT_TRUE(run("_ZN2at6native8internal21max_pool_forward_nchwIfiEEvT0_PKT_llliiiiiiiiiiPS4_Pl",
                    parameters));
    EXPECT_EQ(out, (std::vector<float>{1, 5, 7, 9, -1, -2, -7, -3}));
    EXPECT_EQ(places, (std::vector<std::int64_t>{0, 1, 3, 8, 0, 2, 3, 4}));

    std::vector<float> grad(18, 5.0F);
    const std::vector<float> from{1, 2, 3, 4, 5, 6, 7, 8};
    parameters = {pointers({from.data()}), pointers({places.data()}), value(1), value(2)};
    for (const int number : {3, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1})
        parameters.push_back(value(number));
    parameters.push_back(pointers({grad.data()}));
    ASSERT_TRUE(
        run("_ZN2at6native8internal22max_pool_backward_nchwIffiEEvPKT_PKlT1_S8_S8_S8_S8_S8_"
            "iiiiiiiiPS3_",
            parameters));
    EXPECT_EQ(grad, (std::vector<float>{1, 2, 0, 3, 0, 0, 0, 0, 4, 5, 0, 6, 7, 8, 0, 0, 0, 0}));
}

TEST(TorchKernels, ForeachRaisesAScalarToEachElement) {
    const std::vector<float> steps{1, 2, 3};
    std::vector<float> out(3);
    // TensorListMetadata<2>: room for 64 addresses in each list, 64 sizes, 320 blocks.
    Bytes lists(3144);
    put(lists, 0, steps.data());
    put(lists, 64 * 8, out.data());
    put(lists, 2 * 64 * 8, std::int64_t{3});
    ASSERT_TRUE(
        run("void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<2>, "
            "at::native::BinaryOpScalarFunctor<float, 2, 1, 1>, "
            "at::native::reverse_power_functor<float>, float>(at::native::TensorListMetadata<2>, "
            "at::native::BinaryOpScalarFunctor<float, 2, 1, 1>, "
            "at::native::reverse_power_functor<float>, float)",
            {lists, Bytes(1), Bytes(1), value(0.5F)}));
    EXPECT_EQ(out, (std::vector<float>{0.5F, 0.25F, 0.125F}));
}

TEST(TorchKernels, ListsEndWithTheLastTensorOfABlock) {
    // As above; of three blocks the last one is of the second tensor.
    Bytes lists(3144);
    put(lists, 3 * 64 * 8 + 2, std::uint8_t{1});
    const KernelName name = parse_kernel_name(
        "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<2>, "
        "Some<int>, Other>(at::native::TensorListMetadata<2>, Some<int>, Other)");
    const auto is_address = [&](std::size_t offset) {
        return torch::lists_address(name, lists, 3, offset);
    };
    EXPECT_TRUE(is_address(0));
    EXPECT_TRUE(is_address(65 * 8));
    EXPECT_FALSE(is_address(2 * 8));
    EXPECT_FALSE(is_address(66 * 8));
    EXPECT_FALSE(is_address(2 * 64 * 8));
}

TEST(TorchKernels, ListsWithScalarsEndThereToo) {
    // TensorListScalarListMetadata<scalar, 1>: 672 addresses, sizes and scalars, 2,240 blocks, each
    // with two bytes for its tensor.
    for (const std::string scalar : {"float", "double", "long"}) {
        const std::size_t scalar_bytes = scalar == "float" ? 4 : 8;
        const std::string list = "at::native::TensorListScalarListMetadata<" + scalar + ", 1>";
        Bytes lists(672 * (16 + scalar_bytes) + 2240 * 6);
        put(lists, 672 * (16 + scalar_bytes) + 2 * 2, std::uint16_t{4});
        const KernelName name =
            parse_kernel_name("void at::native::multi_tensor_apply_kernel<" + list +
                              ", Some<int>, Other>(" + list + ", Some<int>, Other)");
        const auto is_address = [&](std::size_t offset) {
            return torch::lists_address(name, lists, 3, offset);
        };
        EXPECT_TRUE(is_address(4 * 8)) << scalar;
        EXPECT_FALSE(is_address(5 * 8)) << scalar;
        EXPECT_FALSE(is_address(2648)) << scalar;
        EXPECT_FALSE(is_address(672 * 8)) << scalar;
        EXPECT_FALSE(is_address(672 * 16)) << scalar;
    }
}

/// What is left of the places where a launch's parameter holds live addresses.
std::vector<std::uint32_t> used(const std::string& name, std::size_t parameter, const Bytes& bytes,
                                std::vector<std::uint32_t> offsets) {
    const std::uint32_t grid[3] = {4, 2, 1};
    return torch::addresses_in(parse_kernel_name(name), parameter, bytes, grid, std::move(offsets));
}

TEST(TorchKernels, CatHasAnInputPerRowOfBlocks) {
    const std::string name =
        "void at::native::CatArrayBatchedCopy_vectorized<at::native::OpaqueType<4u>, unsigned int, "
        "2, 128, 1, 16, 4>(char*, at::native::CatArrInputTensorMetadata<at::native::OpaqueType<4u>,"
        " unsigned int, 128, 1>, at::native::TensorSizeStride<unsigned int, 4u>, int, unsigned "
        "int)";
    EXPECT_EQ(used(name, 1, Bytes(21 * 128), {0, 8, 16, 1000}), (std::vector<std::uint32_t>{0, 8}));
    EXPECT_EQ(used(name, 2, Bytes(32), {8}), (std::vector<std::uint32_t>{}));
}

TEST(TorchKernels, ATensorsDescriptionHasOneAddress) {
    EXPECT_EQ(used("void f<int>(at::cuda::detail::TensorInfo<float, unsigned int>)", 0, Bytes(216),
                   {0, 64, 128}),
              (std::vector<std::uint32_t>{0}));
}

TEST(TorchKernels, CalculatorsOfOffsetsHoldNoAddresses) {
    // An OffsetCalculator<2> of one dimension with 6 elements, two addresses, a functor.
    Bytes lambda(528);
    put(lambda, 0, 1);
    const std::uint32_t divider[] = {6, 0x55555556, 3};
    put(lambda, 4, divider);
    const std::string name =
        "void at::native::elementwise_kernel<128, 2, Lambda<int> >(int, Lambda<int>)";
    EXPECT_EQ(used(name, 1, lambda, {200, 408, 496, 504, 512}),
              (std::vector<std::uint32_t>{504, 512}));
    put(lambda, 8, 0x55555557);
    EXPECT_EQ(used(name, 1, lambda, {200, 504}), (std::vector<std::uint32_t>{200, 504}));
}

TEST(TorchKernels, AReductionOfOneOutputHasNoSecond) {
    Bytes reduction(1032);
    put(reduction, 1032 - 4, 1);
    const std::string name = "void at::native::reduce_kernel<512, 1, Op<int> >(Op<int>)";
    EXPECT_EQ(used(name, 0, reduction, {400, 968, 976, 984, 1008}),
              (std::vector<std::uint32_t>{968, 976, 1008}));
    put(reduction, 1032 - 4, 2);
    EXPECT_EQ(used(name, 0, reduction, {968, 984}), (std::vector<std::uint32_t>{968, 984}));
}

TEST(TorchKernels, CatJoinsAlongADimension) {
    // 2 x 1 and 2 x 2 beside each other.
    const std::vector<float> a{1, 2};
    const std::vector<float> b{3, 4, 5, 6};
    std::vector<float> out(6);
    Bytes inputs(21 * 128 + 32);
    const auto input = [&](std::size_t i, const float* data, std::uint32_t first,
                           std::uint32_t size, std::uint32_t elements) {
        put(inputs, 8 * i, data);
        put(inputs, 128 * 8 + 4 * i, first);
        put(inputs, 128 * 12 + 4 * i, size);
        put(inputs, 128 * 16 + 4 * i, elements);
        put(inputs, 128 * 20 + i, true);
    };
    input(0, a.data(), 0, 1, 2);
    input(1, b.data(), 1, 2, 4);
    Bytes shape(32);
    const std::uint32_t sizes_and_strides[] = {2, 3, 0, 0, 3, 1, 0, 0};
    put(shape, 0, sizes_and_strides);
    ASSERT_TRUE(
        run("void at::native::CatArrayBatchedCopy_contig<at::native::OpaqueType<4u>, unsigned int, "
            "2, 128, 1>(at::native::OpaqueType<4u>*, at::native::CatArrInputTensorMetadata, "
            "at::native::TensorSizeStride<unsigned int, 4u>, int, unsigned int)",
            {pointers({out.data()}), inputs, shape, value(1), value(std::uint32_t{1})}, 1, 2));
    EXPECT_EQ(out, (std::vector<float>{1, 3, 4, 2, 5, 6}));
}

TEST(TorchKernels, SoftmaxRowsAddUpToOne) {
    const std::vector<float> in{0, 1, 2, 5, 5, 5};
    std::vector<float> out(6);
    const char* name =
        "_ZN12_GLOBAL__N_120softmax_warp_forwardIfffLi2ELb0ELb0ELi32EEEvPT0_PKT_iiiPKbib";
    ASSERT_TRUE(run(name, {value(out.data()), value(in.data()), value(2), value(3), value(3),
                           value<const void*>(nullptr), value(0), value(false)}));
    EXPECT_NEAR(out[0] + out[1] + out[2], 1, 1e-6);
    EXPECT_NEAR(out[2] / out[1], std::exp(1.0), 1e-5);
    EXPECT_NEAR(out[3], 1.0 / 3, 1e-6);
    // A mask is another form.
    EXPECT_FALSE(run(name, {value(out.data()), value(in.data()), value(2), value(3), value(3),
                            value<const void*>(in.data()), value(0), value(false)}));
}

TEST(TorchKernels, LayerNormMakesRowsOfMeanZeroAndVarianceOne) {
    const std::vector<float> x{1, 2, 3, 4, 10, 20, 30, 40};
    std::vector<float> y(8);
    std::vector<float> mean(2);
    std::vector<float> rstd(2);
    ASSERT_TRUE(
        run("_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_kernelIffLb0EEEviT0_PKT_S5_S5_P"
            "S3_S6_PS3_",
            {value(4), value(0.0F), value(x.data()), value<const void*>(nullptr),
             value<const void*>(nullptr), value(mean.data()), value(rstd.data()), value(y.data())},
            2));
    EXPECT_FLOAT_EQ(mean[1], 25);
    EXPECT_NEAR(y[0], -1.3416408, 1e-6);
    EXPECT_NEAR(y[4], y[0], 1e-6);
    EXPECT_NEAR(y[0] + y[1] + y[2] + y[3], 0, 1e-6);
}

TEST(TorchKernels, RmsNormHasNoMeanInEitherDirection) {
    const std::vector<float> x{3, 4, 6, 8};
    const std::vector<float> dy{1, 10, 100, 1000};
    const std::vector<float> gamma{2, 1};
    std::vector<float> y(4);
    std::vector<float> rstd(2);
    std::vector<float> dx(4);
    std::vector<float> dgamma(2);
    const auto none = value<const void*>(nullptr);
    ASSERT_TRUE(
        run("_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_kernelIffLb1EEEviT0_PKT_S5_S5_P"
            "S3_S6_PS3_",
            {value(2), value(0.0F), value(x.data()), value(gamma.data()), none, none,
             value(rstd.data()), value(y.data())},
            2));
    const float root = std::sqrt(2.0F) / 5;
    EXPECT_NEAR(rstd[0], root, 1e-6);
    EXPECT_NEAR(y[0], 6 * root, 1e-6);
    EXPECT_NEAR(y[3], 4 * root, 1e-6);
    // What it is given as the gradient of what it has none of is that of the other parameter.
    ASSERT_TRUE(
        run("_ZN2at6native12_GLOBAL__N_135GammaBetaBackwardCUDAKernelTemplateIffLj32ELj1ELj8ELb1E"
            "Lb0ELb1EEEvllPKT_S5_PKT0_S8_PS3_S9_",
            {value(std::int64_t{2}), value(std::int64_t{2}), value(dy.data()), value(x.data()),
             none, value(rstd.data()), value(dgamma.data()), value(dgamma.data())}));
    EXPECT_NEAR(dgamma[0], root * 3 + root / 2 * 600, 1e-4);
    EXPECT_NEAR(dgamma[1], root * 40 + root / 2 * 8000, 1e-3);
    ASSERT_TRUE(
        run("_ZN2at6native12_GLOBAL__N_139layer_norm_grad_input_kernel_vectorizedIffLb1EEEvPKT_S5_"
            "PKT0_S8_S5_PS3_i",
            {value(dy.data()), value(x.data()), none, value(rstd.data()), value(gamma.data()),
             value(dx.data()), value(2)},
            2));
    EXPECT_NEAR(dx[0], root * (2 - 3 * root * 46 * root / 2), 1e-5);
}

TEST(TorchKernels, ComplexNumbersAreScaledAndMultiplied) {
    using Complex = std::complex<float>;
    const std::vector<Complex> x{{1, 2}, {3, -1}};
    std::vector<Complex> y(2);
    const std::array<std::uint64_t, 3> tensors{reinterpret_cast<std::uint64_t>(y.data()),
                                               reinterpret_cast<std::uint64_t>(x.data()),
                                               reinterpret_cast<std::uint64_t>(x.data())};
    // An empty functor, then the number.
    const std::array<Complex, 2> twice_i{Complex(), Complex(0, 2)};
    ASSERT_TRUE(
        run("_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_13AUnaryFunctorIN3c107"
            "complexIfEES5_S5_NS0_15binary_internal10MulFunctorIS5_EEEESt5arrayIPcLm2EELb0"
            "EEEviT0_T1_",
            {value(2), value(twice_i), value(tensors)}));
    EXPECT_EQ(y, (std::vector<Complex>{{-4, 2}, {2, 6}}));
    ASSERT_TRUE(
        run("_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_13BinaryFunctorIN3c107"
            "complexIfEES5_S5_NS0_15binary_internal10MulFunctorIS5_EEEESt5arrayIPcLm3EELb0"
            "EEEviT0_T1_",
            {value(2), value('\0'), value(tensors)}));
    EXPECT_EQ(y, (std::vector<Complex>{{-3, 4}, {8, -6}}));
}

TEST(TorchKernels, EmbeddingGradientsAddUp) {
    const std::vector<std::int64_t> indices{2, 0, 2};
    const std::vector<float> grad{1, 2, 10, 20, 100, 200};
    std::vector<float> weight(6);
    ASSERT_TRUE(run(
        "_ZN2at6native12_GLOBAL__N_133embedding_backward_feature_kernelIfflEEvPKT1_PKT_PS5_ilii",
        {value(indices.data()), value(grad.data()), value(weight.data()), value(3),
         value(std::int64_t{2}), value(-1)}));
    EXPECT_EQ(weight, (std::vector<float>{10, 20, 0, 0, 101, 202}));
}

TEST(TorchKernels, ConversionsRoundToTheOtherType) {
    const std::vector<float> in{1, 0.1F, -70000};
    std::vector<std::uint16_t> out(3);
    ASSERT_TRUE(run(
        "_ZN2at6native29vectorized_elementwise_kernelILi4EZNS0_27converting_copy_kernel_cudaIfN3c10"
        "4HalfEEEvRNS_18TensorIteratorBaseEEUlfE_St5arrayIPcLm2EEEEviT0_T1_",
        {value(3), value('\0'), pointers({out.data(), in.data()})}));
    EXPECT_EQ(out, (std::vector<std::uint16_t>{0x3c00, 0x2e66, 0xfc00}));
}

TEST(TorchKernels, TheScaleOfGradientsShrinksAtOnceAndGrowsSlowly) {
    const char* name = "_ZN2at6native28amp_update_scale_cuda_kernelEPfPiPKfddi";
    float scale = 8;
    std::int32_t steps = 0;
    float found = 1;
    const auto step = [&] {
        return run(name,
                   {value(&scale), value(&steps), value(&found), value(2.0), value(0.5), value(2)});
    };
    ASSERT_TRUE(step());
    EXPECT_EQ(scale, 4);
    found = 0;
    ASSERT_TRUE(step());
    EXPECT_EQ(scale, 4);
    ASSERT_TRUE(step());
    EXPECT_EQ(scale, 8);
    EXPECT_EQ(steps, 0);
}

TEST(TorchKernels, WhatIsNotKnownIsLeft) {
    EXPECT_FALSE(
        run("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_10NewFunctorIfEESt5arrayIPcLm"
            "2EEEEviT0_T1_",
            {value(3), value(0), pointers({nullptr, nullptr})}));
    EXPECT_FALSE(run("some_kernel", {}));
}

}  // namespace
}  // namespace simgpu
