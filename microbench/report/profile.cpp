// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/report/profile.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "microbench/report/table_json.hpp"

namespace libswap::bench {

namespace {

using Json = nlohmann::ordered_json;

Json loggp_json(const cost::LogGp& model) {
    return {{"latency_us", model.latency_us}, {"overhead_us", model.overhead_us},
            {"gap_us", model.gap_us},         {"gbps", model.gbps},
            {"small_gbps", model.small_gbps}, {"small_bytes", model.small_bytes}};
}

Json profile_json(const DeviceProfile& profile) {
    const cost::Machine& m = profile.machine;
    Json json{
        {"format", "libswap-device/1"},
        {"device_name", profile.device_name},
        {"uuid", profile.uuid},
        {"driver_version", profile.driver_version},
        {"measured_by", profile.measured_by},
        {"h2d_gbps", m.link.to_device.gbps},
        {"d2h_gbps", m.link.to_host.gbps},
        {"h2d_duplex_gbps", m.link.to_device_duplex_gbps},
        {"d2h_duplex_gbps", m.link.to_host_duplex_gbps},
        {"transfer_latency_us", (m.link.to_device.setup_us() + m.link.to_host.setup_us()) / 2},
        {"h2d", loggp_json(m.link.to_device)},
        {"d2h", loggp_json(m.link.to_host)},
        {"map_us_per_gib", m.remap.map_us_per_gib},
        {"unmap_us_per_gib", m.remap.unmap_us_per_gib},
        {"map_us_per_chunk", m.remap.map_us_per_chunk},
        {"unmap_us_per_chunk", m.remap.unmap_us_per_chunk},
        {"chunk_bytes", m.remap.chunk_bytes},
        {"reaction_us", m.reaction_us},
        {"fp32_tflops", m.ceilings.fp32_tflops},
        {"mem_gbps", m.ceilings.mem_gbps},
        {"launch_latency_us", m.ceilings.launch_us}};
    if (m.ceilings.fp64_tflops > 0) json["fp64_tflops"] = m.ceilings.fp64_tflops;
    if (m.ceilings.tf32_tflops > 0) json["tf32_tflops"] = m.ceilings.tf32_tflops;
    if (m.ceilings.fp16_tflops > 0) json["fp16_tflops"] = m.ceilings.fp16_tflops;
    return json;
}

Json policy_json(const PolicyFinding& policy) {
    return {{"name", policy_name(policy.policy)},
            {"evictions", policy.evictions},
            {"oldest_part", policy.oldest_part},
            {"first_come_part", policy.first_come_part}};
}

Json curve_json(const LatencyCurve& curve) {
    Json points = Json::array();
    for (const CurvePoint& p : curve.points)
        points.push_back({{"bytes", p.footprint_bytes},
                          {"cycles", p.median_cycles},
                          {"p10", p.p10_cycles},
                          {"p90", p.p90_cycles}});
    return points;
}

Json hierarchy_json(const Hierarchy& hierarchy) {
    Json json = Json::object();
    json["caches"] = Json::array();
    for (const FoundCache& cache : hierarchy.caches) {
        const Geometry& g = cache.geometry;
        json["caches"].push_back({{"name", cache.name},
                                  {"path", load_path_name(cache.path)},
                                  {"latency_cycles", cache.latency.cycles},
                                  {"bytes", g.bytes},
                                  {"line_bytes", g.line_bytes},
                                  {"sector_bytes", g.fill_bytes},
                                  {"ways", g.ways},
                                  {"index", g.hashed ? "hashed" : "modulo"},
                                  {"replacement", policy_json(g.policy)}});
    }
    json["memory_latency_cycles"] = hierarchy.memory_cycles;
    json["tlbs"] = Json::array();
    for (const FoundTranslation& tlb : hierarchy.translations)
        json["tlbs"].push_back({{"page_bytes", tlb.page_bytes},
                                {"entries", tlb.entries},
                                {"ways", tlb.ways},
                                {"miss_cycles", tlb.miss_cycles},
                                {"replacement", policy_json(tlb.policy)}});
    json["latency_over_footprint"] = {{"data", curve_json(hierarchy.data_curve)},
                                      {"read-only", curve_json(hierarchy.read_only_curve)},
                                      {"global", curve_json(hierarchy.global_curve)},
                                      {"pages", curve_json(hierarchy.translation_curve)}};
    return json;
}

std::string or_unknown(std::uint64_t bytes) {
    return bytes == 0 ? "?" : size_name(static_cast<double>(bytes));
}

Row latency_row(std::string name, const LatencyLevel& level) {
    return {std::move(name),
            {level.cycles, level.cycles * (1 - 2 * level.deviation), 100 * level.deviation, 2}};
}

}  // namespace

std::string format_profile(const DeviceProfile& profile) {
    return profile_json(profile).dump(2) + "\n";
}

std::string format_json(const Report& report) {
    Json json;
    json["profile"] = profile_json(report.profile);
    json["tables"] = Json::array();
    for (const Table& table : report.tables) json["tables"].push_back(table_json(table));
    if (!report.hierarchy.global_curve.points.empty())
        json["hierarchy"] = hierarchy_json(report.hierarchy);
    json["not_measured"] = report.not_measured;
    return json.dump(2) + "\n";
}

std::vector<Plot> hierarchy_plots(const Hierarchy& hierarchy) {
    const auto series = [](const char* name, const LatencyCurve& curve) {
        Series s{name, {}, false};
        for (const CurvePoint& p : curve.points)
            s.points.push_back({static_cast<double>(p.footprint_bytes), p.median_cycles});
        return s;
    };
    Plot footprint{"latency_footprint",
                   "Latency of a load over what is read in a circle",
                   "bytes",
                   "cycles",
                   {},
                   {},
                   true};
    footprint.series = {series("all caches", hierarchy.data_curve),
                        series("read-only", hierarchy.read_only_curve),
                        series("device's caches only", hierarchy.global_curve),
                        series("a load every 2 MiB", hierarchy.translation_curve)};
    footprint.shows[0] = "Each step is a cache that is too small for the circle.";
    footprint.shows[1] =
        hierarchy.translations.empty()
            ? "Loads in pages of their own show no cost of translations."
            : "Loads in pages of their own become slow where translations run out.";
    Plot stride{"latency_stride",
                "Latency of a load over the distance to the next",
                "bytes",
                "cycles",
                {},
                {},
                true};
    Series strides{"all caches, circle too large for the nearest", {}, false};
    for (const CurvePoint& p : hierarchy.stride_curve)
        strides.points.push_back({static_cast<double>(p.footprint_bytes), p.median_cycles});
    stride.series = {std::move(strides)};
    stride.shows[0] = "Neighbours in one line are brought together, so short distances are fast.";
    stride.shows[1] = "From the line's size on every load misses the nearest cache.";
    return {std::move(footprint), std::move(stride)};
}

std::vector<Table> hierarchy_tables(const Hierarchy& hierarchy) {
    Table latencies{"latencies", "How long does a load take, by where it hits?", "cycles", {}, {}};
    for (const FoundCache& cache : hierarchy.caches) {
        const Geometry& g = cache.geometry;
        latencies.rows.push_back(latency_row(cache.name, cache.latency));
        std::string note = fmt::format("{}: {}, lines of {}", cache.name, or_unknown(g.bytes),
                                       or_unknown(g.line_bytes));
        if (g.fill_bytes != g.line_bytes)
            note += fmt::format(" in sectors of {}", or_unknown(g.fill_bytes));
        if (g.ways != 0) {
            note += fmt::format(
                ", {} ways, {} index, replacement {} ({} evictions seen, the oldest in {:.0f} %)",
                g.ways, g.hashed ? "hashed" : "plain", policy_name(g.policy.policy),
                g.policy.evictions, 100 * g.policy.oldest_part);
        }
        latencies.notes.push_back(std::move(note));
    }
    latencies.add("device memory", hierarchy.memory_cycles);
    Table pages{"translations", "What do page translations cost?", "cycles", {}, {}};
    for (std::size_t k = 0; k < hierarchy.translations.size(); ++k) {
        const FoundTranslation& tlb = hierarchy.translations[k];
        pages.add(fmt::format("miss of translations' level {}", k + 1), tlb.miss_cycles);
        pages.notes.push_back(fmt::format("level {}: {} entries of {}, {} ways, replacement {}",
                                          k + 1, tlb.entries, or_unknown(tlb.page_bytes), tlb.ways,
                                          policy_name(tlb.policy.policy)));
    }
    std::vector<Table> tables{std::move(latencies)};
    if (!pages.rows.empty()) tables.push_back(std::move(pages));
    return tables;
}

}  // namespace libswap::bench
