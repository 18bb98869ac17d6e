// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The part of CUPTI's binary interface that is stood in for, as CUDA 13's cupti_activity.h,
// cupti_callbacks.h and cupti_result.h lay it out, so that no header of the vendor's is needed.
// tests/simgpu/cupti/abi_test.cpp compares where those headers are there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu::cupti {

inline constexpr std::uint32_t kApiVersion = 130001;

enum Result : int {
    kSuccess = 0,
    kInvalidParameter = 1,
    kInvalidOperation = 7,
    kOutOfMemory = 8,
    kMaxLimitReached = 12,
    kNotInitialized = 15,
    kQueueEmpty = 18,
    kInvalidKind = 21,
    kNotSupported = 27,
    kMultipleSubscribers = 39,
};

enum Kind : std::uint32_t {
    kMemcpy = 1,
    kMemset = 2,
    kKernel = 3,
    kDriver = 4,
    kRuntime = 5,
    kConcurrentKernel = 10,
    kExternalCorrelation = 39,
    kKindCount = 56,
};

inline constexpr std::uint32_t kExternalKinds = 6;  ///< 1 to 5 are valid
inline constexpr std::uint32_t kDriverDomain = 1;
inline constexpr std::uint32_t kDomainCount = 7;
inline constexpr std::uint32_t kFlushForced = 1;

#define SIMGPU_CUPTI_RECORD __attribute__((packed, aligned(8)))

struct SIMGPU_CUPTI_RECORD KernelRecord {  // CUpti_ActivityKernel10
    std::uint32_t kind;
    std::uint8_t cache_config, shared_memory_config;
    std::uint16_t registers_per_thread;
    std::uint32_t global_cache_requested, global_cache_executed;
    std::uint64_t start, end, completed;
    std::uint32_t device_id, context_id, stream_id;
    std::int32_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
    std::int32_t static_shared_memory, dynamic_shared_memory;
    std::uint32_t local_memory_per_thread, local_memory_total;
    std::uint32_t correlation_id;
    std::int64_t grid_id;
    const char* name;
    void* reserved0;
    std::uint64_t queued, submitted;
    std::uint8_t launch_type, carveout_requested, carveout, padding;
    std::uint32_t shared_memory_executed;
    std::uint64_t graph_node_id;
    std::uint32_t shmem_limit_config;
    std::uint32_t graph_id;
    void* access_policy_window;
    std::uint32_t channel_id, channel_type;
    std::uint32_t cluster_x, cluster_y, cluster_z, cluster_scheduling_policy;
    std::uint64_t local_memory_total_v2;
    std::uint32_t max_potential_cluster_size, max_active_clusters;
    std::uint8_t is_device_launched;
    std::uint8_t padding3[7];
};

struct SIMGPU_CUPTI_RECORD MemcpyRecord {  // CUpti_ActivityMemcpy6
    std::uint32_t kind;
    std::uint8_t copy_kind, src_kind, dst_kind, flags;
    std::uint64_t bytes, start, end;
    std::uint32_t device_id, context_id, stream_id;
    std::uint32_t correlation_id, runtime_correlation_id;
    std::uint32_t pad;
    void* reserved0;
    std::uint64_t graph_node_id;
    std::uint32_t graph_id, channel_id, channel_type;
    std::uint8_t is_device_launched;
    std::uint8_t pad2[3];
    std::uint64_t copy_count;
};

struct SIMGPU_CUPTI_RECORD MemsetRecord {  // CUpti_ActivityMemset4
    std::uint32_t kind;
    std::uint32_t value;
    std::uint64_t bytes, start, end;
    std::uint32_t device_id, context_id, stream_id;
    std::uint32_t correlation_id;
    std::uint16_t flags, memory_kind;
    std::uint32_t pad;
    void* reserved0;
    std::uint64_t graph_node_id;
    std::uint32_t graph_id, channel_id, channel_type;
    std::uint8_t is_device_launched;
    std::uint8_t pad2[3];
};

struct SIMGPU_CUPTI_RECORD ApiRecord {  // CUpti_ActivityAPI
    std::uint32_t kind;
    std::uint32_t cbid;
    std::uint64_t start, end;
    std::uint32_t process_id, thread_id;
    std::uint32_t correlation_id;
    std::uint32_t return_value;
};

struct SIMGPU_CUPTI_RECORD ExternalCorrelationRecord {  // CUpti_ActivityExternalCorrelation
    std::uint32_t kind;
    std::uint32_t external_kind;
    std::uint64_t external_id;
    std::uint32_t correlation_id;
    std::uint32_t reserved;
};

struct CallbackData {    // CUpti_CallbackData
    std::uint32_t site;  ///< 0 on entry, 1 on exit
    const char* function_name;
    const void* function_params;
    void* function_return_value;
    const char* symbol_name;
    void* context;
    std::uint32_t context_uid;
    std::uint64_t* correlation_data;
    std::uint32_t correlation_id;
};

using Callback = void (*)(void* userdata, std::uint32_t domain, std::uint32_t cbid,
                          const void* data);
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size,
                                 std::size_t* most_records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t size, std::size_t valid);
using Timestamp = std::uint64_t (*)();

}  // namespace simgpu::cupti
