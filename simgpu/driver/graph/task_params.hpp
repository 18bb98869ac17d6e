// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include "simgpu/driver/graph/graph.hpp"

// Tasks from the driver's structures and back. What is wrong with a structure is the code that the
// driver returns for it. Under graphs_lock().

namespace simgpu::driver {

CUresult kernel_task(const CUDA_KERNEL_NODE_PARAMS_v2& given, Task& out);
/// With a null context the calling thread's.
CUresult copy_task(const CUDA_MEMCPY3D& given, CUcontext context, Task& out);
CUresult memset_task(const CUDA_MEMSET_NODE_PARAMS& given, CUcontext context, Task& out);
CUresult host_task(const CUDA_HOST_NODE_PARAMS& given, Task& out);
CUresult mem_op_task(const CUDA_BATCH_MEM_OP_NODE_PARAMS& given, Task& out);
CUresult child_task(CUgraph child, CUgraphChildGraphNodeOwnership ownership, Task& out);
CUresult event_record_task(CUevent event, Task& out);
CUresult event_wait_task(CUevent event, Task& out);
/// Tells the address in the structure.
CUresult alloc_task(CUDA_MEM_ALLOC_NODE_PARAMS& given, Task& out);
CUresult free_task(CUdeviceptr va, Graph& graph, Task& out);
/// Any of them, and those that answer in the structure (memory, conditional nodes); `graph` is
/// where the node will be.
CUresult task_of(CUgraphNodeParams& given, Graph& graph, Task& out);

/// The pointers in it are the node's.
CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(GraphNode& node, const KernelTask& task);
CUDA_MEMSET_NODE_PARAMS memset_params(const MemsetTask& task);
CUDA_BATCH_MEM_OP_NODE_PARAMS mem_op_params(MemOpTask& task);
CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(const AllocTask& task);

}  // namespace simgpu::driver
