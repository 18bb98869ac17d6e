// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cublas/driver.hpp"

#include <dlfcn.h>

#include <string>

#include "simgpu/cublas/log.hpp"

namespace libswap::simgpu::cublas {
namespace {

// The version whose ABI the calls here follow.
constexpr int kCudaVersion = 13000;

bool resolve(Driver& table) {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        say("no libcuda.so.1");
        return false;
    }
    table.host_kernel_register = reinterpret_cast<decltype(table.host_kernel_register)>(
        ::dlsym(library, "simgpuHostKernelRegister"));
    auto get =
        reinterpret_cast<decltype(&::cuGetProcAddress)>(::dlsym(library, "cuGetProcAddress_v2"));
    if (table.host_kernel_register == nullptr || get == nullptr) {
        say("this stand-in for cuBLAS works on the stand-in driver only");
        return false;
    }
    auto find = [get](const char* name, auto& function) {
        void* address = nullptr;
        CUdriverProcAddressQueryResult status;
        if (get(name, &address, kCudaVersion, CU_GET_PROC_ADDRESS_DEFAULT, &status) !=
                CUDA_SUCCESS ||
            address == nullptr) {
            say((std::string("the driver lacks ") + name).c_str());
            return false;
        }
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
        return true;
    };
#define SIMGPU_CUBLAS_FIND(name) &&find(#name, table.name##_fn)
    return true SIMGPU_CUBLAS_DRIVER(SIMGPU_CUBLAS_FIND);
#undef SIMGPU_CUBLAS_FIND
}

}  // namespace

const Driver* driver() {
    static Driver table;
    static const bool found = resolve(table);
    return found ? &table : nullptr;
}

CUresult current_context(CUcontext& context) {
    const Driver& d = *driver();
    CUresult result = d.cuInit_fn(0);
    if (result == CUDA_SUCCESS) {
        result = d.cuCtxGetCurrent_fn(&context);
    }
    if (result != CUDA_SUCCESS || context != nullptr) {
        return result;
    }
    CUdevice device = 0;
    result = d.cuDeviceGet_fn(&device, 0);
    if (result == CUDA_SUCCESS) {
        result = d.cuDevicePrimaryCtxRetain_fn(&context, device);
    }
    return result == CUDA_SUCCESS ? d.cuCtxSetCurrent_fn(context) : result;
}

// What is loaded says how parameters lie; what is done when it is launched is native.
HostKernel load_host_kernel(const char* name, std::size_t param_bytes, SimgpuHostKernel work) {
    HostKernel loaded;
    const Driver* d = driver();
    if (d == nullptr) return loaded;
    d->host_kernel_register(name, work);
    const std::string ptx = std::string(".version 7.0\n.target sm_52\n.address_size 64\n") +
                            ".visible .entry " + name + "(\n    .param .align 8 .b8 " + name +
                            "_param_0[" + std::to_string(param_bytes) + "]\n)\n{\n    trap;\n}\n";
    CUlibrary library = nullptr;
    loaded.status =
        d->cuLibraryLoadData_fn(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (loaded.status == CUDA_SUCCESS)
        loaded.status = d->cuLibraryGetKernel_fn(&loaded.kernel, library, name);
    return loaded;
}

void ensure_context(CUcontext context) {
    CUcontext current = nullptr;
    if (driver()->cuCtxGetCurrent_fn(&current) == CUDA_SUCCESS && current == nullptr) {
        driver()->cuCtxSetCurrent_fn(context);
    }
}

}  // namespace libswap::simgpu::cublas
