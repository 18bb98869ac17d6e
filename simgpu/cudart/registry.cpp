// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Registration happens before main, thousands of times in big programs: it keeps pointers only.
// Images are loaded when a kernel or variable of theirs is first used, as the vendor's lazy loading
// does.

#include "simgpu/cudart/registry.hpp"

#include <tsl/robin_map.h>

#include <new>
#include <shared_mutex>
#include <utility>

#include "simgpu/cudart/runtime.hpp"

namespace libswap::simgpu::cudart {
namespace {

/// Leaked: the program unregisters from its own exit handlers, in any order with ours.
struct Registry {
    std::shared_mutex mutex;
    tsl::robin_map<const void*, Kernel*> kernels;
    tsl::robin_map<const void*, Variable*> variables;
    std::deque<Kernel> adopted;
};

Registry& registry() {
    static auto* instance = new Registry;
    return *instance;
}

FatBinary* from_handle(void** handle) { return reinterpret_cast<FatBinary*>(handle); }

void add_variable(void** handle, const void* symbol, const char* name, std::size_t bytes,
                  void** managed_pointer) {
    FatBinary* binary = from_handle(handle);
    if (binary == nullptr) {
        return;
    }
    binary->variables.push_back({binary, name, bytes, managed_pointer});
    binary->symbols.push_back(symbol);
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    all.variables[symbol] = &binary->variables.back();
}

/// Gives the host its pointers to managed variables. The caller holds the binary's mutex.
cudaError_t publish_managed(FatBinary& binary, CUlibrary library) {
    if (binary.managed_ready) {
        return cudaSuccess;
    }
    for (const Variable& variable : binary.variables) {
        if (variable.managed_pointer == nullptr) {
            continue;
        }
        CUdeviceptr address = 0;
        std::size_t bytes = 0;
        const cudaError_t error = call(CUDART_DRIVER(cuLibraryGetManaged, 12000), &address, &bytes,
                                       library, variable.name);
        if (error != cudaSuccess) {
            return error;
        }
        *variable.managed_pointer = reinterpret_cast<void*>(address);
    }
    binary.managed_ready = true;
    return cudaSuccess;
}

cudaError_t init_module(FatBinary& binary) {
    CUlibrary library = nullptr;
    const cudaError_t error = binary.library(&library);
    if (error != cudaSuccess) {
        return error;
    }
    const std::scoped_lock lock(binary.mutex);
    return publish_managed(binary, library);
}

}  // namespace

cudaError_t FatBinary::library(CUlibrary* library) noexcept {
    const std::scoped_lock lock(mutex);
    if (loaded == nullptr && failure == cudaSuccess) {
        failure = call(CUDART_DRIVER(cuLibraryLoadData, 12000), &loaded, wrapper, nullptr, nullptr,
                       0U, nullptr, nullptr, 0U);
    }
    *library = loaded;
    // Without memory the next try may find some.
    return failure == cudaErrorMemoryAllocation ? std::exchange(failure, cudaSuccess) : failure;
}

cudaError_t Kernel::handle(CUkernel* kernel) noexcept {
    *kernel = handle_.load(std::memory_order_acquire);
    if (*kernel != nullptr) {
        return cudaSuccess;
    }
    CUlibrary library = nullptr;
    cudaError_t error = owner_->library(&library);
    if (error != cudaSuccess) {
        return error;
    }
    error = call(CUDART_DRIVER(cuLibraryGetKernel, 12000), kernel, library, name_);
    if (error == cudaSuccess) {
        handle_.store(*kernel, std::memory_order_release);
    }
    return error == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction : error;
}

cudaError_t Kernel::function(CUfunction* function) noexcept {
    const CUcontext context = entered_context();
    const std::uint64_t generation = context_generation();
    for (const Found* found = found_.load(std::memory_order_acquire); found != nullptr;
         found = found->next) {
        if (found->context == context && found->generation == generation) {
            *function = found->function;
            return cudaSuccess;
        }
    }
    CUkernel kernel = nullptr;
    cudaError_t error = handle(&kernel);
    if (error == cudaSuccess) {
        error = call(CUDART_DRIVER(cuKernelGetFunction, 12000), function, kernel);
    }
    if (error != cudaSuccess) {
        return error;
    }
    auto* found = new (std::nothrow) Found{context, generation, *function, nullptr};
    if (found != nullptr) {
        const Found* head = found_.load(std::memory_order_relaxed);
        do {
            found->next = head;
        } while (!found_.compare_exchange_weak(head, found, std::memory_order_release));
    }
    return cudaSuccess;
}

bool Kernel::gave(CUfunction function) const noexcept {
    for (const Found* found = found_.load(std::memory_order_acquire); found != nullptr;
         found = found->next) {
        if (found->function == function) {
            return true;
        }
    }
    return false;
}

const void* find_symbol(CUfunction function) noexcept {
    Registry& all = registry();
    const std::shared_lock lock(all.mutex);
    for (const auto& entry : all.kernels) {
        if (entry.second->gave(function)) {
            return entry.first;
        }
    }
    return nullptr;
}

Kernel* find_kernel(const void* symbol) noexcept {
    Registry& all = registry();
    const std::shared_lock lock(all.mutex);
    const auto entry = all.kernels.find(symbol);
    return entry == all.kernels.end() ? nullptr : entry->second;
}

Kernel* adopt_kernel(CUkernel handle) {
    if (Kernel* known = find_kernel(handle)) {
        return known;
    }
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    all.adopted.emplace_back(handle);
    all.kernels[handle] = &all.adopted.back();
    return &all.adopted.back();
}

Variable* find_variable(const void* symbol) noexcept {
    Registry& all = registry();
    const std::shared_lock lock(all.mutex);
    const auto entry = all.variables.find(symbol);
    return entry == all.variables.end() ? nullptr : entry->second;
}

Variable* find_managed(const void* address) noexcept {
    Registry& all = registry();
    const std::shared_lock lock(all.mutex);
    for (const auto& entry : all.variables) {
        Variable* variable = entry.second;
        if (variable->managed_pointer != nullptr && *variable->managed_pointer == address) {
            return variable;
        }
    }
    return nullptr;
}

cudaError_t variable_address(Variable& variable, CUdeviceptr* address,
                             std::size_t* bytes) noexcept {
    CUlibrary library = nullptr;
    cudaError_t error = variable.owner->library(&library);
    if (error != cudaSuccess) {
        return error;
    }
    error = variable.managed_pointer != nullptr ? call(CUDART_DRIVER(cuLibraryGetManaged, 12000),
                                                       address, bytes, library, variable.name)
                                                : call(CUDART_DRIVER(cuLibraryGetGlobal, 12000),
                                                       address, bytes, library, variable.name);
    return error == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : error;
}

}  // namespace libswap::simgpu::cudart

