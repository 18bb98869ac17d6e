// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/cudart/errors.hpp"

namespace {

struct Description {
    const char* name;
    const char* text;
};

const Description* describe(cudaError_t error) noexcept {
    switch (error) {
#define CUDART_ERROR(name, text)                         \
    case name: {                                         \
        static constexpr Description entry{#name, text}; \
        return &entry;                                   \
    }
#include "simgpu/cudart/errors.def"
#undef CUDART_ERROR
        default:
            return nullptr;
    }
}

}  // namespace

namespace libswap::simgpu::cudart {

bool is_known(cudaError_t error) noexcept { return describe(error) != nullptr; }

}  // namespace libswap::simgpu::cudart

const char* cudaGetErrorName(cudaError_t error) {
    const Description* entry = describe(error);
    return entry == nullptr ? "unrecognized error code" : entry->name;
}

const char* cudaGetErrorString(cudaError_t error) {
    const Description* entry = describe(error);
    return entry == nullptr ? "unrecognized error code" : entry->text;
}
