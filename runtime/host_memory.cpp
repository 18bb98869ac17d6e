// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/host_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/address_space.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kUnknown = UINT64_MAX;

/// The number in a file that holds one, or kUnknown ("max", or no such file).
std::uint64_t read_number(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (!file) return kUnknown;
    unsigned long long value = 0;
    const bool ok = std::fscanf(file, "%llu", &value) == 1;
    std::fclose(file);
    return ok ? value : kUnknown;
}

std::uint64_t read_mem_available(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (!file) return kUnknown;
    char line[256];
    unsigned long long kib = 0;
    bool found = false;
    while (!found && std::fgets(line, sizeof line, file))
        found = std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1;
    std::fclose(file);
    return found ? kib * 1024 : kUnknown;
}

/// This process's group under the unified hierarchy ("/a/b"), or "".
std::string unified_group(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (!file) return {};
    char line[1024];
    std::string group;
    while (group.empty() && std::fgets(line, sizeof line, file))
        if (std::strncmp(line, "0::", 3) == 0) group.assign(line + 3, std::strcspn(line + 3, "\n"));
    std::fclose(file);
    return group;
}

std::uint64_t room(std::uint64_t limit, std::uint64_t used) {
    if (limit == kUnknown) return kUnknown;
    if (used == kUnknown) used = 0;
    return limit > used ? limit - used : 0;
}

}  // namespace

std::uint64_t available_host_bytes(const char* proc, const char* cgroup) {
    const std::string root = cgroup;
    std::uint64_t bytes = read_mem_available(std::string(proc) + "/meminfo");
    // Every group up to the root may have a limit of its own.
    std::string group = unified_group(std::string(proc) + "/self/cgroup");
    for (;;) {
        const std::string folder = root + group;
        bytes = std::min(bytes, room(read_number(folder + "/memory.max"),
                                     read_number(folder + "/memory.current")));
        if (group.empty() || group == "/") break;
        group.erase(group.rfind('/'));
    }
    bytes = std::min(bytes, room(read_number(root + "/memory/memory.limit_in_bytes"),
                                 read_number(root + "/memory/memory.usage_in_bytes")));
    return bytes == kUnknown ? 0 : bytes;
}

std::uint64_t available_host_bytes() { return available_host_bytes("/proc", "/sys/fs/cgroup"); }

std::uint64_t host_limit_of(const Config& config) {
    const std::uint64_t available = available_host_bytes();
    return config.host_limit.resolve(available, available / 2) / kPageBytes * kPageBytes;
}

bool is_host_pointer(const Driver& driver, std::uint64_t address) noexcept {
    unsigned type = 0;
    const CUresult code =
        driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    // Memory that the driver has never heard of is the host's.
    return code == CUDA_ERROR_INVALID_VALUE || (code == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST);
}

}  // namespace libswap
