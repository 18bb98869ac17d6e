// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/profile.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simgpu/device/default_profile.inc"

namespace simgpu {

namespace {

using Json = nlohmann::json;
using Failure = tl::unexpected<std::string>;

constexpr const char* kDefaultName = "pcie4-a100";

/// Reads numbers by name; the first that is missing or no number is remembered.
class Reader {
  public:
    explicit Reader(const Json& object) : object_(object) {}

    template <typename T>
    void number(const char* key, T& value) {
        const auto it = object_.find(key);
        if (it == object_.end() || !it->is_number() || it->template get<double>() < 0) {
            if (problem_.empty())
                problem_ = fmt::format("'{}' is missing or not a number of at least 0", key);
            return;
        }
        value = it->template get<T>();
    }
    void positive(const char* key, double& value) {
        number(key, value);
        if (value <= 0 && problem_.empty()) problem_ = fmt::format("'{}' must be above 0", key);
    }
    const std::string& problem() const { return problem_; }

  private:
    const Json& object_;
    std::string problem_;
};

std::string read_link(const Json& json, MachineProfile& p) {
    Reader reader(json);
    reader.positive("h2d_gbps", p.h2d_gbps);
    reader.positive("d2h_gbps", p.d2h_gbps);
    reader.positive("h2d_duplex_gbps", p.h2d_duplex_gbps);
    reader.positive("d2h_duplex_gbps", p.d2h_duplex_gbps);
    reader.positive("pageable_gbps", p.pageable_gbps);
    reader.positive("host_gbps", p.host_gbps);
    reader.number("transfer_latency_us", p.transfer_latency_us);
    return reader.problem();
}

std::string read_ceilings(const Json& json, MachineProfile& p) {
    Reader reader(json);
    reader.positive("fp32_tflops", p.fp32_tflops);
    reader.positive("mem_gbps", p.mem_gbps);
    reader.positive("thread_instructions_per_ns", p.thread_instructions_per_ns);
    reader.number("launch_latency_us", p.launch_latency_us);
    reader.number("sm_count", p.sm_count);
    reader.number("l2_bytes", p.l2_bytes);
    reader.number("clock_khz", p.clock_khz);
    reader.number("memory_bytes", p.memory_bytes);
    reader.number("host_alloc_us_per_gib", p.host_alloc_us_per_gib);
    reader.number("host_call_us", p.host_call_us);
    return reader.problem();
}

std::string read_vmm(const Json& json, MachineProfile& p) {
    Reader reader(json);
    reader.number("create_us", p.create_us);
    reader.number("create_us_per_gib", p.create_us_per_gib);
    reader.number("map_us", p.map_us);
    reader.number("map_us_per_gib", p.map_us_per_gib);
    reader.number("set_access_us", p.set_access_us);
    reader.number("set_access_us_per_gib", p.set_access_us_per_gib);
    reader.number("unmap_us", p.unmap_us);
    reader.number("unmap_us_per_gib", p.unmap_us_per_gib);
    return reader.problem().empty() ? "" : "in 'vmm', " + reader.problem();
}

std::string read_identity(const Json& json, MachineProfile& p) {
    p.source = json.value("source", "");
    p.device_name = json.value("device_name", "simgpu " + p.name);
    const auto capability = json.find("compute_capability");
    if (capability == json.end()) return "";
    if (!capability->is_array() || capability->size() != 2)
        return "'compute_capability' is not a pair of numbers";
    p.compute_major = (*capability)[0].get<int>();
    p.compute_minor = (*capability)[1].get<int>();
    return "";
}

std::string known_profiles(const std::vector<std::string>& directories) {
    std::vector<std::string> names{kDefaultName};
    for (const auto& directory : directories) {
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
            if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

tl::expected<MachineProfile, std::string> parse_profile(std::string_view text,
                                                        std::string_view name) {
    const auto fail = [&](const std::string& why) {
        return Failure(fmt::format("machine profile '{}': {}", name, why));
    };
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return fail("not a JSON object");
    MachineProfile profile;
    profile.name = std::string(name);
    try {
        for (const auto& read : {read_identity, read_link, read_ceilings}) {
            if (const std::string problem = read(json, profile); !problem.empty())
                return fail(problem);
        }
        const auto vmm = json.find("vmm");
        if (vmm == json.end()) return fail("'vmm' is missing");
        if (const std::string problem = read_vmm(*vmm, profile); !problem.empty())
            return fail(problem);
    } catch (const Json::exception& e) {
        return fail(e.what());
    }
    return profile;
}

tl::expected<MachineProfile, std::string> load_profile(
    std::string_view name_or_path, const std::vector<std::string>& directories) {
    const bool is_path =
        name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json");
    std::vector<std::filesystem::path> candidates;
    if (is_path) {
        candidates.emplace_back(name_or_path);
    } else {
        for (const auto& directory : directories) {
            candidates.push_back(std::filesystem::path(directory) /
                                 (std::string(name_or_path) + ".json"));
        }
    }
    for (const auto& path : candidates) {
        std::ifstream file(path);
        if (!file) continue;
        std::ostringstream text;
        text << file.rdbuf();
        return parse_profile(text.str(), path.stem().string());
    }
    if (name_or_path == kDefaultName) return default_profile();
    return Failure(fmt::format("machine profile '{}' {}; known: {}", name_or_path,
                               is_path ? "cannot be read" : "is unknown",
                               known_profiles(directories)));
}

const MachineProfile& default_profile() {
    static const MachineProfile profile = parse_profile(kDefaultProfileJson, kDefaultName).value();
    return profile;
}

}  // namespace simgpu
