// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// PyTorch's and CUB's kernels that sort, choose, scan, count and gather.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "simgpu/host_kernels/torch/philox.hpp"
#include "tests/simgpu/host_kernels/host_launch.hpp"

namespace simgpu {
namespace {

using Longs = std::vector<std::int64_t>;
using Floats = std::vector<float>;

/// at::cuda::detail::TensorInfo with 32-bit indices.
Bytes info(const void* data, const std::vector<std::uint32_t>& sizes,
           const std::vector<std::uint32_t>& strides) {
    Bytes bytes(216);
    put(bytes, 0, data);
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        put(bytes, 8 + 4 * d, sizes[d]);
        put(bytes, 108 + 4 * d, strides[d]);
    }
    put(bytes, 208, static_cast<std::int32_t>(sizes.size()));
    return bytes;
}

const char* const kRadix = "at_cuda_detail::cub::detail::radix_sort::";

std::string radix(const std::string& kernel, const std::string& order, const std::string& types) {
    return "void " + std::string(kRadix) + kernel + "<Policy, (at_cuda_detail::cub::SortOrder)" +
           order + ", float, Value, unsigned long long, Decomposer>(" + types +
           "at_cuda_detail::cub::detail::identity_decomposer_t)";
}

/// All passes over 32-bit keys, as CUB launches them.
void sort_pairs(Floats& keys, Longs& values, const std::string& order) {
    const auto number = static_cast<std::uint64_t>(keys.size());
    std::vector<std::uint64_t> bins(4 * 256);
    Floats other_keys(keys.size());
    Longs other_values(values.size());
    ASSERT_TRUE(run(radix("DeviceRadixSortHistogramKernel", order,
                          "unsigned long long*, float const*, unsigned long long, int, int, ")
                        .c_str(),
                    {pointers({bins.data()}), pointers({keys.data()}), value(number), value(0),
                     value(32), value('x')}));
    ASSERT_TRUE(run(("void " + std::string(kRadix) +
                     "DeviceRadixSortExclusiveSumKernel<Policy, unsigned long long>(unsigned long "
                     "long*)")
                        .c_str(),
                    {pointers({bins.data()})}, 4));
    for (int pass = 0; pass < 4; ++pass) {
        ASSERT_TRUE(run(
            radix("DeviceRadixSortOnesweepKernel", order,
                  "int*, int*, unsigned long long*, unsigned long long const*, float*, float "
                  "const*, at::cuda::cub::detail::OpaqueType<8>*, "
                  "at::cuda::cub::detail::OpaqueType<8> const*, int, int, int, ")
                .c_str(),
            {pointers({nullptr}), pointers({nullptr}), pointers({nullptr}),
             pointers({bins.data() + 256 * pass}), pointers({other_keys.data()}),
             pointers({keys.data()}), pointers({other_values.data()}), pointers({values.data()}),
             value(static_cast<std::int32_t>(number)), value(8 * pass), value(8), value('x')}));
        keys.swap(other_keys);
        values.swap(other_values);
    }
}

TEST(TorchIndices, RadixPassesSortStablyWithNansLast) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Floats keys{3, -1, 0.0F, 300, -nan, -0.0F, -2.5F, 3};
    Longs values{0, 1, 2, 3, 4, 5, 6, 7};
    sort_pairs(keys, values, "0");
    EXPECT_EQ(values, (Longs{6, 1, 2, 5, 0, 7, 3, 4}));
    EXPECT_EQ(keys[0], -2.5F);
    keys = {1, 5, 3, 5};
    values = {0, 1, 2, 3};
    sort_pairs(keys, values, "1");
    EXPECT_EQ(values, (Longs{1, 3, 2, 0}));
    EXPECT_EQ(keys, (Floats{5, 5, 3, 1}));
}

TEST(TorchIndices, RowsAreSortedWhereTheyLie) {
    // Two columns of a matrix of three rows.
    Longs keys{5, 1, 2, 9, 5, 4};
    Longs places{0, 0, 1, 1, 2, 2};
    ASSERT_TRUE(
        run("void at::native::bitonicSortKVInPlace<2, -1, 16, 16, long, long, "
            "at::native::GTOp<long, true>, unsigned int>(at::cuda::detail::TensorInfo<long, "
            "unsigned int>, unsigned int, unsigned int, unsigned int, "
            "at::cuda::detail::TensorInfo<long, unsigned int>, unsigned int, "
            "at::native::GTOp<long, true>)",
            {info(keys.data(), {1, 2}, {2, 1}), value(2U), value(3U), value(2U),
             info(places.data(), {1, 2}, {2, 1}), value(2U), value('x')}));
    EXPECT_EQ(keys, (Longs{5, 9, 5, 4, 2, 1}));
    EXPECT_EQ(places, (Longs{0, 1, 2, 2, 1, 0}));
}

