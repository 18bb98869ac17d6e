// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/device_profile.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include <nlohmann/json.hpp>

namespace libswap {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = 1 << 20;

/// Reads numbers by name; remembers whether one was missing or out of range.
class Reader {
  public:
    explicit Reader(const Json& object) : object_(object) {}

    double number(const char* key, double least) {
        const auto found = object_.find(key);
        const double value =
            found != object_.end() && found->is_number() ? found->get<double>() : -1;
        if (!(value >= least) || !std::isfinite(value)) good_ = false;
        return value;
    }
    double number_or(const char* key, double fallback) {
        return object_.contains(key) ? number(key, 0) : fallback;
    }
    bool good() const { return good_; }

  private:
    const Json& object_;
    bool good_ = true;
};

constexpr double kLeastRate = 1e-3;  // GB/s, TFLOP/s

bool read_direction(const Json& root, const char* key, cost::LogGp& out) {
    const auto found = root.find(key);
    if (found == root.end() || !found->is_object()) return false;
    Reader reader(*found);
    out.latency_us = reader.number("latency_us", 0);
    out.overhead_us = reader.number("overhead_us", 0);
    out.gap_us = reader.number("gap_us", 0);
    out.gbps = reader.number("gbps", kLeastRate);
    out.small_gbps = reader.number_or("small_gbps", 0);
    out.small_bytes = static_cast<std::uint64_t>(reader.number_or("small_bytes", 0));
    return reader.good();
}

std::optional<Json> parse(std::string_view text) {
    Json root = Json::parse(text, nullptr, false);
    if (!root.is_object()) return std::nullopt;
    const auto format = root.find("format");
    if (format == root.end() || *format != "libswap-device/1") return std::nullopt;
    return root;
}

std::optional<cost::Machine> read(const Json& root) {
    cost::Machine machine = cost::engine_machine();
    if (!read_direction(root, "h2d", machine.link.to_device)) return std::nullopt;
    if (!read_direction(root, "d2h", machine.link.to_host)) return std::nullopt;
    Reader reader(root);
    machine.link.to_device_duplex_gbps = reader.number("h2d_duplex_gbps", kLeastRate);
    machine.link.to_host_duplex_gbps = reader.number("d2h_duplex_gbps", kLeastRate);
    machine.remap.map_us_per_gib = reader.number("map_us_per_gib", 0);
    machine.remap.unmap_us_per_gib = reader.number("unmap_us_per_gib", 0);
    machine.remap.map_us_per_chunk = reader.number("map_us_per_chunk", 0);
    machine.remap.unmap_us_per_chunk = reader.number("unmap_us_per_chunk", 0);
    machine.reaction_us = reader.number("reaction_us", 0);
    machine.ceilings.fp32_tflops = reader.number("fp32_tflops", kLeastRate);
    machine.ceilings.mem_gbps = reader.number("mem_gbps", kLeastRate);
    machine.ceilings.launch_us = reader.number("launch_latency_us", 0);
    if (!reader.good()) return std::nullopt;
    const auto name = root.find("device_name");
    if (name != root.end() && name->is_string()) machine.name = name->get<std::string>();
    return machine;
}

std::string read_whole(const std::string& path) {
    std::string text;
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) return text;
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
        text.append(buffer, n);
        if (text.size() > kMostBytes) break;
    }
    std::fclose(file);
    return text;
}

}  // namespace

std::string device_profile_folder() {
    if (const char* cache = secure_getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
        return std::string(cache) + "/libswap";
    if (const char* home = secure_getenv("HOME"); home != nullptr && *home == '/')
        return std::string(home) + "/.cache/libswap";
    return {};
}

std::string device_profile_path(std::string_view uuid, int driver_version) {
    const std::string folder = device_profile_folder();
    if (folder.empty()) return {};
    return folder + "/" + std::string(uuid) + "-" + std::to_string(driver_version) + ".json";
}

std::string newest_device_profile() {
    const std::string folder = device_profile_folder();
    DIR* directory = folder.empty() ? nullptr : opendir(folder.c_str());
    if (directory == nullptr) return {};
    std::string newest;
    timespec newest_time{};
    while (const dirent* entry = readdir(directory)) {
        const std::string_view name(entry->d_name);
        if (!name.ends_with(".json")) continue;
        const std::string path = folder + "/" + entry->d_name;
        struct stat info {};
        if (stat(path.c_str(), &info) != 0) continue;
        const timespec& time = info.st_mtim;
        if (!newest.empty() && std::tie(time.tv_sec, time.tv_nsec) <=
                                   std::tie(newest_time.tv_sec, newest_time.tv_nsec))
            continue;
        newest = path;
        newest_time = time;
    }
    closedir(directory);
    return newest;
}

bool make_device_profile_folder(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
        mkdir(path.substr(0, slash).c_str(), 0777);  // what matters is whether the file can be made
    }
    return access(path.substr(0, path.rfind('/')).c_str(), W_OK | X_OK) == 0;
}

bool save_device_profile(const std::string& path, std::string_view text) {
    (void)make_device_profile_folder(path);
    const std::string part = path + "." + std::to_string(getpid());
    std::FILE* file = std::fopen(part.c_str(), "we");
    if (file == nullptr) return false;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool closed = std::fclose(file) == 0;
    if (written && closed && std::rename(part.c_str(), path.c_str()) == 0) return true;
    unlink(part.c_str());
    return false;
}

std::optional<cost::Machine> parse_device_profile(std::string_view text) {
    const auto root = parse(text);
    return root ? read(*root) : std::nullopt;
}

bool is_device_profile(const std::string& path) {
    return parse_device_profile(read_whole(path)).has_value();
}

std::optional<cost::Machine> load_device_profile(const std::string& path,
                                                 std::string_view device_name) {
    if (path.empty()) return std::nullopt;
    auto machine = parse_device_profile(read_whole(path));
    if (machine && machine->name != device_name) return std::nullopt;
    return machine;
}

}  // namespace libswap
