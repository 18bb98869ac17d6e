// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/cudart/symbol.hpp"

#include "simgpu/cudart/copy.hpp"
#include "simgpu/cudart/registry.hpp"
#include "simgpu/cudart/runtime.hpp"

namespace libswap::simgpu::cudart {
namespace {

cudaError_t locate(const void* symbol, CUdeviceptr* address, std::size_t* bytes) {
    Variable* variable = find_variable(symbol);
    if (variable == nullptr) {
        variable = find_managed(symbol);
    }
    return variable == nullptr ? cudaErrorInvalidSymbol
                               : variable_address(*variable, address, bytes);
}

}  // namespace

cudaError_t locate_part(const void* symbol, std::size_t offset, std::size_t bytes, void** address) {
    CUdeviceptr start = 0;
    std::size_t size = 0;
    const cudaError_t error = locate(symbol, &start, &size);
    if (error != cudaSuccess) {
        return error;
    }
    if (offset > size || bytes > size - offset) {
        return cudaErrorInvalidValue;
    }
    *address = reinterpret_cast<void*>(start + offset);
    return cudaSuccess;
}

}  // namespace libswap::simgpu::cudart

using namespace libswap::simgpu::cudart;

namespace {

bool goes_to_device(cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
           kind == cudaMemcpyDefault;
}

bool comes_from_device(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
           kind == cudaMemcpyDefault;
}

cudaError_t to_symbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                      cudaMemcpyKind kind, bool per_thread) {
    return on_context([&] {
        if (!goes_to_device(kind)) {
            return cudaErrorInvalidMemcpyDirection;
        }
        void* to = nullptr;
        const cudaError_t error = locate_part(symbol, offset, bytes, &to);
        return error == cudaSuccess ? copy_now(to, from, bytes, kind, per_thread) : error;
    });
}

cudaError_t from_symbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                        cudaMemcpyKind kind, bool per_thread) {
    return on_context([&] {
        if (!comes_from_device(kind)) {
            return cudaErrorInvalidMemcpyDirection;
        }
        void* from = nullptr;
        const cudaError_t error = locate_part(symbol, offset, bytes, &from);
        return error == cudaSuccess ? copy_now(to, from, bytes, kind, per_thread) : error;
    });
}

cudaError_t to_symbol_async(const void* symbol, const void* from, std::size_t bytes,
                            std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                            bool per_thread) {
    return on_context([&] {
        if (!goes_to_device(kind)) {
            return cudaErrorInvalidMemcpyDirection;
        }
        void* to = nullptr;
        const cudaError_t error = locate_part(symbol, offset, bytes, &to);
        return error == cudaSuccess ? copy_on_stream(to, from, bytes, kind, stream, per_thread)
                                    : error;
    });
}

cudaError_t from_symbol_async(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                              cudaMemcpyKind kind, cudaStream_t stream, bool per_thread) {
    return on_context([&] {
        if (!comes_from_device(kind)) {
            return cudaErrorInvalidMemcpyDirection;
        }
        void* from = nullptr;
        const cudaError_t error = locate_part(symbol, offset, bytes, &from);
        return error == cudaSuccess ? copy_on_stream(to, from, bytes, kind, stream, per_thread)
                                    : error;
    });
}

}  // namespace

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
    return on_context([&] {
        CUdeviceptr start = 0;
        std::size_t bytes = 0;
        const cudaError_t error = locate(symbol, &start, &bytes);
        if (error == cudaSuccess) {
            *address = reinterpret_cast<void*>(start);
        }
        return error;
    });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
    return on_context([&] {
        CUdeviceptr start = 0;
        return locate(symbol, &start, bytes);
    });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
    return to_symbol(symbol, from, bytes, offset, kind, false);
}

cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind) {
    return to_symbol(symbol, from, bytes, offset, kind, true);
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
    return from_symbol(to, symbol, bytes, offset, kind, false);
}

cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind) {
    return from_symbol(to, symbol, bytes, offset, kind, true);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
    return to_symbol_async(symbol, from, bytes, offset, kind, stream, false);
}

cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, size_t bytes,
                                         size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
    return to_symbol_async(symbol, from, bytes, offset, kind, stream, true);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
    return from_symbol_async(to, symbol, bytes, offset, kind, stream, false);
}

cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t stream) {
    return from_symbol_async(to, symbol, bytes, offset, kind, stream, true);
}
