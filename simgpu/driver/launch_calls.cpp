// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/launch.hpp"

namespace simgpu::driver {
namespace {

/// Takes over what an attribute asks for; what only tunes is ignored.
CUresult apply(const CUlaunchAttribute& attribute, LaunchRequest& request) {
    switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            request.cooperative = attribute.value.cooperative != 0;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
            const auto& cluster = attribute.value.clusterDim;
            bool trivial = cluster.x <= 1 && cluster.y <= 1 && cluster.z <= 1;
            return trivial ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
        }
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            return CUDA_SUCCESS;
    }
}

CUresult launch_with_config(const CUlaunchConfig* config, CUfunction function, void** parameters,
                            void** extra, DefaultStream default_stream) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    LaunchRequest request;
    request.function = function;
    request.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
    request.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    request.shared_bytes = config->sharedMemBytes;
    request.stream = config->hStream;
    request.default_stream = default_stream;
    request.parameters = parameters;
    request.extra = extra;
    request.attributes = config->attrs;
    request.attribute_count = config->numAttrs;
    for (unsigned i = 0; i < config->numAttrs; ++i) SIMGPU_TRY(apply(config->attrs[i], request));
    return launch(request);
}

CUresult launch_host_function(CUstream handle, CUhostFn function, void* data,
                              DefaultStream default_stream) {
    StreamRef stream;
    SIMGPU_TRY(find_stream_for_work(handle, default_stream, stream));
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture != nullptr) return capture_task(stream, HostTask{function, data});
    return stream->host_function([function, data] { function(data); });
}

CUresult add_callback(CUstream handle, CUstreamCallback function, void* data, unsigned flags,
                      DefaultStream default_stream) {
    StreamRef stream;
    SIMGPU_TRY(find_stream_for_work(handle, default_stream, stream));
    SIMGPU_TRY(refuse_where_captured(stream));
    if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return stream->callback(
        [handle, function, data](Status status) { function(handle, status, data); });
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL_PTSZ(cuLaunchKernel,
                 (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  CUstream stream, void** parameters, void** extra),
                 {
                     return driver::launch({function,
                                            {grid_x, grid_y, grid_z},
                                            {block_x, block_y, block_z},
                                            shared_bytes,
                                            stream,
                                            default_stream,
                                            parameters,
                                            extra,
                                            false,
                                            nullptr,
                                            0});
                 })
SIMGPU_CALL_PTSZ(cuLaunchCooperativeKernel,
                 (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  CUstream stream, void** parameters),
                 {
                     return driver::launch({function,
                                            {grid_x, grid_y, grid_z},
                                            {block_x, block_y, block_z},
                                            shared_bytes,
                                            stream,
                                            default_stream,
                                            parameters,
                                            nullptr,
                                            true,
                                            nullptr,
                                            0});
                 })
SIMGPU_CALL_PTSZ(
    cuLaunchKernelEx,
    (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra),
    { return driver::launch_with_config(config, function, parameters, extra, default_stream); })
SIMGPU_CALL_PTSZ(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void* data),
                 { return driver::launch_host_function(stream, function, data, default_stream); })
SIMGPU_CALL_PTSZ(cuStreamAddCallback,
                 (CUstream stream, CUstreamCallback function, void* data, unsigned flags),
                 { return driver::add_callback(stream, function, data, flags, default_stream); })
