// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/engine.hpp"

// Stands in for the engine until runtime/ has it: every call passes through.

namespace libswap {

Engine* Engine::get() noexcept { return nullptr; }
Engine* Engine::start(const Driver&, const Config&) noexcept { return nullptr; }
void Engine::forget() noexcept {}
CUresult Engine::mem_alloc(CUdeviceptr*, std::size_t, RealCall real) noexcept { return real(); }
CUresult Engine::mem_free(CUdeviceptr, RealCall real) noexcept { return real(); }
CUresult Engine::mem_get_info(std::size_t*, std::size_t*, RealCall real) noexcept { return real(); }
CUresult Engine::mem_get_address_range(CUdeviceptr*, std::size_t*, CUdeviceptr,
                                       RealCall real) noexcept {
    return real();
}
CUresult Engine::pointer_get_attribute(void*, CUpointer_attribute, CUdeviceptr,
                                       RealCall real) noexcept {
    return real();
}
CUresult Engine::pointer_get_attributes(unsigned, CUpointer_attribute*, void**, CUdeviceptr,
                                        RealCall real) noexcept {
    return real();
}
CUresult Engine::pointer_set_attribute(const void*, CUpointer_attribute, CUdeviceptr,
                                       RealCall real) noexcept {
    return real();
}
CUresult Engine::launch(const LaunchRequest&, RealCall real) noexcept { return real(); }
CUresult Engine::copy(const CopyRequest&, RealCall real) noexcept { return real(); }
CUresult Engine::memset(const MemsetRequest&, RealCall real) noexcept { return real(); }
CUresult Engine::use_for_good(const std::uint64_t*, std::size_t, RealCall real) noexcept {
    return real();
}
CUresult Engine::node_for_good(const LaunchRequest&, RealCall real) noexcept { return real(); }
CUresult Engine::stream_destroy(CUstream, RealCall real) noexcept { return real(); }
CUresult Engine::event_record(CUevent, CUstream, RealCall real) noexcept { return real(); }
CUresult Engine::stream_wait_event(CUstream, CUevent, RealCall real) noexcept { return real(); }
CUresult Engine::event_destroy(CUevent, RealCall real) noexcept { return real(); }
CUresult Engine::stream_synchronize(CUstream, RealCall real) noexcept { return real(); }
CUresult Engine::context_synchronize(RealCall real) noexcept { return real(); }
CUresult Engine::begin_capture(CUstream, RealCall real) noexcept { return real(); }
CUresult Engine::end_capture(CUstream, RealCall real) noexcept { return real(); }
CUresult Engine::graph_launch(CUgraphExec, CUstream, RealCall real) noexcept { return real(); }
CUresult Engine::context_destroy(CUcontext, RealCall real) noexcept { return real(); }
CUresult Engine::primary_reset(CUdevice, RealCall real) noexcept { return real(); }
CUresult Engine::primary_release(CUdevice, RealCall real) noexcept { return real(); }
CUresult Engine::module_unload(RealCall real) noexcept { return real(); }
CUresult Engine::ipc_get_mem_handle(CUipcMemHandle*, CUdeviceptr, RealCall real) noexcept {
    return real();
}
CUresult Engine::export_range(CUdeviceptr, std::size_t, RealCall real) noexcept { return real(); }
void Engine::at_exit() noexcept {}
void Engine::set_passed_through(PassedThroughSource) noexcept {}
void Engine::real_allocated(CUdeviceptr, std::size_t, bool) noexcept {}
void Engine::real_freed(CUdeviceptr) noexcept {}
void Engine::stream_created(CUstream) noexcept {}
void Engine::module_global(CUdeviceptr, std::size_t) noexcept {}

}  // namespace libswap
