// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/device_profile.hpp"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace libswap {
namespace {

std::string profile_text(const std::string& gbps = "24.5") {
    return R"({"format": "libswap-device/1", "device_name": "Card 1", "h2d_gbps": 24, "d2h_gbps": 25,
        "h2d": {"latency_us": 7, "overhead_us": 1, "gap_us": 4, "gbps": )" +
           gbps + R"(},
        "d2h": {"latency_us": 8, "overhead_us": 1, "gap_us": 3, "gbps": 26, "small_gbps": 9, "small_bytes": 65536},
        "h2d_duplex_gbps": 18, "d2h_duplex_gbps": 19, "map_us_per_gib": 6000, "unmap_us_per_gib": 1300,
        "map_us_per_chunk": 50, "unmap_us_per_chunk": 20, "reaction_us": 10, "fp32_tflops": 19,
        "mem_gbps": 1400, "launch_latency_us": 3})";
}

TEST(DeviceProfile, GivesTheMachineThatWasMeasured) {
    const auto machine = parse_device_profile(profile_text());
    ASSERT_TRUE(machine);
    EXPECT_EQ(machine->name, "Card 1");
    EXPECT_DOUBLE_EQ(machine->link.to_device.setup_us(), 12);
    EXPECT_DOUBLE_EQ(machine->link.to_device.gbps, 24.5);
    EXPECT_DOUBLE_EQ(machine->link.to_host.small_gbps, 9);
    EXPECT_EQ(machine->link.to_host.small_bytes, 65536U);
    EXPECT_DOUBLE_EQ(machine->remap.map_us_per_chunk, 50);
    EXPECT_DOUBLE_EQ(machine->ceilings.mem_gbps, 1400);
}

TEST(DeviceProfile, NonsenseIsNoProfile) {
    EXPECT_FALSE(parse_device_profile(""));
    EXPECT_FALSE(parse_device_profile("{}"));
    EXPECT_FALSE(parse_device_profile(profile_text().substr(0, 300)));
    for (const char* gbps : {"0", "-3", "\"fast\"", "1e999", "null"})
        EXPECT_FALSE(parse_device_profile(profile_text(gbps))) << gbps;
}

class CachedProfile : public testing::Test {
  protected:
    CachedProfile()
        : folder_(std::filesystem::temp_directory_path() /
                  ("libswap-profile-" + std::to_string(getpid()))) {
        setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    }
    ~CachedProfile() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        unsetenv("XDG_CACHE_HOME");
    }
    std::filesystem::path folder_;
};

TEST_F(CachedProfile, IsFoundByDeviceAndDriver) {
    const std::string path = device_profile_path("GPU-1", 13000);
    EXPECT_EQ(path, (folder_ / "libswap" / "GPU-1-13000.json").string());
    EXPECT_FALSE(load_device_profile(path, "Card 1"));
    EXPECT_TRUE(newest_device_profile().empty());
    ASSERT_TRUE(save_device_profile(path, profile_text()));
    EXPECT_TRUE(load_device_profile(path, "Card 1"));
    EXPECT_FALSE(load_device_profile(path, "Card 2"));
    EXPECT_EQ(newest_device_profile(), path);
}

TEST_F(CachedProfile, NoFolderIsNoProfile) {
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "", 1);
    EXPECT_TRUE(device_profile_path("GPU-1", 13000).empty());
    EXPECT_FALSE(load_device_profile("", "Card 1"));
    EXPECT_FALSE(save_device_profile("/proc/none/x.json", "{}"));
}

}  // namespace
}  // namespace libswap
