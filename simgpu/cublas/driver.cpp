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

}  // namespace libswap::simgpu::cublas
