// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/environment.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "simgpu/device/shared_usage.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/machines_folder.hpp"
#include "simgpu/driver/visible_devices.hpp"

namespace simgpu::driver {

namespace {

constexpr std::uint64_t kDefaultMemoryBytes = std::uint64_t{4} << 30;

std::string_view variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

bool is_off(const char* name) {
    std::string_view value = variable(name);
    return value == "0" || value == "off" || value == "no" || value == "false";
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
    int base = text.starts_with("0x") ? 16 : 10;
    if (base == 16) text.remove_prefix(2);
    Number value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

MachineProfile read_profile() {
    std::string_view wanted = variable("SIMGPU_MACHINE");
    if (wanted.empty()) return default_profile();
    auto profile = load_profile(wanted, profile_directories());
    if (profile) return *profile;
    say("SIMGPU_MACHINE: {}, using {}", profile.error(), default_profile().name);
    return default_profile();
}

std::uint64_t read_memory_bytes(const MachineProfile& profile) {
    std::string_view text = variable("SIMGPU_MEMORY");
    std::uint64_t fallback = profile.memory_bytes != 0 ? profile.memory_bytes : kDefaultMemoryBytes;
    if (text.empty()) return fallback;
    auto bytes = parse_bytes(text);
    if (bytes && *bytes >= kPageBytes) return *bytes / kPageBytes * kPageBytes;
    say("SIMGPU_MEMORY=\"{}\" is not a size of at least 2 MiB, using {} bytes", text, fallback);
    return fallback;
}

std::uint8_t read_fill() {
    constexpr std::uint8_t kDefaultFill = 0xA5;
    std::string_view text = variable("SIMGPU_FILL");
    if (text.empty()) return kDefaultFill;
    auto value = parse_number<unsigned>(text);
    if (value && *value <= UINT8_MAX) return static_cast<std::uint8_t>(*value);
    say("SIMGPU_FILL=\"{}\" is not a byte, using {:#x}", text, kDefaultFill);
    return kDefaultFill;
}

bool read_without_data() {
    const std::string_view text = variable("SIMGPU_DATA");
    if (text == "none") return true;
    if (!text.empty() && text != "all")
        say("SIMGPU_DATA=\"{}\" is neither all nor none, using all", text);
    return false;
}

int read_device_count() {
    std::string_view text = variable("SIMGPU_DEVICES");
    if (text.empty()) return 1;
    auto count = parse_number<int>(text);
    if (count && *count >= 0 && *count <= kMaxDevices) return *count;
    say("SIMGPU_DEVICES=\"{}\" is not a number from 0 to {}, using 1", text, kMaxDevices);
    return 1;
}

double read_host_speed() {
    const std::string_view text = variable("SIMGPU_HOST_SPEED");
    if (text.empty()) return 1;
    const auto speed = parse_number<unsigned>(text);
    if (speed && *speed >= 1) return *speed;
    say("SIMGPU_HOST_SPEED=\"{}\" is not a number of at least 1, using 1", text);
    return 1;
}

std::shared_ptr<SharedUsage> open_shared_usage(SharedUsage::As as) {
    const std::string path(variable("SIMGPU_SHARE"));
    if (path.empty()) return nullptr;
    std::string error;
    auto shared = SharedUsage::open(path, &error, as);
    if (shared == nullptr) say("SIMGPU_SHARE: {}, sharing nothing", error);
    return shared;
}

}  // namespace

std::vector<std::string> profile_directories() {
    std::vector<std::string> directories;
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&profile_directories), &info) != 0 &&
        info.dli_fname != nullptr) {
        auto folder = std::filesystem::path(info.dli_fname).parent_path();
        directories.push_back(folder / "machines");
        directories.push_back(folder.parent_path() / "machines");
        // Installed: PREFIX/lib/simgpu or PREFIX/lib/TRIPLET/simgpu, and PREFIX/share.
        for (auto above : {folder.parent_path().parent_path(),
                           folder.parent_path().parent_path().parent_path()}) {
            directories.push_back(above / "share" / "libswap" / "machines");
        }
    }
    directories.emplace_back(kMachinesFolder);
    return directories;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    std::size_t digits = text.find_first_not_of("0123456789");
    auto value = parse_number<std::uint64_t>(text.substr(0, digits));
    if (!value) return std::nullopt;
    std::string_view suffix = digits == std::string_view::npos ? "" : text.substr(digits);
    if (suffix.empty() || suffix == "B") return value;
    constexpr std::string_view kUnits = "KMGT";
    std::size_t unit = kUnits.find(suffix[0] & ~0x20);
    std::string_view rest = suffix.substr(1);
    if (unit == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB"))
        return std::nullopt;
    unsigned shift = 10 * static_cast<unsigned>(unit + 1);
    if (*value > (UINT64_MAX >> shift)) return std::nullopt;
    return *value << shift;
}

Options read_options() {
    Options options;
    options.vmm = !is_off("SIMGPU_VMM");
    options.host_numa = !is_off("SIMGPU_HOST_NUMA");
    options.devices = visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), read_device_count());
    return options;
}

DeviceFacts device_facts() {
    DeviceFacts facts;
    facts.profile = read_profile();
    facts.memory_bytes = read_memory_bytes(facts.profile);
    facts.count = read_device_count();
    facts.shared = open_shared_usage(SharedUsage::As::Watcher);
    return facts;
}

MachineConfig machine_config(const Options& options) {
    MachineConfig config;
    config.profile = read_profile();
    config.memory.device_count = static_cast<int>(options.devices.size());
    std::copy(options.devices.begin(), options.devices.end(), config.memory.numbers.begin());
    config.memory.shared = open_shared_usage(SharedUsage::As::User);
    config.memory.capacity_bytes.fill(read_memory_bytes(config.profile));
    config.memory.fill_byte = read_fill();
    config.memory.without_data = read_without_data();
    config.delays = variable("SIMGPU_DELAYS");
    config.host_speed = read_host_speed();
    return config;
}

}  // namespace simgpu::driver
