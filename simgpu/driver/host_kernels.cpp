// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/host_kernels.hpp"

#include <map>
#include <mutex>
#include <shared_mutex>

#include "simgpu/host_kernels/digest.hpp"

namespace simgpu::driver {

namespace {

struct Registry {
    std::shared_mutex mutex;
    std::map<std::string, SimgpuHostKernel, std::less<>> functions;

    Registry() {
        for_each_host_kernel([this](const char* name, SimgpuHostKernel function) {
            functions.emplace(name, function);
        });
    }
};

Registry& registry() {
    static auto* instance = new Registry;  // leaked: launches may run after static destructors
    return *instance;
}

}  // namespace

void register_host_kernel(std::string name, SimgpuHostKernel function) {
    std::unique_lock lock(registry().mutex);
    if (function != nullptr) {
        registry().functions[std::move(name)] = function;
    } else {
        registry().functions.erase(name);
    }
}

SimgpuHostKernel find_host_kernel(std::string_view name) {
    std::shared_lock lock(registry().mutex);
    auto it = registry().functions.find(name);
    return it == registry().functions.end() ? nullptr : it->second;
}

}  // namespace simgpu::driver
