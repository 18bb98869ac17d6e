// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/kernel_names.hpp"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace simgpu::driver {
namespace {

struct Names {
    std::shared_mutex mutex;
    std::unordered_map<std::string, std::unique_ptr<NamedFunction>> functions;
};

Names& names() {
    static auto* instance = new Names;  // leaked: launches may run after static destructors
    return *instance;
}

}  // namespace

NamedFunction& named_function(const std::string& mangled) {
    {
        const std::shared_lock lock(names().mutex);
        const auto known = names().functions.find(mangled);
        if (known != names().functions.end()) return *known->second;
    }
    auto fresh = std::make_unique<NamedFunction>();
    fresh->name = parse_kernel_name(mangled);
    fresh->work = find_named_kernel(fresh->name);
    const std::lock_guard lock(names().mutex);
    return *names().functions.emplace(mangled, std::move(fresh)).first->second;
}

}  // namespace simgpu::driver
