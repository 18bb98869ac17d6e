// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/device_machine.hpp"

#include <fmt/format.h>

#include "runtime/device_profile.hpp"

namespace libswap {
namespace {

/// "GPU-..." as nvidia-smi writes it.
std::string uuid_text(const CUuuid& uuid) {
    std::string text = "GPU-";
    for (std::size_t k = 0; k < sizeof uuid.bytes; ++k) {
        if (k == 4 || k == 6 || k == 8 || k == 10) text += '-';
        text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[k]));
    }
    return text;
}

}  // namespace

bool DeviceMachine::read_profile() {
    auto measured = load_device_profile(profile_path, device_name);
    if (!measured) return false;
    machine = std::move(*measured);
    source = profile_path;
    return true;
}

DeviceMachine device_machine(const Driver& driver, CUdevice device) {
    DeviceMachine found;
    CUuuid uuid{};
    int version = 0;
    char name[256] = "";
    if (driver.cuDeviceGetUuid_v2 == nullptr || driver.cuDeviceGetName == nullptr ||
        driver.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS ||
        driver.cuDeviceGetName(name, sizeof name, device) != CUDA_SUCCESS ||
        driver.cuDriverGetVersion(&version) != CUDA_SUCCESS)
        return found;
    found.profile_path = device_profile_path(uuid_text(uuid), version);
    found.device_name = name;
    found.read_profile();
    return found;
}

}  // namespace libswap
