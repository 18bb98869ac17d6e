// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What is read of CUPTI's records: the part in front that CUPTI 12 and 13 share, at the offsets
// that their cupti_activity.h gives. No header of CUPTI's is needed;
// tests/cupti_trace/records_test.cpp compares where one is there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace libswap::cupti {

inline constexpr std::uint32_t kKindMemcpy = 1;
inline constexpr std::uint32_t kKindMemset = 2;
inline constexpr std::uint32_t kKindConcurrentKernel = 10;
inline constexpr std::uint32_t kKindExternalCorrelation = 39;

/// CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2: PyTorch's profiler has the other two.
inline constexpr std::uint32_t kExternalKind = 5;

struct KernelRecord {
    std::uint32_t kind;
    std::uint32_t before[3];
    std::uint64_t start_ns, end_ns, completed_ns;
    std::uint32_t device, context, stream;
    std::uint32_t shape[10];  ///< grid, block, shared and local memory
    std::uint32_t correlation;
};
static_assert(offsetof(KernelRecord, start_ns) == 16 && offsetof(KernelRecord, correlation) == 92);

/// Of a copy, which has its kinds where a memset has its value.
struct MemoryRecord {
    std::uint32_t kind;
    std::uint32_t kinds_or_value;
    std::uint64_t bytes;
    std::uint64_t start_ns, end_ns;
    std::uint32_t device, context, stream;
    std::uint32_t correlation;
};
static_assert(offsetof(MemoryRecord, start_ns) == 16 && offsetof(MemoryRecord, correlation) == 44);

struct ExternalRecord {
    std::uint32_t kind, external_kind;
    std::uint64_t id;
    std::uint32_t correlation;
};
static_assert(offsetof(ExternalRecord, correlation) == 16);

}  // namespace libswap::cupti
