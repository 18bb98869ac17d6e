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
    std::map<std::string, HostKernel, std::less<>> functions;

    Registry() {
        // Ours all look at `without_data`.
        for_each_host_kernel([this](const char* name, SimgpuHostKernel function) {
            functions.emplace(name, HostKernel{function, true});
        });
    }
};

Registry& registry() {
    static auto* instance = new Registry;  // leaked: launches may run after static destructors
    return *instance;
}

}  // namespace

void register_host_kernel(std::string name, HostKernel kernel) {
    std::unique_lock lock(registry().mutex);
    if (kernel.function != nullptr) {
        registry().functions[std::move(name)] = kernel;
    } else {
        registry().functions.erase(name);
    }
}

HostKernel find_host_kernel(std::string_view name) {
    std::shared_lock lock(registry().mutex);
    auto it = registry().functions.find(name);
    return it == registry().functions.end() ? HostKernel{} : it->second;
}

}  // namespace simgpu::driver
