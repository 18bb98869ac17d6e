// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

// Kernel launches.

namespace libswap {
namespace {

LaunchRequest launch_of(CUfunction function, const unsigned (&grid)[3], const unsigned (&block)[3],
                        unsigned shared_bytes, CUstream stream, void** params,
                        void** extra) noexcept {
    LaunchRequest request;
    request.function = function;
    request.stream = stream;
    for (int i = 0; i < 3; ++i) request.grid[i] = grid[i], request.block[i] = block[i];
    request.shared_bytes = shared_bytes;
    request.params = params;
    request.extra = extra;
    return request;
}

LaunchRequest launch_of(CUfunction function, const CUlaunchConfig& config, CUstream stream,
                        void** params, void** extra) noexcept {
    return launch_of(function, {config.gridDimX, config.gridDimY, config.gridDimZ},
                     {config.blockDimX, config.blockDimY, config.blockDimZ}, config.sharedMemBytes,
                     stream, params, extra);
}

/// A launch by the interface of CUDA 3, whose parameters were set before and cannot be asked for.
LaunchRequest unseen_launch(CUfunction function, CUstream stream) noexcept {
    return launch_of(function, {1, 1, 1}, {1, 1, 1}, 0, stream, nullptr, nullptr);
}

/// Launches on several devices in one call: each is announced, the innermost makes the real call.
CUresult launch_each(Engine& engine, CUDA_LAUNCH_PARAMS* launches, unsigned count,
                     RealCall real) noexcept {
    if (count == 0 || !launches) return real();
    const CUDA_LAUNCH_PARAMS& first = *launches;
    const auto rest = [&] { return launch_each(engine, launches + 1, count - 1, real); };
    return engine.launch(
        launch_of(first.function, {first.gridDimX, first.gridDimY, first.gridDimZ},
                  {first.blockDimX, first.blockDimY, first.blockDimZ}, first.sharedMemBytes,
                  first.hStream, first.kernelParams, nullptr),
        rest);
}

}  // namespace
}  // namespace libswap

LIBSWAP_HOOK_TWINS(cuLaunchKernel, _ptsz,
                   (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                    CUstream stream, void** params, void** extra),
                   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                    stream, params, extra),
                   return engine.launch(launch_of(function, {grid_x, grid_y, grid_z},
                                                  {block_x, block_y, block_z}, shared_bytes,
                                                  on(stream), params, extra),
                                        real);)

LIBSWAP_HOOK_TWINS(
    cuLaunchKernelEx, _ptsz,
    (const CUlaunchConfig* config, CUfunction function, void** params, void** extra),
    (config, function, params, extra), if (!config) return real();
    return engine.launch(launch_of(function, *config, on(config->hStream), params, extra), real);)

LIBSWAP_HOOK_TWINS(
    cuLaunchCooperativeKernel, _ptsz,
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** params),
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params),
    return engine.launch(launch_of(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                                   shared_bytes, on(stream), params, nullptr),
                         real);)

LIBSWAP_HOOK(cuLaunchCooperativeKernelMultiDevice,
             (CUDA_LAUNCH_PARAMS * launches, unsigned count, unsigned flags),
             (launches, count, flags), return launch_each(engine, launches, count, real);)

LIBSWAP_HOOK(cuLaunch, (CUfunction function), (function),
             return engine.launch(unseen_launch(function, default_stream), real);)

LIBSWAP_HOOK(cuLaunchGrid, (CUfunction function, int width, int height), (function, width, height),
             return engine.launch(unseen_launch(function, default_stream), real);)

LIBSWAP_HOOK(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
             (function, width, height, stream),
             return engine.launch(unseen_launch(function, on(stream)), real);)
