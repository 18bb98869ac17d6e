// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The layouts and numbers that are stood in for are those of the vendor's headers.
#include <cupti.h>

#include <gtest/gtest.h>

#include "simgpu/cupti/abi.hpp"

namespace simgpu::cupti {
namespace {

#define SAME_PLACE(ours, our_field, theirs, their_field) \
    static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))

static_assert(sizeof(KernelRecord) == sizeof(CUpti_ActivityKernel10));
SAME_PLACE(KernelRecord, start, CUpti_ActivityKernel10, start);
SAME_PLACE(KernelRecord, device_id, CUpti_ActivityKernel10, deviceId);
SAME_PLACE(KernelRecord, grid_x, CUpti_ActivityKernel10, gridX);
SAME_PLACE(KernelRecord, correlation_id, CUpti_ActivityKernel10, correlationId);
SAME_PLACE(KernelRecord, name, CUpti_ActivityKernel10, name);
SAME_PLACE(KernelRecord, graph_id, CUpti_ActivityKernel10, graphId);
SAME_PLACE(KernelRecord, is_device_launched, CUpti_ActivityKernel10, isDeviceLaunched);
static_assert(sizeof(MemcpyRecord) == sizeof(CUpti_ActivityMemcpy6));
SAME_PLACE(MemcpyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
SAME_PLACE(MemcpyRecord, correlation_id, CUpti_ActivityMemcpy6, correlationId);
SAME_PLACE(MemcpyRecord, copy_count, CUpti_ActivityMemcpy6, copyCount);
static_assert(sizeof(MemsetRecord) == sizeof(CUpti_ActivityMemset4));
SAME_PLACE(MemsetRecord, correlation_id, CUpti_ActivityMemset4, correlationId);
SAME_PLACE(MemsetRecord, graph_id, CUpti_ActivityMemset4, graphId);
static_assert(sizeof(ApiRecord) == sizeof(CUpti_ActivityAPI));
SAME_PLACE(ApiRecord, correlation_id, CUpti_ActivityAPI, correlationId);
static_assert(sizeof(ExternalCorrelationRecord) == sizeof(CUpti_ActivityExternalCorrelation));
SAME_PLACE(ExternalCorrelationRecord, correlation_id, CUpti_ActivityExternalCorrelation,
           correlationId);
static_assert(sizeof(CallbackData) == sizeof(CUpti_CallbackData));
SAME_PLACE(CallbackData, function_name, CUpti_CallbackData, functionName);
SAME_PLACE(CallbackData, correlation_id, CUpti_CallbackData, correlationId);

static_assert(std::uint32_t{kConcurrentKernel} == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(std::uint32_t{kExternalCorrelation} == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
static_assert(int{kMultipleSubscribers} == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(int{kMaxLimitReached} == CUPTI_ERROR_MAX_LIMIT_REACHED);
static_assert(kDriverDomain == CUPTI_CB_DOMAIN_DRIVER_API);

#define DRIVER_CALL(name, number) static_assert(CUPTI_DRIVER_TRACE_CBID_##name == number);
#include "simgpu/cupti/driver_calls.def"
#undef DRIVER_CALL

#define CUPTI_RESULT(name, code) static_assert(name == code);
#include "simgpu/cupti/results.def"
#undef CUPTI_RESULT

TEST(CuptiAbi, IsThatOfTheHeaders) { SUCCEED() << "at compile time"; }

}  // namespace
}  // namespace simgpu::cupti