TEST(TorchIndices, TopKTakesEqualsOfTheLastInOrder) {
    const Floats in{1, 7, 3, 7, 3, 0};
    Floats values(3);
    Longs places(3);
    ASSERT_TRUE(
        run("void at::native::sbtopk::gatherTopK<float, unsigned int, 1, "
            "false>(at::cuda::detail::TensorInfo<float const, unsigned int>, unsigned int, "
            "unsigned int, bool, unsigned int, unsigned int, at::cuda::detail::TensorInfo<float, "
            "unsigned int>, unsigned int, at::cuda::detail::TensorInfo<long, unsigned int>, "
            "unsigned int, float*)",
            {info(in.data(), {1}, {6}), value(6U), value(3U), value(true), value(1U), value(1U),
             info(values.data(), {1}, {3}), value(1U), info(places.data(), {1}, {3}), value(1U),
             pointers({nullptr})}));
    EXPECT_EQ(values, (Floats{7, 7, 3}));
    EXPECT_EQ(places, (Longs{1, 3, 2}));
}

TEST(TorchIndices, ScansIncludeOrExcludeTheElementItself) {
    const Longs in{1, 2, 3};
    Longs out(3);
    const std::string scan =
        "void at_cuda_detail::cub::detail::scan::DeviceScanKernel<Policy>(long const*, long*, "
        "at_cuda_detail::cub::ScanTileState<long, true>, int, ";
    ASSERT_TRUE(
        run((scan + "std::plus<long>, at_cuda_detail::cub::NullType, unsigned int)").c_str(),
            {pointers({in.data()}), pointers({out.data()}), value(0L), value(0), value('x'),
             value('x'), value(3U)}));
    EXPECT_EQ(out, (Longs{1, 3, 6}));
    Bytes begin;  // {whether an address, the value}
    put(begin, 0, std::uint64_t{0});
    put(begin, 8, std::int64_t{10});
    ASSERT_TRUE(run((scan + "at::cuda::cub::SumOp<long>, "
                            "at_cuda_detail::cub::detail::InputValue<long, long*>, unsigned int)")
                        .c_str(),
                    {pointers({in.data()}), pointers({out.data()}), value(0L), value(0), value('x'),
                     begin, value(3U)}));
    EXPECT_EQ(out, (Longs{10, 11, 13}));
}

TEST(TorchIndices, RunsAreCounted) {
    const Longs in{4, 4, 7, 9, 9, 9};
    Longs unique(6);
    Longs lengths(6);
    std::int64_t number = 0;
    Bytes ones(16);
    put(ones, 8, std::int64_t{1});
    ASSERT_TRUE(
        run("void at_cuda_detail::cub::detail::reduce::DeviceReduceByKeyKernel<Policy>(long "
            "const*, long*, thrust::constant_iterator<long, long, use_default>, long*, long*, "
            "State, int, cuda::std::__4::equal_to<void>, cuda::std::__4::plus<void>, int, Context, "
            "Memory)",
            {pointers({in.data()}), pointers({unique.data()}), ones, pointers({lengths.data()}),
             pointers({&number}), value(0L), value(0), value('x'), value('x'), value(6)}));
    EXPECT_EQ(number, 3);
    EXPECT_EQ(unique, (Longs{4, 7, 9, 0, 0, 0}));
    EXPECT_EQ(lengths, (Longs{2, 1, 3, 0, 0, 0}));
}

TEST(TorchIndices, SearchFindsTheFirstOrTheLastPlace) {
    const Floats sorted{1, 2, 2, 5};
    const Floats values{2, 6, 0};
    Longs places(3);
    const auto search = [&](bool right) {
        EXPECT_TRUE(
            run("void at::native::(anonymous namespace)::searchsorted_cuda_kernel<float, "
                "long>(long*, float const*, float const*, long const*, long, long, long, "
                "bool, bool)",
                {pointers({places.data()}), pointers({values.data()}), pointers({sorted.data()}),
                 pointers({nullptr}), value(3L), value(4L), value(3L), value(right), value(true)}));
        return places;
    };
    EXPECT_EQ(search(false), (Longs{1, 4, 0}));
    EXPECT_EQ(search(true), (Longs{3, 4, 0}));
}

