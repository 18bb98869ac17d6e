// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/formats.hpp"

#include <cmath>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/device_profile.hpp"
#include "tools/files.hpp"

namespace libswap::tools {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

tl::unexpected<std::string> error(std::string text) { return tl::unexpected(std::move(text)); }

/// Tensor ids as a file names them, to indices.
class TensorIds {
  public:
    bool add(std::int64_t id, cost::TensorIndex index) { return index_.emplace(id, index).second; }
    cost::TensorIndex at(const json& id) const {
        const auto found = index_.find(id.get<std::int64_t>());
        if (found == index_.end()) {
            throw std::invalid_argument(fmt::format("tensor {} is not in the list", id.dump()));
        }
        return found->second;
    }

  private:
    std::unordered_map<std::int64_t, cost::TensorIndex> index_;
};

std::uint64_t count_of(const json& value, const char* what) {
    if (!value.is_number_integer() ||
        (value.is_number_integer() && value.get<std::int64_t>() < 0)) {
        throw std::invalid_argument(
            fmt::format("{} is not a number of bytes: {}", what, value.dump()));
    }
    return value.get<std::uint64_t>();
}

void read_op(const json& op, const TensorIds& ids, cost::Workload& workload) {
    std::vector<cost::Use> uses;
    for (const json& id : op.at("reads")) uses.push_back({ids.at(id), true, false});
    for (const json& id : op.at("writes")) uses.push_back({ids.at(id), false, true});
    std::vector<cost::TensorIndex> frees;
    for (const json& id : op.at("frees")) frees.push_back(ids.at(id));
    const double duration_us = op.at("duration_us").get<double>();
    if (!(duration_us >= 0) || !std::isfinite(duration_us)) {
        throw std::invalid_argument("duration_us is not a time");
    }
    workload.add_op(duration_us, count_of(op.at("workspace_bytes"), "workspace_bytes"), uses, frees,
                    op.at("name").get<std::string>());
}

cost::Workload read_workload(const json& root) {
    cost::Workload workload;
    TensorIds ids;
    for (const json& t : root.at("tensors")) {
        const auto id = t.at("id").get<std::int64_t>();
        const cost::TensorIndex index = workload.add_tensor(
            {id, count_of(t.at("bytes"), "bytes"), t.at("persistent").get<bool>()});
        if (!ids.add(id, index)) {
            throw std::invalid_argument(fmt::format("tensor {} is there twice", id));
        }
    }
    std::size_t number = 0;
    for (const json& op : root.at("ops")) {
        try {
            read_op(op, ids, workload);
        } catch (const std::exception& e) {
            throw std::invalid_argument(fmt::format("operation {}: {}", number, e.what()));
        }
        ++number;
    }
    return workload;
}

cost::Plan read_plan(const json& root, const cost::Workload& workload) {
    TensorIds ids;
    for (std::size_t t = 0; t < workload.tensors().size(); ++t) {
        ids.add(workload.tensors()[t].id, static_cast<cost::TensorIndex>(t));
    }
    cost::Plan plan;
    for (const json& a : root.at("actions")) {
        const auto kind_name = a.at("do").get<std::string>();
        cost::Action action;
        if (kind_name == "out") {
            action.kind = cost::ActionKind::Out;
        } else if (kind_name == "copy") {
            action.kind = cost::ActionKind::Copy;
        } else if (kind_name == "drop") {
            action.kind = cost::ActionKind::Drop;
        } else if (kind_name == "in") {
            action.kind = cost::ActionKind::In;
        } else {
            throw std::invalid_argument(fmt::format("unknown action {}", kind_name));
        }
        action.tensor = ids.at(a.at("tensor"));
        const char* key = action.kind == cost::ActionKind::In ? "at" : "after";
        const std::uint64_t op = count_of(a.at(key), key);
        if (op >= workload.op_count()) {
            throw std::invalid_argument(fmt::format("operation {} is not in the workload", op));
        }
        action.op = static_cast<cost::OpIndex>(op);
        if (a.contains("bytes")) action.bytes = count_of(a.at("bytes"), "bytes");
        plan.actions.push_back(action);
    }
    return plan;
}

double positive(const json& root, const char* key) {
    const double value = root.at(key).get<double>();
    if (!(value > 0) || !std::isfinite(value)) {
        throw std::invalid_argument(fmt::format("{} must be above zero", key));
    }
    return value;
}

double optional(const json& root, const char* key, double otherwise) {
    if (!root.contains(key)) return otherwise;
    const double value = root.at(key).get<double>();
    if (!(value >= 0) || !std::isfinite(value)) {
        throw std::invalid_argument(fmt::format("{} must not be below zero", key));
    }
    return value;
}

cost::Machine read_machine(const json& root, const std::string& name) {
    cost::Machine m;
    m.name = name;
    m.link.to_device.gbps = positive(root, "h2d_gbps");
    m.link.to_host.gbps = positive(root, "d2h_gbps");
    m.link.to_device_duplex_gbps = positive(root, "h2d_duplex_gbps");
    m.link.to_host_duplex_gbps = positive(root, "d2h_duplex_gbps");
    m.link.to_device.latency_us = m.link.to_host.latency_us =
        optional(root, "transfer_latency_us", 0);
    m.remap.map_us_per_gib = optional(root, "map_us_per_gib", 0);
    m.remap.unmap_us_per_gib = optional(root, "unmap_us_per_gib", 0);
    m.remap.map_us_per_chunk = optional(root, "map_us_per_chunk", 0);
    m.remap.unmap_us_per_chunk = optional(root, "unmap_us_per_chunk", 0);
    m.remap.chunk_bytes = static_cast<std::uint64_t>(
        optional(root, "chunk_bytes", static_cast<double>(m.remap.chunk_bytes)));
    m.reaction_us = optional(root, "reaction_us", 0);
    m.ceilings.fp32_tflops = optional(root, "fp32_tflops", m.ceilings.fp32_tflops);
    m.ceilings.mem_gbps = optional(root, "mem_gbps", m.ceilings.mem_gbps);
    m.ceilings.launch_us = optional(root, "launch_latency_us", m.ceilings.launch_us);
    m.ceilings.tf32_tflops = optional(root, "tf32_tflops", 0);
    m.ceilings.fp16_tflops = optional(root, "fp16_tflops", 0);
    m.ceilings.fp64_tflops = optional(root, "fp64_tflops", 0);
    return m;
}

/// Parses JSON of a format and hands it on; every exception becomes one line.
template <typename Read>
auto parse(std::string_view text, const char* format, Read read)
    -> tl::expected<decltype(read(std::declval<const json&>())), std::string> {
    try {
        const json root = json::parse(text);
        if (!root.is_object()) return error("not a JSON object");
        if (format != nullptr && root.value("format", "") != format) {
            return error(fmt::format("not a {} file", format));
        }
        return read(root);
    } catch (const json::parse_error& e) {
        return error(fmt::format("not JSON (byte {})", e.byte));
    } catch (const std::exception& e) {
        return error(e.what());
    }
}

}  // namespace

