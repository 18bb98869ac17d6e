// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/host_lead.hpp"

#include <gtest/gtest.h>

namespace libswap {
namespace {

HostLead lead_of(const std::vector<double>& durations_us) {
    cost::Workload workload;
    for (const double us : durations_us) workload.add_op(us, 0, {}, {});
    return HostLead(workload);
}

TEST(HostLead, IsNearWithSoMuchWorkLeft) {
    const HostLead lead = lead_of({5000, 6000, 7000, 8000, 1000, 100'000});
    EXPECT_EQ(lead.near_ops(2), 3u);
    EXPECT_EQ(lead.near_ops(3), 2u);
    EXPECT_EQ(lead.near_ops(4), 3u);
}

TEST(HostLead, TheDeviceHasOneOperationToDoEvenIfItIsLong) {
    const HostLead lead = lead_of({100'000, 10, 100'000});
    EXPECT_EQ(lead.near_ops(0), 1u);
    EXPECT_EQ(lead.near_ops(1), 1u);
    EXPECT_EQ(lead.near_ops(2), 1u);
}

TEST(HostLead, GoesBackIntoTheIterationBefore) {
    EXPECT_EQ(lead_of({1000, 90'000, 9000, 9000}).near_ops(0), 3u);
}

TEST(HostLead, IsLessThanAnIteration) {
    EXPECT_EQ(lead_of({1, 1, 1}).near_ops(1), 2u);
    EXPECT_EQ(lead_of({1}).near_ops(0), 1u);
}

TEST(HostLead, WantsAnEventNowAndThen) {
    const HostLead lead = lead_of({400, 400, 400, 3000, 100});
    int events = 0;
    for (cost::OpIndex op = 0; op < 5; ++op) events += lead.wants_event(op);
    EXPECT_TRUE(lead.wants_event(2));
    EXPECT_TRUE(lead.wants_event(3));
    EXPECT_LE(events, 3);
}

}  // namespace
}  // namespace libswap
