// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "cost/machine.hpp"

namespace libswap::cost {

/// 1000 bytes per us each way alone, and `duplex_share` of that while both are busy; no latency, no
/// remap cost.
inline Machine plain_machine(double duplex_share = 1) {
    Machine m;
    m.link.to_host.gbps = m.link.to_device.gbps = 1;
    m.link.to_host_duplex_gbps = m.link.to_device_duplex_gbps = duplex_share;
    return m;
}

}  // namespace libswap::cost