tl::expected<cost::Workload, std::string> parse_workload(std::string_view text) {
    return parse(text, "libswap-workload/1", [](const json& root) { return read_workload(root); });
}

tl::expected<cost::Workload, std::string> load_workload(const std::string& path) {
    const auto text = read_file(path);
    if (!text) return error(text.error());
    auto workload = parse_workload(*text);
    if (!workload) return error(fmt::format("{}: {}", path, workload.error()));
    if (workload->op_count() == 0) {
        return error(fmt::format("{}: the workload has no operations", path));
    }
    return workload;
}

std::string format_workload(const cost::Workload& workload, const WorkloadMeta& meta) {
    ordered_json root;
    root["format"] = "libswap-workload/1";
    root["meta"] = {{"source", meta.source},
                    {"model", meta.model},
                    {"batch", meta.batch > 0 ? ordered_json(meta.batch) : ordered_json()},
                    {"gpu", meta.gpu},
                    {"licence", meta.licence}};
    ordered_json& tensors = root["tensors"] = ordered_json::array();
    for (const cost::Tensor& t : workload.tensors()) {
        tensors.push_back({{"id", t.id}, {"bytes", t.bytes}, {"persistent", t.persistent}});
    }
    ordered_json& ops = root["ops"] = ordered_json::array();
    const auto id = [&](cost::TensorIndex t) { return workload.tensors()[t].id; };
    for (std::size_t i = 0; i < workload.op_count(); ++i) {
        ordered_json reads = ordered_json::array();
        ordered_json writes = ordered_json::array();
        ordered_json frees = ordered_json::array();
        for (const cost::Use& use : workload.uses(i)) {
            if (use.read) reads.push_back(id(use.tensor));
            if (use.write) writes.push_back(id(use.tensor));
        }
        for (const cost::TensorIndex t : workload.frees(i)) frees.push_back(id(t));
        ops.push_back({{"name", std::string(workload.name(i))},
                       {"duration_us", workload.op(i).duration_us},
                       {"reads", std::move(reads)},
                       {"writes", std::move(writes)},
                       {"workspace_bytes", workload.op(i).workspace_bytes},
                       {"frees", std::move(frees)}});
    }
    return root.dump() + "\n";
}

