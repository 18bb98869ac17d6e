// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/visible_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

namespace simgpu::driver {
namespace {

constexpr std::string_view kUuidPrefix = "GPU-";

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<int> device_of_uuid(std::string_view entry, int count) {
    std::optional<int> found;
    for (int number = 0; number < count; ++number) {
        if (!uuid_text(uuid_of(number)).starts_with(entry)) continue;
        if (found) return std::nullopt;
        found = number;
    }
    return found;
}

std::optional<int> device_of(std::string_view entry, int count) {
    if (entry.starts_with(kUuidPrefix)) return device_of_uuid(entry, count);
    int number = 0;
    auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
    if (error != std::errc{} || end != entry.data() + entry.size()) return std::nullopt;
    if (number < 0 || number >= count) return std::nullopt;
    return number;
}

}  // namespace

CUuuid uuid_of(int number) {
    constexpr std::array<unsigned char, 16> kBase = {
        's', 'i', 'm', 'g', 'p', 'u', 0x40, 0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    CUuuid uuid{};
    std::memcpy(uuid.bytes, kBase.data(), kBase.size());
    uuid.bytes[15] = static_cast<char>(number + 1);
    return uuid;
}

std::string uuid_text(const CUuuid& uuid) {
    std::string text(kUuidPrefix);
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
    }
    return text;
}

std::vector<int> visible_devices(const char* text, int count) {
    std::vector<int> devices;
    if (text == nullptr) {
        devices.resize(static_cast<std::size_t>(count));
        std::iota(devices.begin(), devices.end(), 0);
        return devices;
    }
    for (std::string_view rest = text;;) {
        const auto comma = rest.find(',');
        const auto device = device_of(trimmed(rest.substr(0, comma)), count);
        if (!device) return devices;
        if (std::find(devices.begin(), devices.end(), *device) != devices.end()) return {};
        devices.push_back(*device);
        if (comma == std::string_view::npos) return devices;
        rest.remove_prefix(comma + 1);
    }
}

}  // namespace simgpu::driver
