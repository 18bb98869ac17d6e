// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <fstream>
#include <iterator>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/module.hpp"

namespace simgpu::driver {
namespace {

CUresult load_data(CUmodule* out, const void* data, unsigned count, CUjit_option* options,
                   void** values) {
    Context* context = nullptr;
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check_unsafe_call());
    SIMGPU_TRY(check_jit_options(count, options, values));
    auto code = open_image(data, JitOptions(count, options, values), true);
    if (!code) return code.error();
    auto module = Module::load(*context, *code);
    if (!module) return module.error();
    *out = (*module)->handle();
    modules().add(*module);
    return CUDA_SUCCESS;
}

/// A file as text that ends in NUL.
CUresult read_file(const char* path, std::vector<char>& out) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    out.assign(std::istreambuf_iterator<char>(file), {});
    out.push_back('\0');
    return CUDA_SUCCESS;
}

CUresult load_file(CUmodule* out, const char* path) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<char> bytes;
    SIMGPU_TRY(read_file(path, bytes));
    return load_data(out, bytes.data(), 0, nullptr, nullptr);
}

CUresult find_module(CUmodule handle, std::shared_ptr<Module>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = modules().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult unload(CUmodule handle) {
    std::shared_ptr<Module> module;
    SIMGPU_TRY(find_module(handle, module));
    SIMGPU_TRY(check_unsafe_call());
    // Launches under way keep what they use, but the variables' addresses may be handed out again.
    static_cast<void>(module->context().device().synchronize());
    modules().remove(handle);
    return CUDA_SUCCESS;
}

CUresult get_function(CUfunction* out, CUmodule handle, const char* name) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Module> module;
    SIMGPU_TRY(find_module(handle, module));
    Function* function = module->function(name);
    if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
    *out = reinterpret_cast<CUfunction>(function);
    return CUDA_SUCCESS;
}

CUresult answer_variable(const Variable* variable, CUdeviceptr* va, std::size_t* bytes) {
    if (variable == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (va != nullptr) *va = variable->va;
    if (bytes != nullptr) *bytes = variable->bytes;
    return CUDA_SUCCESS;
}

CUresult get_global(CUdeviceptr* va, std::size_t* bytes, CUmodule handle, const char* name) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (name == nullptr || (va == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Module> module;
    SIMGPU_TRY(find_module(handle, module));
    return answer_variable(module->data().find(name), va, bytes);
}

CUresult enumerate(CUfunction* out, unsigned capacity, CUmodule handle) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || capacity == 0) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Module> module;
    SIMGPU_TRY(find_module(handle, module));
    std::size_t count = std::min<std::size_t>(capacity, module->functions().size());
    for (std::size_t i = 0; i < count; ++i)
        out[i] = reinterpret_cast<CUfunction>(module->functions()[i].get());
    return CUDA_SUCCESS;
}

CUresult load_library(CUlibrary* out, const void* data, const JitOptions& options) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Unpacked at first use, unless somebody wants to read at once what is wrong with it.
    auto code = open_image(data, options, options.wants_log());
    if (!code) return code.error();
    auto library = std::make_shared<Library>(std::move(*code));
    *out = library->handle();
    libraries().add(std::move(library));
    return CUDA_SUCCESS;
}