tl::expected<cost::Plan, std::string> parse_plan(std::string_view text,
                                                 const cost::Workload& workload) {
    return parse(text, "libswap-plan/1",
                 [&](const json& root) { return read_plan(root, workload); });
}

std::string format_plan(const cost::Plan& plan, const cost::Workload& workload) {
    ordered_json root;
    root["format"] = "libswap-plan/1";
    ordered_json& actions = root["actions"] = ordered_json::array();
    for (const cost::Action& a : plan.actions) {
        ordered_json action{{"do", cost::action_name(a.kind)},
                            {"tensor", workload.tensors()[a.tensor].id}};
        action[a.kind == cost::ActionKind::In ? "at" : "after"] = a.op;
        if (a.bytes != cost::kWholeTensor) action["bytes"] = a.bytes;
        actions.push_back(std::move(action));
    }
    return root.dump() + "\n";
}

tl::expected<cost::Machine, std::string> parse_machine(std::string_view text,
                                                       const std::string& name) {
    if (auto measured = parse_device_profile(text)) return std::move(*measured);
    return parse(text, nullptr, [&](const json& root) { return read_machine(root, name); });
}

tl::expected<cost::Machine, std::string> load_machine(const std::string& name_or_path) {
    if (const cost::Machine* machine = cost::find_machine(name_or_path.c_str())) return *machine;
    if (name_or_path == "measured") {
        const std::string newest = newest_device_profile();
        if (newest.empty()) return error("nothing was measured yet: run swapctl bench");
        return load_machine(newest);
    }
    if (name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".json")) {
        return error(fmt::format(
            "unknown machine {} (known: pcie4-a100, pcie5-h100, pcie3-v100, measured, or a .json "
            "file)",
            name_or_path));
    }
    const auto text = read_file(name_or_path);
    if (!text) return error(text.error());
    auto machine = parse_machine(*text, name_or_path);
    if (!machine) return error(fmt::format("{}: {}", name_or_path, machine.error()));
    return machine;
}

std::string policy_names() {
    std::string names;
    for (const cost::PolicyKind kind : cost::all_policies()) {
        if (!names.empty()) names += ", ";
        names += cost::policy_name(kind);
    }
    return names;
}

tl::expected<cost::PolicyKind, std::string> load_policy(const std::string& name) {
    const auto policy = cost::find_policy(name);
    if (!policy) return error(fmt::format("unknown policy {} (known: {})", name, policy_names()));
    return *policy;
}

tl::expected<std::uint64_t, std::string> parse_budget(std::string_view text,
                                                      std::uint64_t whole_bytes) {
    const std::string copy(text);
    char* end = nullptr;
    const double number = std::strtod(copy.c_str(), &end);
    const std::string unit(end);
    const std::unordered_map<std::string, double> units{
        {"", 1},         {"B", 1},        {"K", 1024.0},
        {"KiB", 1024.0}, {"M", 0x1p20},   {"MiB", 0x1p20},
        {"G", 0x1p30},   {"GiB", 0x1p30}, {"T", 0x1p40},
        {"TiB", 0x1p40}, {"KB", 1e3},     {"MB", 1e6},
        {"GB", 1e9},     {"TB", 1e12},    {"%", static_cast<double>(whole_bytes) / 100}};
    const auto known = units.find(unit);
    if (end == copy.c_str() || known == units.end() || !(number > 0)) {
        return error(fmt::format("not a budget: {} (try 8GiB, or 60%)", text));
    }
    const double bytes = number * known->second;
    if (!(bytes < 0x1p62)) return error(fmt::format("not a budget: {} is too much", text));
    return static_cast<std::uint64_t>(bytes);
}

std::string format_bytes(double bytes) {
    const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 2, units[unit]);
}

}  // namespace libswap::tools
