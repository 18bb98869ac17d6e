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

DeviceMachine device_machine(const Driver& driver, CUdevice device) {
    DeviceMachine built_in;
    CUuuid uuid{};
    int version = 0;
    char name[256] = "";
    if (driver.cuDeviceGetUuid_v2 == nullptr || driver.cuDeviceGetName == nullptr ||
        driver.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS ||
        driver.cuDeviceGetName(name, sizeof name, device) != CUDA_SUCCESS ||
        driver.cuDriverGetVersion(&version) != CUDA_SUCCESS)
        return built_in;
    const std::string path = device_profile_path(uuid_text(uuid), version);
    auto measured = load_device_profile(path, name);
    if (!measured) return built_in;
    return {std::move(*measured), path};
}

}  // namespace libswap
