// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "cost/machine.hpp"
#include "cost/plan.hpp"
#include "cost/policies/policy.hpp"
#include "cost/workload.hpp"

namespace libswap::tools {

/// What a workload file says about itself.
struct WorkloadMeta {
    std::string source;
    std::string model;
    std::string gpu;
    std::string licence;
    std::int64_t batch = 0;  ///< 0: not known
};

/// libswap-workload/1 as JSON text. Errors are one line and say where.
tl::expected<cost::Workload, std::string> parse_workload(std::string_view text);
/// From a file, which must have operations. The error names it.
tl::expected<cost::Workload, std::string> load_workload(const std::string& path);
std::string format_workload(const cost::Workload& workload, const WorkloadMeta& meta);

/// libswap-plan/1 as JSON text. Tensors are named by their id in the workload.
tl::expected<cost::Plan, std::string> parse_plan(std::string_view text,
                                                 const cost::Workload& workload);
std::string format_plan(const cost::Plan& plan, const cost::Workload& workload);

/// One machine: an object with the keys of the referee's machines.json (h2d_gbps, d2h_gbps,
/// h2d_duplex_gbps, d2h_duplex_gbps, transfer_latency_us, map_us_per_gib, unmap_us_per_gib), and,
/// where present, map_us_per_chunk, unmap_us_per_chunk, chunk_bytes, reaction_us, fp32_tflops,
/// tf32_tflops, fp16_tflops, fp64_tflops, mem_gbps, launch_latency_us. Others are ignored.
tl::expected<cost::Machine, std::string> parse_machine(std::string_view text,
                                                       const std::string& name);

/// A built-in machine's name, or the path of a machine file.
tl::expected<cost::Machine, std::string> load_machine(const std::string& name_or_path);

/// A policy by its name. The error lists the names.
tl::expected<cost::PolicyKind, std::string> load_policy(const std::string& name);
/// "libswap, lru, ..."
std::string policy_names();

/// "8GiB", "512M", "1e9", or "60%" of `whole_bytes`.
tl::expected<std::uint64_t, std::string> parse_budget(std::string_view text,
                                                      std::uint64_t whole_bytes);

/// "12.34 GiB", for people.
std::string format_bytes(double bytes);

}  // namespace libswap::tools
