// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cmath>

#include "tests/simgpu/exec/kernel_fixture.hpp"

namespace simgpu::exec {

namespace {

class DeviceCode : public KernelTest {
  protected:
    void SetUp() override { load("device_code"); }
};

struct Pair {
    int key;
    double values[3];
};

TEST_P(DeviceCode, AllKernelsCanBeExecuted) {
    for (const ptx::Kernel& kernel : module->kernels) EXPECT_EQ(kernel.unknown, "") << kernel.name;
}

TEST_P(DeviceCode, FunctionsMayCallThemselves) {
    const auto pout = memory.allocate(64 * 4);
    launch_ok("call_recursive", {{1, 1, 1}, {64, 1, 1}, 0}, params(pout));
    const int expected[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55};
    const auto out = memory.download<int>(pout, 64);
    for (int t = 0; t < 64; ++t) ASSERT_EQ(out[t], expected[t % 11]) << t;
}

TEST_P(DeviceCode, FunctionsAreCalledThroughPointers) {
    const auto in = random_floats(40);
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(40 * 4);
    launch_ok("call_indirect", {{1, 1, 1}, {40, 1, 1}, 0}, params(pin, pout));
    const auto out = memory.download<float>(pout, 40);
    for (int t = 0; t < 40; ++t) ASSERT_EQ(out[t], t % 2 == 0 ? in[t] * 2.0F : -in[t]) << t;
    launch_ok("call_virtual", {{1, 1, 1}, {40, 1, 1}, 0}, params(pout));
    const auto areas = memory.download<float>(pout, 40);
    for (int t = 0; t < 40; ++t)
        ASSERT_EQ(areas[t], static_cast<float>(t * t * (t % 2 == 0 ? 3 : 1))) << t;
}

TEST_P(DeviceCode, StructuresArePassedByValue) {
    const auto pout = memory.allocate(32 * 8);
    launch_ok("call_struct", {{1, 1, 1}, {32, 1, 1}, 0}, params(Pair{5, {1.5, 2.5, 3.0}}, pout));
    const auto out = memory.download<double>(pout, 32);
    for (int t = 0; t < 32; ++t) ASSERT_EQ(out[t], 5 + t + 7.0 * t) << t;
}

TEST_P(DeviceCode, VariablesHaveTheirInitialValues) {
    const auto pfloats = memory.allocate(32 * 4);
    const auto pints = memory.allocate(32 * 4);
    launch_ok("use_variables", {{1, 1, 1}, {32, 1, 1}, 0}, params(pfloats, pints));
    const auto floats = memory.download<float>(pfloats, 32);
    const auto ints = memory.download<int>(pints, 32);
    for (int t = 0; t < 32; ++t) {
        ASSERT_EQ(floats[t], static_cast<float>(t % 8 + 1));
        ASSERT_EQ(ints[t], 40 + 10 * (t % 4 + 1));
    }
    EXPECT_EQ(memory.download<int>(addresses.at("counter"), 1)[0], 42);
}

TEST_P(DeviceCode, LocalArraysBelongToTheirThread) {
    const auto in = random_ints(64, 0, 100);
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(64 * 4);
    launch_ok("local_array", {{1, 1, 1}, {64, 1, 1}, 0}, params(pin, pout));
    const auto out = memory.download<int>(pout, 64);
    for (int t = 0; t < 64; ++t) {
        int values[16];
        for (int k = 0; k < 16; ++k) values[k] = in[t] * k;
        for (int k = 0; k < 16; ++k) values[(k * 7 + t) % 16] += k;
        ASSERT_EQ(out[t], values[in[t] & 15]) << t;
    }
}

TEST_P(DeviceCode, PrintfFormatsItsArguments) {
    std::string printed;
    options.print = [&](std::string_view text) { printed += text; };
    launch_ok("print", {{1, 1, 1}, {4, 1, 1}, 0}, params(1, 3.14159F, std::uint64_t{0}));
    EXPECT_EQ(
        printed,
        "thread 0 of 4:  3.14 text 1099511627776 x%\nthread 1 of 4:  3.14 text 1099511627776 x%\n");
}

TEST_P(DeviceCode, FailedAssertsAndTrapsEndTheLaunch) {
    const RunResult asserted = launch("fail_assert", {{1, 1, 1}, {32, 1, 1}, 0}, params(7));
    EXPECT_EQ(asserted.status, RunStatus::Assert);
    EXPECT_NE(asserted.detail.find("thread: [7,0,0] Assertion `threadIdx.x < n` failed."),
              std::string::npos)
        << asserted.detail;
    EXPECT_TRUE(launch("fail_assert", {{1, 1, 1}, {32, 1, 1}, 0}, params(32)).ok());
    EXPECT_EQ(launch("stop", {{2, 1, 1}, {32, 1, 1}, 0}, params(3)).status, RunStatus::Trap);
    EXPECT_TRUE(launch("stop", {{2, 1, 1}, {32, 1, 1}, 0}, params(99)).ok());
}

TEST_P(DeviceCode, HalfPrecisionRoundsToNearest) {
    std::vector<float> in = random_floats(29, -100, 100);
    in.insert(in.end(), {0.0F, 1e-7F, 70000.0F});
    const auto pin = memory.upload(in);
    const auto pout = memory.allocate(32 * 16);
    const auto pbits = memory.allocate(32 * 2);
    launch_ok("halves", {{1, 1, 1}, {32, 1, 1}, 0}, params(pin, pout, pbits));
    const auto out = memory.download<float>(pout, 128);
    for (int t = 0; t < 29; ++t) {
        ASSERT_NEAR(out[t * 4], in[t], std::fabs(in[t]) / 2048);
        ASSERT_NEAR(out[t * 4 + 1], out[t * 4] * out[t * 4] + out[t * 4],
                    std::fabs(out[t * 4] * out[t * 4] + out[t * 4]) / 2048 + 1e-4);
        ASSERT_EQ(out[t * 4 + 2], 6.0F);
        ASSERT_NEAR(out[t * 4 + 3], in[t], std::fabs(in[t]) / 256);
    }
    EXPECT_EQ(out[30 * 4], 0x1p-23F);
    EXPECT_EQ(out[31 * 4], INFINITY);
    EXPECT_EQ(memory.download<std::uint16_t>(pbits, 32)[31], 0x7c00);
}

TEST_P(DeviceCode, GenericAddressesReachEverySpace) {
    for (int which = 0; which < 2; ++which) {
        const auto pout = memory.allocate(64 * 4);
        launch_ok("generic_addresses", {{1, 1, 1}, {64, 1, 1}, 0}, params(pout, which));
        const auto out = memory.download<int>(pout, 64);
        for (int t = 0; t < 64; ++t)
            ASSERT_EQ(out[t], t % 3 == 0   ? t * 5
                              : t % 3 == 1 ? (which == 0 ? t * 3 : 1)
                                           : t * 7)
                << t;
    }
}

INSTANTIATE_TEST_SUITE_P(Architectures, DeviceCode,
                         testing::Values("compute_75", "compute_80", "compute_90", "compute_120"));

}  // namespace

}  // namespace simgpu::exec
