// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/jit_options.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace simgpu::driver {

JitOptions::JitOptions(unsigned count, const CUjit_option* options, void** values) {
    for (unsigned i = 0; i < count; ++i) {
        switch (options[i]) {
            case CU_JIT_ERROR_LOG_BUFFER:
                error_log_ = static_cast<char*>(values[i]);
                break;
            case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
                error_log_bytes_ =
                    static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
                error_size_slot_ = &values[i];
                break;
            case CU_JIT_INFO_LOG_BUFFER:
                if (values[i] != nullptr) *static_cast<char*>(values[i]) = '\0';
                break;
            case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
                info_size_slot_ = &values[i];
                break;
            default:
                break;  // nothing else changes what is loaded
        }
    }
    if (error_log_ != nullptr && error_log_bytes_ != 0) error_log_[0] = '\0';
    for (void** slot : {error_size_slot_, info_size_slot_}) {
        if (slot != nullptr) *slot = nullptr;
    }
}

void JitOptions::log_error(std::string_view text) const {
    if (error_log_ == nullptr || error_log_bytes_ == 0) return;
    std::size_t bytes = std::min(text.size(), error_log_bytes_ - 1);
    std::memcpy(error_log_, text.data(), bytes);
    error_log_[bytes] = '\0';
    if (error_size_slot_ != nullptr) *error_size_slot_ = reinterpret_cast<void*>(bytes + 1);
}

CUresult check_jit_options(unsigned count, const CUjit_option* options, void* const* values) {
    return count == 0 || (options != nullptr && values != nullptr) ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simgpu::driver