using namespace libswap::simgpu::cudart;

// Called by what nvcc generates; crt/host_runtime.h declares them, but only to nvcc.
#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
    return reinterpret_cast<void**>(new FatBinary(wrapper));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
    FatBinary* binary = from_handle(handle);
    if (binary == nullptr) {
        return;
    }
    {
        Registry& all = registry();
        const std::scoped_lock lock(all.mutex);
        for (const void* symbol : binary->symbols) {
            all.kernels.erase(symbol);
            all.variables.erase(symbol);
        }
    }
    if (binary->loaded != nullptr) {
        // At exit the driver may be gone already, and says so.
        call(CUDART_DRIVER(cuLibraryUnload, 12000), binary->loaded);
        binary->loaded = nullptr;
    }
    // The binary itself stays: a host stub's static handle may still point to one of its kernels.
}

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
    FatBinary* binary = from_handle(handle);
    if (binary == nullptr) {
        return;
    }
    binary->kernels.emplace_back(binary, name);
    binary->symbols.push_back(host_function);
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    all.kernels[host_function] = &binary->kernels.back();
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int,
                       std::size_t bytes, int, int) {
    add_variable(handle, host_variable, name, bytes, nullptr);
}

void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* name, int,
                              std::size_t bytes, int, int) {
    add_variable(handle, host_pointer, name, bytes, host_pointer);
}

char __cudaInitModule(void** handle) {
    FatBinary* binary = from_handle(handle);
    if (binary == nullptr) {
        return 0;
    }
    return on_context([binary] { return init_module(*binary); }) == cudaSuccess ? 1 : 0;
}

}  // extern "C"
#pragma GCC visibility pop