TEST(TorchIndices, RowsOfOneIndexAreAdded) {
    Floats out{0, 0, 1, 1};
    const Floats in{1, 2, 10, 20, 100, 200};
    const Longs indices{1, 0, 1};
    ASSERT_TRUE(
        run("void at::native::vectorized_scatter_kernel<at::native::ScatterAddOp, 16, "
            "float, long>(float*, float const*, long const*, int, long, long, long, long, "
            "int, int)",
            {pointers({out.data()}), pointers({in.data()}), pointers({indices.data()}), value(3),
             value(8L), value(2L), value(8L), value(8L), value(1), value(1)}));
    EXPECT_EQ(out, (Floats{10, 20, 102, 203}));
}

TEST(TorchIndices, PartsOfSegmentsAddUpToTheGradient) {
    // Index 0 eleven times, then index 2 once: segments of two parts and of one.
    const std::string types = "long const*, long const*, long const*, ";
    const Longs begin{0, 11};
    const std::int64_t segments = 2;
    Longs parts(2);
    ASSERT_TRUE(run(
        "void at::native::krn_partials_per_segment<long>(long*, long const*, long "
        "const*, long)",
        {pointers({parts.data()}), pointers({begin.data()}), pointers({&segments}), value(12L)}));
    EXPECT_EQ(parts, (Longs{2, 1}));
    const Longs before{0, 2};
    Longs part_begin(3);
    ASSERT_TRUE(
        run("void at::native::krn_partial_segment_offset<long>(long*, long const*, long "
            "const*, long const*, long const*)",
            {pointers({part_begin.data()}), pointers({parts.data()}), pointers({before.data()}),
             pointers({begin.data()}), pointers({&segments})}));
    EXPECT_EQ(part_begin, (Longs{0, 10, 11}));
    Longs places(12);
    std::iota(places.begin(), places.end(), 0);
    Floats grad(12);
    std::iota(grad.begin(), grad.end(), 1.0F);
    Floats sums(3);
    const std::int64_t all_parts = 3;
    ASSERT_TRUE(
        run("void at::native::compute_grad_weight<float, long>(long const*, float const*, "
            "long const*, long, long, long const*, long const*, float*, long)",
            {pointers({places.data()}), pointers({grad.data()}), pointers({nullptr}), value(12L),
             value(1L), pointers({part_begin.data()}), pointers({&all_parts}),
             pointers({sums.data()}), value(32L)}));
    EXPECT_EQ(sums, (Floats{55, 11, 12}));
    Longs sorted(12);
    sorted[11] = 2;
    Floats weight(3);
    ASSERT_TRUE(
        run("void at::native::sum_and_scatter<float, long>(long const*, float*, long, long const*, "
            "long const*, float const*, long const*, long const*, long, long)",
            {pointers({sorted.data()}), pointers({weight.data()}), value(1L),
             pointers({begin.data()}), pointers({&segments}), pointers({sums.data()}),
             pointers({before.data()}), pointers({&all_parts}), value(-1L), value(32L)}));
    EXPECT_EQ(weight, (Floats{66, 0, 12}));
}

TEST(TorchIndices, RandomNumbersAreThoseOfAGpu) {
    // torch.manual_seed(0); torch.rand(3, device="cuda") and torch.randn(3, device="cuda").
    Floats uniform;
    Floats normal;
    for (std::uint64_t thread = 0; thread < 3; ++thread) {
        torch::Philox stream(0, thread, 0);
        uniform.push_back(stream.uniform());
        torch::Philox again(0, thread, 0);
        normal.push_back(static_cast<float>(again.normal_pair(false)[0]));
    }
    EXPECT_NEAR(uniform[0], 0.3990F, 1e-4F);
    EXPECT_NEAR(uniform[1], 0.5167F, 1e-4F);
    EXPECT_NEAR(uniform[2], 0.0249F, 1e-4F);
    EXPECT_NEAR(normal[0], -0.9247F, 1e-4F);
    EXPECT_NEAR(normal[1], -0.4253F, 1e-4F);
    EXPECT_NEAR(normal[2], -2.6438F, 1e-4F);
}

TEST(TorchIndices, WholeNumbersOf64BitsStayExact) {
    const Longs in{(std::int64_t{1} << 60) + 7, -5};
    Longs out(2);
    Bytes functor(16);  // {remainder, divisor}
    put(functor, 8, std::int64_t{1000});
    ASSERT_TRUE(
        run("void at::native::vectorized_elementwise_kernel<2, at::native::BUnaryFunctor<long, "
            "long, long, at::native::remainder_kernel_cuda(at::TensorIteratorBase&)::{lambda(long, "
            "long)#1}>, std::array<char*, 2ul>, false>(int, F, std::array<char*, 2ul>)",
            {value(2), functor, pointers({out.data(), in.data()})}));
    EXPECT_EQ(out, (Longs{((std::int64_t{1} << 60) + 7) % 1000, 995}));
}

}  // namespace
}  // namespace simgpu
