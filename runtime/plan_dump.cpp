// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/plan_dump.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <iterator>

#include "runtime/log.hpp"

namespace libswap {
namespace {

using Out = std::back_insert_iterator<std::string>;

void add_machine(Out out, const cost::Machine& m) {
    fmt::format_to(out,
                   "\"machine\": {{\"h2d_gbps\": {}, \"d2h_gbps\": {}, \"h2d_duplex_gbps\": {}, "
                   "\"d2h_duplex_gbps\": {}, \"transfer_latency_us\": {}, \"map_us_per_gib\": {}, "
                   "\"unmap_us_per_gib\": {}, \"map_us_per_chunk\": {}, \"unmap_us_per_chunk\": "
                   "{}, \"chunk_bytes\": {}, \"reaction_us\": {}}}",
                   m.link.to_device.gbps, m.link.to_host.gbps, m.link.to_device_duplex_gbps,
                   m.link.to_host_duplex_gbps, m.link.to_device.latency_us, m.remap.map_us_per_gib,
                   m.remap.unmap_us_per_gib, m.remap.map_us_per_chunk, m.remap.unmap_us_per_chunk,
                   m.remap.chunk_bytes, m.reaction_us);
}

/// `key`: [indices of the uses that `wanted` picks].
template <typename Wanted>
void add_uses(Out out, const char* key, std::span<const cost::Use> uses, Wanted&& wanted) {
    fmt::format_to(out, ", \"{}\": [", key);
    const char* comma = "";
    for (const cost::Use& use : uses) {
        if (!wanted(use)) continue;
        fmt::format_to(out, "{}{}", comma, use.tensor);
        comma = ", ";
    }
    fmt::format_to(out, "]");
}

void add_workload(Out out, const cost::Workload& workload) {
    fmt::format_to(out, "\"workload\": {{\"format\": \"libswap-workload/1\", \"tensors\": [");
    for (std::size_t t = 0; t < workload.tensors().size(); ++t)
        fmt::format_to(out, "{}{{\"id\": {}, \"bytes\": {}, \"persistent\": {}}}",
                       t == 0 ? "" : ", ", t, workload.tensors()[t].bytes,
                       workload.tensors()[t].persistent);
    fmt::format_to(out, "], \"ops\": [");
    for (std::size_t i = 0; i < workload.op_count(); ++i) {
        fmt::format_to(
            out, "{}{{\"name\": \"op {}\", \"duration_us\": {:.6f}, \"workspace_bytes\": {}",
            i == 0 ? "" : ", ", i, workload.op(i).duration_us, workload.op(i).workspace_bytes);
        add_uses(out, "reads", workload.uses(i), [](const cost::Use& use) { return use.read; });
        add_uses(out, "writes", workload.uses(i), [](const cost::Use& use) { return use.write; });
        fmt::format_to(out, ", \"frees\": [{}]}}", fmt::join(workload.frees(i), ", "));
    }
    fmt::format_to(out, "]}}");
}

void add_plan(Out out, const cost::Plan& plan) {
    fmt::format_to(out, "\"plan\": {{\"format\": \"libswap-plan/1\", \"actions\": [");
    const char* comma = "";
    for (const cost::Action& a : plan.actions) {
        fmt::format_to(out, "{}{{\"do\": \"{}\", \"tensor\": {}, \"{}\": {}", comma,
                       cost::action_name(a.kind), a.tensor,
                       a.kind == cost::ActionKind::In ? "at" : "after", a.op);
        if (a.bytes != cost::kWholeTensor) fmt::format_to(out, ", \"bytes\": {}", a.bytes);
        fmt::format_to(out, "}}");
        comma = ", ";
    }
    fmt::format_to(out, "]}}");
}

}  // namespace

std::string plan_dump(const cost::Workload& workload, const cost::Machine& machine,
                      std::uint64_t budget_bytes, const cost::PlanResult& made) {
    std::string text;
    const Out out = std::back_inserter(text);
    fmt::format_to(out,
                   "{{\"format\": \"libswap-made-plan/1\", \"budget_bytes\": {}, "
                   "\"predicted_us\": {:.3f}, \"compute_us\": {:.3f}, ",
                   budget_bytes, made.predicted.iteration_us, made.compute_us);
    add_machine(out, machine);
    text += ", ";
    add_workload(out, workload);
    text += ", ";
    add_plan(out, made.plan);
    text += "}\n";
    return text;
}

void write_plan_dump(const std::string& path, const std::string& text) {
    std::FILE* file = std::fopen(path.c_str(), "we");
    const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file && std::fclose(file) == 0 && written) return;
    LIBSWAP_LOG(Warning, "cannot write the plan to {}, going on without", path);
}

}  // namespace libswap