CUresult find_library(CUlibrary handle, std::shared_ptr<Library>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = libraries().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult unload_library(CUlibrary handle) {
    std::shared_ptr<Library> library;
    SIMGPU_TRY(find_library(handle, library));
    libraries().remove(handle);
    for (const auto& module : library->loaded()) {
        static_cast<void>(module->context().device().synchronize());
        library->forget(module->context());
    }
    return CUDA_SUCCESS;
}

CUresult library_module(CUlibrary handle, std::shared_ptr<Module>& out) {
    std::shared_ptr<Library> library;
    Context* context = nullptr;
    SIMGPU_TRY(find_library(handle, library));
    SIMGPU_TRY(current_context(context));
    return library->module_in(*context, out);
}

CUresult library_variable(CUdeviceptr* va, std::size_t* bytes, CUlibrary handle, const char* name,
                          bool managed) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (name == nullptr || (va == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Module> module;
    SIMGPU_TRY(library_module(handle, module));
    const Variable* variable = module->data().find(name);
    if (variable != nullptr && variable->managed != managed) variable = nullptr;
    return answer_variable(variable, va, bytes);
}

CUresult find_kernel(CUkernel handle, std::shared_ptr<Kernel>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = kernels().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuModuleLoad, (CUmodule * out, const char* path),
            { return driver::load_file(out, path); })
SIMGPU_CALL(cuModuleLoadData, (CUmodule * out, const void* image),
            { return driver::load_data(out, image, 0, nullptr, nullptr); })
SIMGPU_CALL(cuModuleLoadDataEx,
            (CUmodule * out, const void* image, unsigned count, CUjit_option* options,
             void** values),
            { return driver::load_data(out, image, count, options, values); })
SIMGPU_CALL(cuModuleLoadFatBinary, (CUmodule * out, const void* image),
            { return driver::load_data(out, image, 0, nullptr, nullptr); })
SIMGPU_CALL(cuModuleUnload, (CUmodule module), { return driver::unload(module); })
SIMGPU_CALL(cuModuleGetFunction, (CUfunction * out, CUmodule module, const char* name),
            { return driver::get_function(out, module, name); })
SIMGPU_CALL(cuModuleGetFunctionCount, (unsigned* count, CUmodule handle), {
    std::shared_ptr<driver::Module> module;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::find_module(handle, module));
    *count = static_cast<unsigned>(module->functions().size());
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuModuleEnumerateFunctions, (CUfunction * out, unsigned capacity, CUmodule module),
            { return driver::enumerate(out, capacity, module); })
SIMGPU_CALL(cuModuleGetGlobal_v2,
            (CUdeviceptr * va, size_t* bytes, CUmodule module, const char* name),
            { return driver::get_global(va, bytes, module, name); })
SIMGPU_CALL(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
})

SIMGPU_CALL(cuLibraryLoadData,
            (CUlibrary * out, const void* code, CUjit_option* options, void** values,
             unsigned count, CUlibraryOption*, void**, unsigned),
            {
                SIMGPU_TRY(driver::check_jit_options(count, options, values));
                return driver::load_library(out, code, driver::JitOptions(count, options, values));
            })
SIMGPU_CALL(cuLibraryLoadFromFile,
            (CUlibrary * out, const char* path, CUjit_option* options, void** values,
             unsigned count, CUlibraryOption*, void**, unsigned),
            {
                if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
                if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
                SIMGPU_TRY(driver::check_jit_options(count, options, values));
                std::vector<char> bytes;
                SIMGPU_TRY(driver::read_file(path, bytes));
                return driver::load_library(out, bytes.data(),
                                            driver::JitOptions(count, options, values));
            })
SIMGPU_CALL(cuLibraryUnload, (CUlibrary library), { return driver::unload_library(library); })
SIMGPU_CALL(cuLibraryGetKernel, (CUkernel * out, CUlibrary handle, const char* name), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<driver::Library> library;
    driver::Kernel* kernel = nullptr;
    SIMGPU_TRY(driver::find_library(handle, library));
    SIMGPU_TRY(library->kernel(name, kernel));
    *out = reinterpret_cast<CUkernel>(kernel);
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuLibraryGetKernelCount, (unsigned* count, CUlibrary handle), {
    std::shared_ptr<driver::Library> library;
    const std::vector<std::shared_ptr<driver::Kernel>>* kernels = nullptr;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::find_library(handle, library));
    SIMGPU_TRY(library->kernels(kernels));
    *count = static_cast<unsigned>(kernels->size());
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuLibraryEnumerateKernels, (CUkernel * out, unsigned capacity, CUlibrary handle), {
    std::shared_ptr<driver::Library> library;
    const std::vector<std::shared_ptr<driver::Kernel>>* kernels = nullptr;
    if (out == nullptr || capacity == 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(driver::find_library(handle, library));
    SIMGPU_TRY(library->kernels(kernels));
    for (size_t i = 0; i < std::min<size_t>(capacity, kernels->size()); ++i) {
        out[i] = reinterpret_cast<CUkernel>((*kernels)[i].get());
    }
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuLibraryGetModule, (CUmodule * out, CUlibrary library), {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<driver::Module> module;
    SIMGPU_TRY(driver::library_module(library, module));
    *out = module->handle();
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuLibraryGetGlobal,
            (CUdeviceptr * va, size_t* bytes, CUlibrary library, const char* name),
            { return driver::library_variable(va, bytes, library, name, false); })
SIMGPU_CALL(cuLibraryGetManaged,
            (CUdeviceptr * va, size_t* bytes, CUlibrary library, const char* name),
            { return driver::library_variable(va, bytes, library, name, true); })

SIMGPU_CALL(cuKernelGetFunction, (CUfunction * out, CUkernel handle), {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<driver::Kernel> kernel;
    std::shared_ptr<driver::Function> function;
    SIMGPU_TRY(driver::find_kernel(handle, kernel));
    SIMGPU_TRY(driver::find_function(reinterpret_cast<CUfunction>(handle), nullptr, function));
    *out = reinterpret_cast<CUfunction>(function.get());
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuKernelGetLibrary, (CUlibrary * out, CUkernel handle), {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<driver::Kernel> kernel;
    SIMGPU_TRY(driver::find_kernel(handle, kernel));
    *out = kernel->library.handle();
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuKernelGetName, (const char** name, CUkernel handle), {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<driver::Kernel> kernel;
    SIMGPU_TRY(driver::find_kernel(handle, kernel));
    *name = kernel->info->name.c_str();
    return CUDA_SUCCESS;
})
