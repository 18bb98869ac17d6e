// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <gtest/gtest.h>

#include "runtime/device.hpp"
#include "tests/runtime/fake_driver.hpp"

// Which devices are swapped. Numbers in comments are rows of the issue log, docs/issue-log.md.

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class DeviceOpen : public ::testing::Test {
  protected:
    bool opens() {
        return Device::open(fake_.table(), config_, nullptr, 0, fake_.context(), &host_limit_,
                            &edges_) != nullptr;
    }

    testing::FakeDriver fake_;
    Config config_;
    HostLimit host_limit_{256 * kMiB};
    PointerEdges edges_;
};

TEST_F(DeviceOpen, TakesADeviceThatHasAllThatIsNeeded) { EXPECT_TRUE(opens()); }

TEST_F(DeviceOpen, MakesNoStreamAndLoadsNothingWhileEverythingFits) {
    ASSERT_TRUE(opens());
    for (const char* call : {"cuModuleLoadData", "cuStreamCreate", "cuMemAlloc", "cuMemHostAlloc"})
        EXPECT_EQ(fake_.calls(call), 0u) << call;
}

// 66: there swapping gains nothing.
TEST_F(DeviceOpen, LeavesDevicesThatShareTheHostsMemoryAlone) {
    fake_.attributes[CU_DEVICE_ATTRIBUTE_INTEGRATED] = 1;
    EXPECT_FALSE(opens());
}

// 70: virtual GPUs say no in several ways.
TEST_F(DeviceOpen, LeavesDevicesWithoutVirtualMemoryAlone) {
    fake_.attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 0;
    EXPECT_FALSE(opens());
}

TEST_F(DeviceOpen, LeavesDevicesThatClaimVirtualMemoryAndRefuseItAlone) {
    for (const char* call : {"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve",
                             "cuMemMap", "cuMemSetAccess"}) {
        fake_.fail(call, 1, CUDA_ERROR_NOT_SUPPORTED, true);
        EXPECT_FALSE(opens()) << call;
        fake_.clear_faults();
    }
    EXPECT_EQ(fake_.device_used(), 0u);
}

TEST_F(DeviceOpen, LeavesDriversThatAreTooOldAlone) {
    fake_.driver_version = 12030;
    EXPECT_FALSE(opens());
}

}  // namespace
}  // namespace libswap
