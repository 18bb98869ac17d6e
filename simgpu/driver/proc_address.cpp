// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <string_view>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/version.hpp"

namespace simgpu::driver {
namespace {

struct Search {
    const ApiRow* row;
    CUdriverProcAddressQueryResult status;
};

/// The newest ABI that `version` knows, of the per-thread variant where asked for and present.
Search find(std::string_view base, int version, bool per_thread) {
    const ApiRow* best = nullptr;
    auto rows = rows_of_base(base);
    for (const ApiRow& row : rows) {
        if (row.version > version || (row.per_thread && !per_thread)) continue;
        // Rows are sorted: legacy before per-thread, older before newer.
        best = &row;
    }
    if (best != nullptr) return {best, CU_GET_PROC_ADDRESS_SUCCESS};
    return {nullptr, rows.empty() ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                  : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
}

CUresult get_proc_address(const char* symbol, void** pfn, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
    constexpr cuuint64_t kKnownFlags =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (symbol == nullptr || pfn == nullptr || (flags & ~kKnownFlags) != 0 ||
        flags == kKnownFlags) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (version > kDriverVersion) return CUDA_ERROR_INVALID_VALUE;
    Search found = find(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    *pfn = found.row != nullptr ? reinterpret_cast<void*>(found.row->address) : nullptr;
    if (status != nullptr) *status = found.status;
    // The driver answers NOT_FOUND where its header says SUCCESS and NULL.
    return found.row != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuGetProcAddress, (const char* symbol, void** pfn, int version, cuuint64_t flags),
            { return driver::get_proc_address(symbol, pfn, version, flags, nullptr); })

SIMGPU_CALL(cuGetProcAddress_v2,
            (const char* symbol, void** pfn, int version, cuuint64_t flags,
             CUdriverProcAddressQueryResult* status),
            { return driver::get_proc_address(symbol, pfn, version, flags, status); })
