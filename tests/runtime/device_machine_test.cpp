// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/device_machine.hpp"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "runtime/device_profile.hpp"

namespace libswap {
namespace {

constexpr const char* kUuid = "GPU-00010203-0405-0607-0809-0a0b0c0d0eff";
constexpr int kVersion = 13010;

std::string profile_of(const std::string& name) {
    return R"({"format": "libswap-device/1", "device_name": ")" + name +
           R"(", "h2d": {"latency_us": 7, "overhead_us": 1, "gap_us": 4, "gbps": 51},
        "d2h": {"latency_us": 8, "overhead_us": 1, "gap_us": 3, "gbps": 52},
        "h2d_duplex_gbps": 41, "d2h_duplex_gbps": 42, "map_us_per_gib": 6000, "unmap_us_per_gib": 1300,
        "map_us_per_chunk": 50, "unmap_us_per_chunk": 20, "reaction_us": 10, "fp32_tflops": 19,
        "mem_gbps": 1400, "launch_latency_us": 3})";
}

CUresult get_uuid(CUuuid* uuid, CUdevice) {
    for (int k = 0; k < 16; ++k) uuid->bytes[k] = static_cast<char>(k < 15 ? k : 0xff);
    return CUDA_SUCCESS;
}
CUresult get_name(char* name, int capacity, CUdevice) {
    std::strncpy(name, "Card 1", static_cast<std::size_t>(capacity));
    return CUDA_SUCCESS;
}
CUresult get_version(int* version) {
    *version = kVersion;
    return CUDA_SUCCESS;
}

class OfADevice : public testing::Test {
  protected:
    OfADevice()
        : folder_(std::filesystem::temp_directory_path() /
                  ("libswap-machine-" + std::to_string(getpid()))) {
        setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
        driver_.cuDeviceGetUuid_v2 = get_uuid;
        driver_.cuDeviceGetName = get_name;
        driver_.cuDriverGetVersion = get_version;
    }
    ~OfADevice() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        unsetenv("XDG_CACHE_HOME");
    }
    void keep(const std::string& uuid, int version, const std::string& text) {
        ASSERT_TRUE(save_device_profile(device_profile_path(uuid, version), text));
    }
    void expect_built_in() {
        const DeviceMachine found = device_machine(driver_, 0);
        EXPECT_EQ(found.source, "built in");
        EXPECT_EQ(found.machine.link.to_device.gbps, cost::engine_machine().link.to_device.gbps);
        EXPECT_NE(found.machine.link.to_device.gbps, 51);
    }
    std::filesystem::path folder_;
    Driver driver_{};
};

TEST_F(OfADevice, WithAProfileOfThisDriverIsWhatWasMeasured) {
    keep(kUuid, kVersion, profile_of("Card 1"));
    const DeviceMachine found = device_machine(driver_, 0);
    EXPECT_EQ(found.source, device_profile_path(kUuid, kVersion));
    EXPECT_DOUBLE_EQ(found.machine.link.to_device.gbps, 51);
    EXPECT_DOUBLE_EQ(found.machine.link.to_host_duplex_gbps, 42);
    EXPECT_DOUBLE_EQ(found.machine.remap.map_us_per_chunk, 50);
}

TEST_F(OfADevice, WithoutAProfileIsTheOneBuiltIn) { expect_built_in(); }

TEST_F(OfADevice, IsNotTakenFromAnotherDriversOrDevicesProfile) {
    keep(kUuid, kVersion - 10, profile_of("Card 1"));
    keep("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", kVersion, profile_of("Card 1"));
    expect_built_in();
}

TEST_F(OfADevice, IsNotTakenFromAProfileThatNamesAnotherCard) {
    keep(kUuid, kVersion, profile_of("Card 2"));
    expect_built_in();
}

TEST_F(OfADevice, IsNotTakenFromHalfAProfile) {
    keep(kUuid, kVersion, profile_of("Card 1").substr(0, 200));
    expect_built_in();
}

TEST_F(OfADevice, IsTheOneBuiltInWhereTheDriverDoesNotSayWhichItIs) {
    keep(kUuid, kVersion, profile_of("Card 1"));
    driver_.cuDeviceGetUuid_v2 = nullptr;
    expect_built_in();
    driver_.cuDeviceGetUuid_v2 = [](CUuuid*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; };
    expect_built_in();
}

}  // namespace
}  // namespace libswap
