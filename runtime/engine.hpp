// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the hooks call. Every entry that stands for a driver call takes the real call as `real`,
// which the engine makes exactly once, at the right moment and with the same arguments, or not at
// all when it answers by itself. The value returned is what the hook returns.
//
// Streams are normalised by the hooks: never NULL, but CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
// All entries may be called from any thread, with or without a current context, and throw nothing.

#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "runtime/config.hpp"
#include "runtime/counters.hpp"
#include "runtime/driver.hpp"
#include "runtime/function_ref.hpp"
#include "runtime/program_memory.hpp"
#include "runtime/rows.hpp"

namespace libswap {

/// The driver's own function with the program's arguments bound.
using RealCall = FunctionRef<CUresult()>;

/// A kernel launch, whichever call it came by.
struct LaunchRequest {
    CUfunction function = nullptr;  ///< may be a cast CUkernel, as the driver allows
    CUstream stream = nullptr;
    unsigned grid[3] = {1, 1, 1};
    unsigned block[3] = {1, 1, 1};
    unsigned shared_bytes = 0;
    void** params = nullptr;  ///< kernelParams, or null
    void** extra = nullptr;   ///< CU_LAUNCH_PARAM_* list, or null
};

/// One side of a copy.
enum class CopySide : std::uint8_t {
    Host,     ///< an address of the host
    Device,   ///< an address of a device
    Unified,  ///< either (cuMemcpy, CU_MEMORYTYPE_UNIFIED)
    Array     ///< a CUDA array; the address is ignored
};

/// A copy of any shape. Both sides have as many rows of the same length.
struct CopyRequest {
    CopySide dst_side = CopySide::Unified;
    CopySide src_side = CopySide::Unified;
    Rows dst;
    Rows src;
    bool async = false;  ///< an ...Async call: the host may go on before it is done
    CUstream stream =
        nullptr;  ///< CU_STREAM_LEGACY (or PER_THREAD for _ptds) where the call has none
};

/// A memset of any shape.
struct MemsetRequest {
    Rows dst;
    bool async = false;
    CUstream stream = nullptr;
};

/// Says a name and how often it was seen; given by the hooks to the summary.
using PassedThroughSink = FunctionRef<void(const char* name, std::uint64_t count)>;
using PassedThroughSource = void (*)(PassedThroughSink);
using HookTimeSource = std::uint64_t (*)() noexcept;

/// The engine of a process. Leaked on purpose: hooks may be called from destructors of the program.
class Engine {
  public:
    /// The one engine, or null before start() and in processes that pass through.
    static Engine* get() noexcept;

    /// To be called after the first successful cuInit, once. Probes nothing yet: a device is looked
    /// at on its first use. Returns null where libswap is off. `driver` and `config` must live for
    /// ever.
    static Engine* start(const Driver& driver, const Config& config) noexcept;

    /// For the child of a fork: forgets the engine without touching it, so that the child passes
    /// through.
    static void forget() noexcept;

    /// To be called when the process ends, from an exit handler that runs before the driver's own,
    /// or not at all. Makes no driver call; writes the summary and closes the trace. Idempotent.
    void at_exit() noexcept;

    /// Where the summary finds what was seen and passed through.
    void set_passed_through(PassedThroughSource source) noexcept;
    /// Where the summary gets from what hooks have taken of the program's threads, in ns of
    /// processor time; not set: it is not measured.
    void set_hook_time(HookTimeSource source) noexcept;

