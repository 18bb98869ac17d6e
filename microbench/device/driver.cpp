// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/device/driver.hpp"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include <fmt/format.h>

namespace libswap::bench {

namespace {

constexpr const char* kLibrary = "libcuda.so.1";

template <typename Function>
void look_up(void* library, const char* symbol, Function& out) {
    void* address = dlsym(library, symbol);
    if (address == nullptr)
        throw CudaError(CUDA_ERROR_NOT_FOUND, fmt::format("{} has no {}", kLibrary, symbol));
    std::memcpy(&out, &address, sizeof out);
}

}  // namespace

std::unique_ptr<Driver> open_driver() {
    auto driver = std::make_unique<Driver>();
    // Stays open: the driver has threads of its own.
    driver->library = dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
    if (driver->library == nullptr) {
        const char* why = dlerror();
        throw CudaError(CUDA_ERROR_NOT_FOUND,
                        fmt::format("no CUDA driver: {}", why != nullptr ? why : kLibrary));
    }
#define BENCH_FUNCTION(name, symbol) look_up(driver->library, symbol, driver->name);
#include "microbench/device/driver.def"
#undef BENCH_FUNCTION
    return driver;
}

void Driver::check(CUresult code, const char* call) const {
    if (code == CUDA_SUCCESS) return;
    const char* name = nullptr;
    if (cuGetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
    const std::string text(call);
    throw CudaError(code, fmt::format("{} from {}", name, text.substr(0, text.find('('))));
}

}  // namespace libswap::bench
