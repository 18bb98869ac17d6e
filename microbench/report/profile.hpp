// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>
#include <vector>

#include "cost/machine.hpp"
#include "microbench/hierarchy/hierarchy.hpp"
#include "microbench/report/plot.hpp"
#include "microbench/report/results.hpp"

namespace libswap::bench {

/// What the cost model takes from a device. What was not measured keeps its default.
struct DeviceProfile {
    std::string device_name;
    std::string uuid;
    int driver_version = 0;
    std::string measured_by;  ///< "libswap 0.1.0, quick"
    cost::Machine machine;
};

/// What a run of the benchmarks has to say.
struct Report {
    DeviceProfile profile;
    std::string header;  ///< a few lines
    std::vector<Table> tables;
    std::vector<Plot> plots;
    Hierarchy hierarchy;  ///< empty in quick runs
    std::vector<std::string> not_measured;
    /// What of the profile is not this device's: names of measurements.
    std::vector<std::string> missing;
};

/// The profile as a machine file (docs/swapctl.md) with who was measured in front: what is cached.
std::string format_profile(const DeviceProfile& profile);
/// Everything, numbers as numbers.
std::string format_json(const Report& report);
/// The hierarchy's tables.
std::vector<Table> hierarchy_tables(const Hierarchy& hierarchy);
std::vector<Plot> hierarchy_plots(const Hierarchy& hierarchy);

}  // namespace libswap::bench
