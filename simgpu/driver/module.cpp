// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/module.hpp"

#include <algorithm>

#include "simgpu/driver/attributes.hpp"
#include "simgpu/driver/context_memory.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/exec/program.hpp"

namespace simgpu::driver {

namespace {

// All tables are leaked: calls may come after static destructors.
template <typename T>
HandleTable<T>& leaked_table() {
    static auto* table = new HandleTable<T>;
    return *table;
}

std::uint32_t compute_capability() {
    const MachineProfile& profile = machine().profile();
    return static_cast<std::uint32_t>(profile.compute_major * 10 + profile.compute_minor);
}

/// Whether a kernel of the module may print.
bool uses_printf(const image::Contents& contents) {
    if (contents.module == nullptr || contents.module->program == nullptr) return false;
    const auto& all = contents.module->program->functions;
    return std::any_of(all.begin(), all.end(), [](const exec::Function& function) {
        return !function.defined && function.name == "vprintf";
    });
}

}  // namespace

HandleTable<Module>& modules() { return leaked_table<Module>(); }
HandleTable<Library>& libraries() { return leaked_table<Library>(); }
HandleTable<Function>& functions() { return leaked_table<Function>(); }
HandleTable<Kernel>& kernels() { return leaked_table<Kernel>(); }

CUresult report(const image::ImageError& error, const JitOptions& options) {
    say("image refused: {}", error.reason);
    options.log_error(error.reason);
    return error.code;
}

Result<image::Image> open_image(const void* data, const JitOptions& options, bool unpack) {
    auto code = image::load_image(data, compute_capability());
    if (!code) return failed(report(code.error(), options));
    if (unpack) {
        auto contents = code->contents();
        if (!contents) return failed(report(contents.error(), options));
    }
    return std::move(*code);
}

int Function::max_threads() const {
    int limit = info->max_threads != 0 ? static_cast<int>(info->max_threads) : kMaxThreadsPerBlock;
    if (info->registers != 0) {
        int by_registers =
            kRegistersPerSm / static_cast<int>(info->registers) / kWarpThreads * kWarpThreads;
        limit = std::min(limit, by_registers);
    }
    return std::min(limit, kMaxThreadsPerBlock);
}

Result<std::shared_ptr<Module>> Module::load(Context& context, image::Image code) {
    auto contents = code.contents();
    if (!contents) return failed(report(contents.error(), {}));
    if (uses_printf(**contents)) {
        const CUresult status = need_printf_buffer(context);
        if (status != CUDA_SUCCESS) return failed(status);
    }
    std::shared_ptr<Module> module(new Module(context));
    auto data = ModuleData::load(context, **contents);
    if (!data) return failed(data.error());
    module->data_ = *data;
    const ptx::Module* ptx_module = (*contents)->module.get();
    for (const image::KernelInfo& info : (*contents)->kernels) {
        const ptx::Kernel* kernel =
            ptx_module != nullptr ? ptx_module->find_kernel(info.name) : nullptr;
        std::shared_ptr<Function> function(new Function{context, module->handle(), code,
                                                        module->data_, &info, ptx_module, kernel,
                                                        (*contents)->architecture});
        module->by_name_.emplace(info.name, function.get());
        driver::functions().add(function);
        module->functions_.push_back(std::move(function));
    }
    return module;
}

Module::~Module() {
    for (const auto& function : functions_) driver::functions().remove(function.get());
}

Function* Module::function(std::string_view name) const {
    auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
}

Library::~Library() {
    for (const auto& kernel : kernels_) driver::kernels().remove(kernel.get());
}

CUresult Library::open() {
    if (opened_) return CUDA_SUCCESS;
    auto contents = code_.contents();
    if (!contents) return report(contents.error(), {});
    for (const image::KernelInfo& info : (*contents)->kernels) {
        kernels_.push_back(std::make_shared<Kernel>(Kernel{*this, info.name, &info}));
        driver::kernels().add(kernels_.back());
    }
    opened_ = true;
    return CUDA_SUCCESS;
}

CUresult Library::kernels(const std::vector<std::shared_ptr<Kernel>>*& out) {
    std::lock_guard lock(mutex_);
    SIMGPU_TRY(open());
    out = &kernels_;
    return CUDA_SUCCESS;
}

CUresult Library::kernel(std::string_view name, Kernel*& out) {
    const std::vector<std::shared_ptr<Kernel>>* all = nullptr;
    SIMGPU_TRY(kernels(all));
    auto it = std::find_if(all->begin(), all->end(),
                           [&](const auto& kernel) { return kernel->name == name; });
    if (it == all->end()) return CUDA_ERROR_NOT_FOUND;
    out = it->get();
    return CUDA_SUCCESS;
}

CUresult Library::module_in(Context& context, std::shared_ptr<Module>& out) {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Module>& module = modules_[&context];
    if (module == nullptr) {
        auto loaded = Module::load(context, code_);
        if (!loaded) return loaded.error();
        module = *loaded;
        modules().add(module);
    }
    out = module;
    return CUDA_SUCCESS;
}

std::vector<std::shared_ptr<Module>> Library::loaded() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Module>> found;
    for (const auto& [context, module] : modules_) {
        if (module != nullptr) found.push_back(module);
    }
    return found;
}

void Library::forget(Context& context) {
    std::lock_guard lock(mutex_);
    auto it = modules_.find(&context);
    if (it == modules_.end()) return;
    modules().remove(it->second.get());
    modules_.erase(it);
}

CUresult find_function(CUfunction handle, Context* context, std::shared_ptr<Function>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = functions().find(handle);
    if (out != nullptr) return CUDA_SUCCESS;
    auto kernel = kernels().find(handle);
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (context == nullptr) SIMGPU_TRY(current_context(context));
    std::shared_ptr<Module> module;
    SIMGPU_TRY(kernel->library.module_in(*context, module));
    out = functions().find(module->function(kernel->name));
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

void release_modules_of(Context& context) {
    for (const auto& library : libraries().all()) library->forget(context);
    modules().remove_if([&](const Module& module) { return &module.context() == &context; });
}

}  // namespace simgpu::driver
