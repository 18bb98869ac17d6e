// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/entry.hpp"

namespace simgpu::driver {
namespace {

const char* name_of(unsigned result) {
    switch (result) {
#define SIMGPU_ERROR(code, text) \
    case code:                   \
        return #code;
#include "simgpu/driver/errors.def"
#undef SIMGPU_ERROR
    }
    return nullptr;
}

const char* text_of(unsigned result) {
    switch (result) {
#define SIMGPU_ERROR(code, text) \
    case code:                   \
        return text;
#include "simgpu/driver/errors.def"
#undef SIMGPU_ERROR
    }
    return nullptr;
}

CUresult answer(const char* found, const char** out) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = found;
    return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuGetErrorName, (CUresult error, const char** text),
            { return driver::answer(driver::name_of(error), text); })

SIMGPU_CALL(cuGetErrorString, (CUresult error, const char** text),
            { return driver::answer(driver::text_of(error), text); })
