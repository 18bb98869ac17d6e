// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Libraries that the program loads itself, and the way down to the driver.

#include "simgpu/cudart/registry.hpp"
#include "simgpu/cudart/runtime.hpp"

using namespace libswap::simgpu::cudart;

namespace {

CUlibrary driver_library(cudaLibrary_t library) { return reinterpret_cast<CUlibrary>(library); }

cudaError_t entry_point(const char* symbol, void** function, unsigned version,
                        unsigned long long flags, cudaDriverEntryPointQueryResult* status,
                        bool per_thread) {
    return on_driver([&] {
        if (symbol == nullptr || function == nullptr) {
            return cudaErrorInvalidValue;
        }
        cuuint64_t driver_flags = flags;
        if (flags == cudaEnableDefault && per_thread) {
            driver_flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
        }
        CUdriverProcAddressQueryResult found{};
        const cudaError_t error = call(CUDART_DRIVER(cuGetProcAddress, 12000), symbol, function,
                                       static_cast<int>(version), driver_flags, &found);
        if (status != nullptr) {
            *status = static_cast<cudaDriverEntryPointQueryResult>(found);
        }
        if (error == cudaErrorSymbolNotFound) {
            // Documented: the caller learns it from the status and from a null pointer.
            *function = nullptr;
            return status != nullptr ? cudaSuccess : error;
        }
        return error;
    });
}

}  // namespace

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
    return entry_point(symbol, function, CUDART_VERSION, flags, status, false);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                         unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
    return entry_point(symbol, function, CUDART_VERSION, flags, status, true);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
    return entry_point(symbol, function, version, flags, status, false);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                  unsigned version, unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
    return entry_point(symbol, function, version, flags, status, true);
}

cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t* id) {
    return on_driver([&] { return call(CUDART_DRIVER(cuGetExportTable, 3000), table, id); });
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* options,
                                void** values, unsigned count, cudaLibraryOption* library_options,
                                void** library_values, unsigned library_count) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuLibraryLoadData, 12000), reinterpret_cast<CUlibrary*>(library),
                    code, reinterpret_cast<CUjit_option*>(options), values, count,
                    reinterpret_cast<CUlibraryOption*>(library_options), library_values,
                    library_count);
    });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path,
                                    cudaJitOption* options, void** values, unsigned count,
                                    cudaLibraryOption* library_options, void** library_values,
                                    unsigned library_count) {
    return on_context([&] {
        return call(
            CUDART_DRIVER(cuLibraryLoadFromFile, 12000), reinterpret_cast<CUlibrary*>(library),
            path, reinterpret_cast<CUjit_option*>(options), values, count,
            reinterpret_cast<CUlibraryOption*>(library_options), library_values, library_count);
    });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    return on_context(
        [&] { return call(CUDART_DRIVER(cuLibraryUnload, 12000), driver_library(library)); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
    return on_context([&] {
        CUkernel handle = nullptr;
        const cudaError_t error =
            call(CUDART_DRIVER(cuLibraryGetKernel, 12000), &handle, driver_library(library), name);
        if (error == cudaSuccess) {
            adopt_kernel(handle);
            *kernel = reinterpret_cast<cudaKernel_t>(handle);
        }
        return error;
    });
}

cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuLibraryGetGlobal, 12000),
                    reinterpret_cast<CUdeviceptr*>(pointer), bytes, driver_library(library), name);
    });
}

cudaError_t cudaLibraryGetManaged(void** pointer, size_t* bytes, cudaLibrary_t library,
                                  const char* name) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuLibraryGetManaged, 12000),
                    reinterpret_cast<CUdeviceptr*>(pointer), bytes, driver_library(library), name);
    });
}

cudaError_t cudaLibraryGetUnifiedFunction(void** function, cudaLibrary_t library,
                                          const char* name) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuLibraryGetUnifiedFunction, 12000), function,
                    driver_library(library), name);
    });
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
    return on_context([&] {
        return call(CUDART_DRIVER(cuLibraryGetKernelCount, 12040), count, driver_library(library));
    });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                        cudaLibrary_t library) {
    return on_context([&] {
        const cudaError_t error =
            call(CUDART_DRIVER(cuLibraryEnumerateKernels, 12040),
                 reinterpret_cast<CUkernel*>(kernels), count, driver_library(library));
        for (unsigned i = 0; error == cudaSuccess && i < count; ++i) {
            adopt_kernel(reinterpret_cast<CUkernel>(kernels[i]));
        }
        return error;
    });
}
