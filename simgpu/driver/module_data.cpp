// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <cstring>

#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/module.hpp"

namespace simgpu::driver {

namespace {

constexpr std::uint64_t kVariableAlignment = 256;

std::uint64_t align(std::uint64_t value, std::uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

const ptx::Global* global_of(const image::Contents& contents, const std::string& name) {
    return contents.module != nullptr ? contents.module->find_global(name) : nullptr;
}

/// Bytes that a variable starts with.
Result<std::vector<std::byte>> initial_bytes(const image::Contents& contents,
                                             const image::VariableInfo& variable,
                                             const ptx::SymbolAddresses& addresses) {
    if (const ptx::Global* global = global_of(contents, variable.name)) {
        auto bytes = ptx::initial_bytes(*contents.module, *global, addresses);
        if (bytes) return *bytes;
        say("variable {} points at {}, which is not defined", variable.name, bytes.error());
        return failed(CUDA_ERROR_INVALID_PTX);
    }
    // Of a cubin only the plain bytes count: its kernels cannot run anyway.
    std::vector<std::byte> bytes = variable.initial;
    bytes.resize(variable.bytes);
    return bytes;
}

}  // namespace

Result<std::shared_ptr<ModuleData>> ModuleData::load(Context& context,
                                                     const image::Contents& contents) {
    std::shared_ptr<ModuleData> data(new ModuleData);
    if (CUresult status = data->place(context, contents); status != CUDA_SUCCESS)
        return failed(status);
    if (CUresult status = data->initialise(contents, context.gpu.ordinal); status != CUDA_SUCCESS) {
        return failed(status);
    }
    return data;
}

ModuleData::~ModuleData() {
    if (block_va_ != 0) static_cast<void>(machine().memory().free(block_va_));
    for (void* pointer : managed_) static_cast<void>(machine().memory().host_free(pointer));
}

CUresult ModuleData::place(Context& context, const image::Contents& contents) {
    std::uint64_t block_bytes = 0;
    for (const image::VariableInfo& variable : contents.variables) {
        const ptx::Global* global = global_of(contents, variable.name);
        if (global != nullptr && global->external) continue;
        Variable placed{0, variable.bytes, variable.managed};
        if (variable.managed) {
            auto pointer = machine().memory().host_allocate(
                std::max<std::uint64_t>(variable.bytes, 1), CU_MEMHOSTALLOC_DEVICEMAP);
            if (!pointer) return pointer.error();
            managed_.push_back(*pointer);
            placed.va = reinterpret_cast<std::uint64_t>(*pointer);
        } else {
            // An offset for now.
            placed.va = align(block_bytes, std::max(kVariableAlignment, variable.alignment));
            block_bytes = placed.va + variable.bytes;
        }
        variables_.emplace(variable.name, placed);
    }
    if (block_bytes != 0) {
        auto va = machine().memory().allocate(context.gpu.ordinal, block_bytes);
        if (!va) return va.error();
        block_va_ = *va;
    }
    for (auto& [name, variable] : variables_) {
        if (!variable.managed) variable.va += block_va_;
        addresses_.emplace(name, variable.va);
    }
    return CUDA_SUCCESS;
}

CUresult ModuleData::initialise(const image::Contents& contents, int device) {
    for (const image::VariableInfo& info : contents.variables) {
        const Variable* variable = find(info.name);
        if (variable == nullptr || variable->bytes == 0) continue;
        auto bytes = initial_bytes(contents, info, addresses_);
        if (!bytes) return bytes.error();
        Access access = machine().memory().resolve(device, variable->va, variable->bytes, true);
        if (!access.ok) return CUDA_ERROR_UNKNOWN;
        if (access.host == nullptr) continue;  // a device without data
        std::memset(access.host, 0, variable->bytes);
        std::memcpy(access.host, bytes->data(),
                    std::min<std::size_t>(bytes->size(), variable->bytes));
    }
    return CUDA_SUCCESS;
}

const Variable* ModuleData::find(std::string_view name) const {
    auto it = variables_.find(name);
    return it == variables_.end() ? nullptr : &it->second;
}

}  // namespace simgpu::driver
