// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <fstream>
#include <iterator>
#include <string>

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/handle_table.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/module.hpp"

namespace simgpu::driver {
namespace {

/// What a CUlinkState points at. Only PTX is linked, and its "cubin" is the PTX itself: whatever
/// loads images here takes both.
struct Linker {
    std::string ptx;
    JitOptions options;
};

HandleTable<Linker>& linkers() {
    static auto* table =
        new HandleTable<Linker>;  // leaked: calls may come after static destructors
    return *table;
}

CUresult find_linker(CUlinkState handle, std::shared_ptr<Linker>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = linkers().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult create(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
    Context* context = nullptr;
    SIMGPU_TRY(current_context(context));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(check_jit_options(count, options, values));
    auto linker = std::make_shared<Linker>(Linker{{}, JitOptions(count, options, values)});
    *out = reinterpret_cast<CUlinkState>(linker.get());
    linkers().add(std::move(linker));
    return CUDA_SUCCESS;
}

CUresult add(CUlinkState handle, CUjitInputType type, const void* data, std::size_t bytes) {
    std::shared_ptr<Linker> linker;
    SIMGPU_TRY(find_linker(handle, linker));
    if (data == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_JIT_INPUT_PTX || !linker->ptx.empty()) {
        say("cuLink: only one input, of PTX, is built");
        linker->options.log_error("only one input, of PTX, is supported");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    std::string text(static_cast<const char*>(data), bytes);
    text.resize(text.find_last_not_of('\0') + 1);
    auto code = open_image(text.c_str(), linker->options, true);
    if (!code) return code.error();
    linker->ptx = std::move(text);
    return CUDA_SUCCESS;
}

CUresult add_file(CUlinkState handle, CUjitInputType type, const char* path) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    std::string text(std::istreambuf_iterator<char>(file), {});
    return add(handle, type, text.data(), text.size());
}

CUresult complete(CUlinkState handle, void** out, std::size_t* bytes) {
    std::shared_ptr<Linker> linker;
    SIMGPU_TRY(find_linker(handle, linker));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (linker->ptx.empty()) return CUDA_ERROR_INVALID_IMAGE;
    *out = linker->ptx.data();
    if (bytes != nullptr) *bytes = linker->ptx.size() + 1;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuLinkCreate_v2,
            (unsigned count, CUjit_option* options, void** values, CUlinkState* out),
            { return driver::create(count, options, values, out); })
SIMGPU_CALL(cuLinkAddData_v2,
            (CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char*,
             unsigned, CUjit_option*, void**),
            { return driver::add(state, type, data, bytes); })
SIMGPU_CALL(cuLinkAddFile_v2,
            (CUlinkState state, CUjitInputType type, const char* path, unsigned, CUjit_option*,
             void**),
            { return driver::add_file(state, type, path); })
SIMGPU_CALL(cuLinkComplete, (CUlinkState state, void** out, size_t* bytes),
            { return driver::complete(state, out, bytes); })
SIMGPU_CALL(cuLinkDestroy, (CUlinkState state), {
    if (!driver::initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return driver::linkers().remove(state) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
})