    // Memory.
    CUresult mem_alloc(CUdeviceptr* ptr, std::size_t bytes, RealCall real) noexcept;
    CUresult mem_free(CUdeviceptr ptr, RealCall real) noexcept;
    CUresult mem_get_info(std::size_t* free_bytes, std::size_t* total_bytes,
                          RealCall real) noexcept;
    CUresult mem_get_address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr ptr,
                                   RealCall real) noexcept;
    CUresult pointer_get_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr,
                                   RealCall real) noexcept;
    CUresult pointer_get_attributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                    CUdeviceptr ptr, RealCall real) noexcept;
    CUresult pointer_set_attribute(const void* value, CUpointer_attribute attribute,
                                   CUdeviceptr ptr, RealCall real) noexcept;
    /// The program's own allocator has given a range of memory out, or has it back: until it is
    /// given out again nobody needs what is there. Any thread, but one at a time for one device.
    void content_begins(std::uint64_t address, std::size_t bytes) noexcept;
    void content_ends(std::uint64_t address, std::size_t bytes) noexcept;
    // Stream-ordered memory and pools. `from`: the pool, or null for the device's current one.
    CUresult mem_alloc_async(CUdeviceptr* ptr, std::size_t bytes, const CUmemoryPool* from,
                             CUstream stream, RealCall real) noexcept;
    CUresult mem_free_async(CUdeviceptr ptr, CUstream stream, RealCall real) noexcept;
    CUresult pool_create(CUmemoryPool* pool, const CUmemPoolProps* properties,
                         RealCall real) noexcept;
    CUresult pool_destroy(CUmemoryPool pool, RealCall real) noexcept;
    CUresult pool_trim(CUmemoryPool pool, std::size_t keep_bytes, RealCall real) noexcept;
    CUresult pool_get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value,
                                RealCall real) noexcept;
    CUresult pool_set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void* value,
                                RealCall real) noexcept;
    CUresult pool_export_pointer(CUdeviceptr ptr, RealCall real) noexcept;
    /// cuDeviceSetMemPool, cuMemSetMemPool.
    CUresult set_current_pool(RealCall real) noexcept;
    CUresult mem_alloc_pitch(CUdeviceptr* ptr, std::size_t* pitch, std::size_t width,
                             std::size_t height, unsigned element_bytes, RealCall real) noexcept;

    // Memory of the driver's own, which is counted. `key`: the address or handle it is freed by.
    /// A call that may make the driver allocate `bytes` of the device (0: nobody knows): makes room
    /// where that is missing.
    CUresult driver_allocates(std::uint64_t bytes, RealCall real) noexcept;
    void real_allocated(std::uint64_t key, std::size_t bytes, MemoryPlace place) noexcept;
    /// Unknown keys are ignored.
    void real_freed(std::uint64_t key) noexcept;
    CUresult host_alloc(void** ptr, std::size_t bytes, RealCall real) noexcept;
    CUresult host_free(void* ptr, RealCall real) noexcept;
    CUresult physical_create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                             const CUmemAllocationProp* properties, RealCall real) noexcept;
    CUresult physical_release(CUmemGenericAllocationHandle handle, RealCall real) noexcept;
    CUresult physical_map(CUdeviceptr ptr, CUmemGenericAllocationHandle handle,
                          RealCall real) noexcept;
    CUresult physical_unmap(CUdeviceptr ptr, std::size_t bytes, RealCall real) noexcept;
    CUresult physical_retain(CUmemGenericAllocationHandle* handle, CUdeviceptr ptr,
                             RealCall real) noexcept;

    // Work.
    CUresult launch(const LaunchRequest& request, RealCall real) noexcept;
    CUresult copy(const CopyRequest& request, RealCall real) noexcept;
    CUresult memset(const MemsetRequest& request, RealCall real) noexcept;
    /// Any other call that names memory which the device will use in a way we cannot follow later
    /// (a texture, a graph node's parameters, an export to another process or device): the buffers
    /// stay resident for good before `real` is made. `bytes` may be 0 for "the buffer that holds
    /// it".
    CUresult use_for_good(const std::uint64_t* addresses, std::size_t count, StayReason reason,
                          RealCall real) noexcept;
    /// cuStreamWriteValue64 and its like: the stream writes `value` to the address. The buffer
    /// stays for good.
    CUresult stream_write(std::uint64_t address, std::uint64_t value, RealCall real) noexcept;
    /// Several copies in one call, all on the same stream.
    CUresult copies(const CopyRequest* requests, std::size_t count, RealCall real) noexcept;
    /// cuTensorMapEncode*, cuTensorMapReplaceAddress: `map` describes a tensor at `address`.
    CUresult tensor_map(const CUtensorMap* map, std::uint64_t address, RealCall real) noexcept;

    // Streams and events.
    void stream_created(CUstream stream) noexcept;
    CUresult stream_destroy(CUstream stream, RealCall real) noexcept;
    CUresult event_record(CUevent event, CUstream stream, RealCall real) noexcept;
    CUresult stream_wait_event(CUstream stream, CUevent event, RealCall real) noexcept;
    CUresult event_destroy(CUevent event, RealCall real) noexcept;
    CUresult stream_synchronize(CUstream stream, RealCall real) noexcept;
    CUresult context_synchronize(RealCall real) noexcept;

    // Capture and graphs.
    CUresult begin_capture(CUstream stream, RealCall real) noexcept;
    CUresult end_capture(CUstream stream, RealCall real) noexcept;
    CUresult graph_launch(CUgraphExec exec, CUstream stream, RealCall real) noexcept;
    CUresult graph_instantiate(CUgraphExec* exec, CUgraph graph, RealCall real) noexcept;
    /// cuGraphExecUpdate: on success `exec` is as `graph`.
    CUresult graph_update(CUgraphExec exec, CUgraph graph, RealCall real) noexcept;
    CUresult graph_node_set(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params,
                            RealCall real) noexcept;
    CUresult graph_child_set(CUgraphExec exec, CUgraph child, RealCall real) noexcept;
    CUresult graph_destroy(CUgraphExec exec, RealCall real) noexcept;
    /// A conditional node was made, with these graphs as its bodies.
    void graph_conditional(CUgraphNode node, const CUgraph* bodies, std::size_t count) noexcept;

    // Contexts, devices, modules.
    /// cuCtxEnablePeerAccess: the current context's device may use memory of `peer`'s.
    CUresult enable_peer(CUcontext peer, RealCall real) noexcept;
    CUresult pool_set_access(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count,
                             RealCall real) noexcept;
    CUresult context_destroy(CUcontext context, RealCall real) noexcept;
    /// cuDevicePrimaryCtxReset, and cuDevicePrimaryCtxRelease (which may be the last one).
    CUresult primary_reset(CUdevice device, RealCall real) noexcept;
    CUresult primary_release(CUdevice device, RealCall real) noexcept;
    /// cuModuleUnload, cuLibraryUnload: what is cached about functions is forgotten.
    CUresult module_unload(RealCall real) noexcept;
    /// After cuModuleGetGlobal or cuLibraryGetGlobal gave an address.
    void module_global(CUdeviceptr ptr, std::size_t bytes) noexcept;

    // Leaving the process.
    CUresult ipc_get_mem_handle(CUipcMemHandle* handle, CUdeviceptr ptr, RealCall real) noexcept;
    /// cuMemGetHandleForAddressRange, cuMulticastBindAddr and the like: resident for good, then
    /// real.
    CUresult export_range(CUdeviceptr ptr, std::size_t bytes, RealCall real) noexcept;

  private:
    struct Impl;
    explicit Engine(Impl* impl) noexcept : impl_(impl) {}
    Impl* impl_;
};

}  // namespace libswap
