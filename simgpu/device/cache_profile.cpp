// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/device/cache_profile.hpp"

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace simgpu {

namespace {

using Json = nlohmann::json;

constexpr double kMostSets = 1 << 26;
constexpr double kMostWays = 1 << 16;

/// What is wrong with a profile; caught in parse_cache_profile.
struct Problem : std::runtime_error {
    using std::runtime_error::runtime_error;
};

double number(const Json& json, const char* key, double least) {
    const auto found = json.find(key);
    if (found == json.end()) throw Problem(fmt::format("'{}' is missing", key));
    const double value = found->is_number() ? found->get<double>() : -1;
    if (!(value >= least) || !std::isfinite(value))
        throw Problem(fmt::format("'{}' is not a number of at least {}", key, least));
    return value;
}

double number_or(const Json& json, const char* key, double fallback) {
    return json.contains(key) ? number(json, key, 0) : fallback;
}

std::uint64_t whole(const Json& json, const char* key) {
    const double value = number(json, key, 1);
    if (value != std::floor(value) || value > 1e15)
        throw Problem(fmt::format("'{}' is not a whole number", key));
    return static_cast<std::uint64_t>(value);
}

std::uint64_t power_of_two(const Json& json, const char* key) {
    const std::uint64_t value = whole(json, key);
    if (!std::has_single_bit(value)) throw Problem(fmt::format("'{}' is not a power of two", key));
    return value;
}

template <typename T, std::size_t N>
T word(const Json& json, const char* key, const std::pair<const char*, T> (&words)[N]) {
    const std::string value = json.value(key, words[0].first);
    std::string known;
    for (const auto& [text, meaning] : words) {
        if (value == text) return meaning;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
    }
    throw Problem(fmt::format("'{}' is none of {}", key, known));
}

Replacement replacement(const Json& json) {
    static constexpr std::pair<const char*, Replacement> kWords[] = {
        {"lru", Replacement::Lru},
        {"plru", Replacement::PseudoLru},
        {"random", Replacement::Random},
        {"fifo", Replacement::Fifo}};
    return word(json, "replacement", kWords);
}

SetIndex set_index(const Json& json) {
    static constexpr std::pair<const char*, SetIndex> kWords[] = {{"modulo", SetIndex::Modulo},
                                                                  {"hashed", SetIndex::Hashed}};
    return word(json, "index", kWords);
}

/// `lines` of `line_bytes` in sets of `ways`.
CacheShape shape(const Json& json, std::uint64_t lines, std::uint64_t line_bytes) {
    CacheShape shape;
    const std::uint64_t ways = whole(json, "ways");
    if (lines == 0 || lines % ways != 0)
        throw Problem("the size is not a multiple of 'ways' lines");
    if (static_cast<double>(lines / ways) > kMostSets || static_cast<double>(ways) > kMostWays)
        throw Problem("too many sets or ways");
    shape.sets = static_cast<std::uint32_t>(lines / ways);
    shape.ways = static_cast<std::uint32_t>(ways);
    shape.line_bytes = line_bytes;
    shape.replacement = replacement(json);
    shape.index = set_index(json);
    if (shape.index == SetIndex::Hashed && !std::has_single_bit(shape.sets))
        throw Problem("a hashed index needs a power of two of sets");
    return shape;
}

CacheLevel cache_level(const Json& json) {
    static constexpr std::pair<const char*, bool> kScopes[] = {{"device", false}, {"sm", true}};
    CacheLevel level;
    level.name = json.value("name", "cache");
    const std::uint64_t line_bytes = power_of_two(json, "line_bytes");
    const std::uint64_t bytes = whole(json, "bytes");
    if (bytes % line_bytes != 0) throw Problem("'bytes' is not a multiple of 'line_bytes'");
    level.shape = shape(json, bytes / line_bytes, line_bytes);
    level.sector_bytes =
        json.contains("sector_bytes") ? power_of_two(json, "sector_bytes") : line_bytes;
    if (level.sector_bytes > line_bytes || line_bytes / level.sector_bytes > 64)
        throw Problem("'sector_bytes' does not fit 'line_bytes'");
    level.per_sm = word(json, "scope", kScopes);
    level.is_virtual = json.value("virtual", false);
    static constexpr std::pair<const char*, int> kLoads[] = {
        {"all", 3}, {"data", 1}, {"readonly", 2}};
    const int loads = word(json, "loads", kLoads);
    level.data = (loads & 1) != 0;
    level.read_only = (loads & 2) != 0;
    level.latency_cycles = number(json, "latency_cycles", 1);
    return level;
}

TlbLevel tlb_level(const Json& json) {
    TlbLevel level;
    level.name = json.value("name", "TLB");
    level.shape = shape(json, whole(json, "entries"), power_of_two(json, "page_bytes"));
    level.miss_cycles = number(json, "miss_cycles", 0);
    return level;
}

CacheProfile read(const Json& json) {
    CacheProfile profile;
    profile.memory_latency_cycles = number(json, "memory_latency_cycles", 1);
    profile.noise = number_or(json, "noise", 0);
    profile.seed = static_cast<std::uint64_t>(number_or(json, "seed", 1));
    for (const Json& level : json.value("caches", Json::array()))
        profile.caches.push_back(cache_level(level));
    for (const Json& level : json.value("tlbs", Json::array()))
        profile.tlbs.push_back(tlb_level(level));
    return profile;
}

}  // namespace

std::uint64_t CacheProfile::cache_bytes(std::size_t level) const {
    const CacheShape& shape = caches[level].shape;
    return std::uint64_t{shape.sets} * shape.ways * shape.line_bytes;
}

tl::expected<CacheProfile, std::string> parse_cache_profile(std::string_view text,
                                                            std::string_view name) {
    const auto fail = [&](const std::string& why) {
        return tl::unexpected(fmt::format("cache profile '{}': {}", name, why));
    };
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return fail("not a JSON object");
    try {
        CacheProfile profile = read(json);
        profile.name = std::string(name);
        return profile;
    } catch (const Problem& problem) {
        return fail(problem.what());
    } catch (const Json::exception& problem) {
        return fail(problem.what());
    }
}

tl::expected<CacheProfile, std::string> load_cache_profile(
    std::string_view name_or_path, const std::vector<std::string>& directories) {
    const bool is_path =
        name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json");
    std::vector<std::filesystem::path> candidates;
    if (is_path) candidates.emplace_back(name_or_path);
    for (const std::string& directory : directories) {
        if (!is_path)
            candidates.push_back(std::filesystem::path(directory) /
                                 (std::string(name_or_path) + ".json"));
    }
    for (const auto& path : candidates) {
        std::ifstream file(path);
        if (!file) continue;
        std::ostringstream text;
        text << file.rdbuf();
        return parse_cache_profile(text.str(), path.stem().string());
    }
    return tl::unexpected(fmt::format("cache profile '{}' cannot be read", name_or_path));
}

}  // namespace simgpu
