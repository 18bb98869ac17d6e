// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The driver is found as the vendor's runtime finds it: one dlopen, one dlsym, and cuGetProcAddress
// for everything, all before cuInit, so that an interposer meets here what it meets there.

#include "simgpu/cudart/driver_table.hpp"

#include <dlfcn.h>

#include <array>
#include <mutex>

namespace libswap::simgpu::cudart {
namespace {

struct Request {
    const char* name;
    int version;
    cuuint64_t flags;
};

constexpr std::array kRequests{
#define CUDART_DRIVER_API(name, version, flags) Request{#name, version, flags},
#include "simgpu/cudart/driver_api.def"
#undef CUDART_DRIVER_API
};
static_assert(kRequests.size() == static_cast<std::size_t>(Entry::Count));

std::array<void*, kRequests.size()> entries;
std::once_flag once;
cudaError_t outcome = cudaErrorInitializationError;

cudaError_t fill_entries() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) {
        return cudaErrorInsufficientDriver;
    }
    const auto get =
        reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
    if (get == nullptr) {
        return cudaErrorInsufficientDriver;
    }
    void* probe = nullptr;
    get("", &probe, 0, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
    for (std::size_t i = 0; i < kRequests.size(); ++i) {
        void* entry = nullptr;
        const Request& request = kRequests[i];
        if (get(request.name, &entry, request.version, request.flags, nullptr) == CUDA_SUCCESS) {
            entries[i] = entry;
        }
    }
    const auto version = CUDART_DRIVER(cuDriverGetVersion, 2020);
    int driver_version = 0;
    if (version == nullptr || version(&driver_version) != CUDA_SUCCESS ||
        driver_version < CUDART_VERSION / 1000 * 1000) {
        return cudaErrorInsufficientDriver;
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t open_driver_table() noexcept {
    std::call_once(once, [] { outcome = fill_entries(); });
    return outcome;
}

void* driver_entry(Entry entry) noexcept { return entries[static_cast<std::size_t>(entry)]; }

}  // namespace libswap::simgpu::cudart
