// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What is read of CUPTI's records lies where its headers put it.
#include <cupti.h>

#include <gtest/gtest.h>

#include "cupti_trace/records.hpp"

namespace libswap::cupti {
namespace {

#define SAME_PLACE(ours, our_field, theirs, their_field) \
    static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))

// CUPTI 12.2 to 13: the records' newer versions only grow at their ends.
SAME_PLACE(KernelRecord, start_ns, CUpti_ActivityKernel9, start);
SAME_PLACE(KernelRecord, end_ns, CUpti_ActivityKernel9, end);
SAME_PLACE(KernelRecord, correlation, CUpti_ActivityKernel9, correlationId);
SAME_PLACE(KernelRecord, start_ns, CUpti_ActivityKernel10, start);
SAME_PLACE(KernelRecord, correlation, CUpti_ActivityKernel10, correlationId);
SAME_PLACE(MemoryRecord, bytes, CUpti_ActivityMemcpy6, bytes);
SAME_PLACE(MemoryRecord, start_ns, CUpti_ActivityMemcpy6, start);
SAME_PLACE(MemoryRecord, correlation, CUpti_ActivityMemcpy6, correlationId);
SAME_PLACE(MemoryRecord, start_ns, CUpti_ActivityMemset4, start);
SAME_PLACE(MemoryRecord, correlation, CUpti_ActivityMemset4, correlationId);
SAME_PLACE(ExternalRecord, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
SAME_PLACE(ExternalRecord, id, CUpti_ActivityExternalCorrelation, externalId);
SAME_PLACE(ExternalRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);
static_assert(kKindConcurrentKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(kKindExternalCorrelation == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
static_assert(kExternalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2);

#define CUPTI_CALL(name, number) static_assert(CUPTI_DRIVER_TRACE_CBID_##name == number);
#include "cupti_trace/calls.def"
#undef CUPTI_CALL

TEST(CuptiRecords, AreThoseOfTheHeaders) { SUCCEED() << "at compile time"; }

}  // namespace
}  // namespace libswap::cupti
