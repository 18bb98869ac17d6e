// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <fstream>

#include <gtest/gtest.h>

#include "simgpu/device/delays.hpp"
#include "simgpu/device/link_model.hpp"
#include "simgpu/device/profile.hpp"

namespace simgpu {
namespace {

TEST(Profile, AllShippedOnesAreReadAndKeepTheirNames) {
    for (const char* name : {"pcie4-a100", "pcie5-h100", "pcie3-v100"}) {
        const auto profile = load_profile(name, {MACHINES_DIR});
        ASSERT_TRUE(profile) << profile.error();
        EXPECT_EQ(profile->name, name);
        EXPECT_FALSE(profile->source.empty());
        EXPECT_GT(profile->memory_bytes, 0u);
    }
}

TEST(Profile, TheDefaultIsCompiledInAndEqualToItsFile) {
    const auto profile = load_profile("pcie4-a100", {});
    const auto file = load_profile("pcie4-a100", {MACHINES_DIR});
    ASSERT_TRUE(profile);
    EXPECT_EQ(profile->h2d_gbps, file->h2d_gbps);
    EXPECT_EQ(profile->unmap_us_per_gib, file->unmap_us_per_gib);
    EXPECT_EQ(profile->source, file->source);
}

TEST(Profile, AnUnknownNameListsTheKnownOnes) {
    const auto profile = load_profile("pcie9", {MACHINES_DIR, "/nowhere"});
    ASSERT_FALSE(profile);
    EXPECT_EQ(profile.error(),
              "machine profile 'pcie9' is unknown; known: pcie3-v100, pcie4-a100, pcie5-h100");
    EXPECT_NE(load_profile("/nowhere/x.json", {}).error().find("cannot be read"),
              std::string::npos);
}

TEST(Profile, BadOnesSayWhatIsWrong) {
    EXPECT_NE(parse_profile("{", "x").error().find("not a JSON object"), std::string::npos);
    EXPECT_NE(parse_profile("{}", "x").error().find("'h2d_gbps'"), std::string::npos);
    EXPECT_NE(parse_profile("{\"h2d_gbps\": 0}", "x").error().find("'h2d_gbps' must be above 0"),
              std::string::npos);
    EXPECT_NE(parse_profile("{\"h2d_gbps\": \"a\"}", "x").error().find("not a number"),
              std::string::npos);
    EXPECT_FALSE(parse_profile("{\"source\": 5}", "x"));
}

TEST(LinkModel, ChangesRatesWhenTheOtherDirectionComesAndGoes) {
    LinkModel link(20, 10, 15, 5);
    link.begin(LinkModel::ToDevice, 0, 20'000, 1000);
    EXPECT_EQ(link.finish_ns(LinkModel::ToDevice), 1000u);
    link.begin(LinkModel::ToHost, 500, 1000, 1000);
    EXPECT_EQ(link.finish_ns(LinkModel::ToHost), 700u);
    EXPECT_EQ(link.finish_ns(LinkModel::ToDevice), 500u + 667u);
    link.end(LinkModel::ToHost, 700);
    EXPECT_EQ(link.finish_ns(LinkModel::ToDevice), 700u + 350u);
    EXPECT_EQ(link.finish_ns(LinkModel::ToHost), kNever);
}

TEST(LinkModel, HonoursALimit) {
    LinkModel link(20, 10, 15, 5);
    link.begin(LinkModel::ToHost, 0, 1000, 2);
    EXPECT_EQ(link.finish_ns(LinkModel::ToHost), 500u);
}

TEST(Delays, CountPerClass) {
    Delays delays;
    ASSERT_TRUE(delays.parse("h2d:2=5us,kernel:every2=1ms,d2h:3+=7ns,memset:*=1s", nullptr));
    EXPECT_EQ(delays.next(OpClass::H2d).delay_ns, 0u);
    EXPECT_EQ(delays.next(OpClass::Kernel).delay_ns, 0u);
    EXPECT_EQ(delays.next(OpClass::H2d).delay_ns, 5000u);
    EXPECT_EQ(delays.next(OpClass::Kernel).delay_ns, 1'000'000u);
    EXPECT_EQ(delays.next(OpClass::H2d).delay_ns, 0u);
    for (const auto want : {0u, 0u, 7u, 7u}) EXPECT_EQ(delays.next(OpClass::D2h).delay_ns, want);
    EXPECT_EQ(delays.next(OpClass::Memset).delay_ns, 1'000'000'000u);
}

TEST(Delays, LoseWhatTheyAreToldTo) {
    Delays delays;
    ASSERT_TRUE(delays.parse("d2h:2=lost,d2h:2=5us", nullptr));
    EXPECT_FALSE(delays.next(OpClass::D2h).loses_page);
    EXPECT_FALSE(delays.next(OpClass::H2d).loses_page);
    const Disturbance second = delays.next(OpClass::D2h);
    EXPECT_TRUE(second.loses_page);
    EXPECT_EQ(second.delay_ns, 5000u);
    EXPECT_FALSE(delays.next(OpClass::D2h).loses_page);
}

TEST(Delays, RefuseNonsenseAndKeepWhatWas) {
    Delays delays;
    ASSERT_TRUE(delays.parse("kernel:*=1us", nullptr));
    std::string error;
    for (const char* text :
         {"kernel", "kernel:*", "kernel:*=", "kernel:*=5", "kernel:*=5h", "x:*=5us", "kernel:0=5us",
          "kernel:every=5us", "kernel:-1=5us", "=:", "kernel:*=lost", "d2h:*=losts"}) {
        error.clear();
        EXPECT_FALSE(delays.parse(text, &error)) << text;
        EXPECT_FALSE(error.empty());
    }
    EXPECT_EQ(delays.next(OpClass::Kernel).delay_ns, 1000u);
}

}  // namespace
}  // namespace simgpu
