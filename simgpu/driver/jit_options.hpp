// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string_view>

namespace simgpu::driver {

/// The parts of the JIT options that matter here: where messages go.
class JitOptions {
  public:
    JitOptions() = default;
    JitOptions(unsigned count, const CUjit_option* options, void** values);

    bool wants_log() const { return error_log_ != nullptr; }
    /// Copies `text` into the error log, cut to fit, and stores the bytes used where the size was
    /// given.
    void log_error(std::string_view text) const;

  private:
    char* error_log_ = nullptr;
    std::size_t error_log_bytes_ = 0;
    void** error_size_slot_ = nullptr;
    void** info_size_slot_ = nullptr;
};

/// CUDA_ERROR_INVALID_VALUE for a count without arrays.
CUresult check_jit_options(unsigned count, const CUjit_option* options, void* const* values);

}  // namespace simgpu::driver
