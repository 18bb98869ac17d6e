// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "simgpu/cudart/api.hpp"

namespace libswap::simgpu::cudart {

struct FatBinary;

/// A kernel of the program: registered by its host stub, or found in a library the program loaded.
/// Resolved at its first use.
class Kernel {
  public:
    Kernel(FatBinary* owner, const char* name) : owner_(owner), name_(name) {}
    explicit Kernel(CUkernel handle) : name_(nullptr), handle_(handle) {}

    /// The driver's handle; loads the module if need be. @thread any
    cudaError_t handle(CUkernel* kernel) noexcept;

    /// The function in the context that the calling body entered (on_context). @thread any
    cudaError_t function(CUfunction* function) noexcept;

    /// Whether function() has answered with it in some context.
    bool gave(CUfunction function) const noexcept;

  private:
    struct Found {
        CUcontext context;
        std::uint64_t generation;
        CUfunction function;
        const Found* next;
    };

    FatBinary* owner_ = nullptr;
    /// As the program registered it: a literal in its image.
    const char* name_;
    std::atomic<CUkernel> handle_{nullptr};
    /// One record per context it ran in; never freed, since readers take no lock.
    std::atomic<const Found*> found_{nullptr};
};

/// A __device__, __constant__ or __managed__ variable of the program.
struct Variable {
    FatBinary* owner;
    const char* name;
    std::size_t bytes;
    /// Where the host keeps its pointer to a managed variable; null for the others.
    void** managed_pointer;
};

/// What one __cudaRegisterFatBinary brought. Cheap until a kernel or variable is asked for.
struct FatBinary {
    explicit FatBinary(const void* image) : wrapper(image) {}

    /// Loads the image on first use. @thread any
    cudaError_t library(CUlibrary* library) noexcept;

    const void* wrapper;
    std::mutex mutex;
    CUlibrary loaded = nullptr;
    /// First failure; a broken image stays broken.
    cudaError_t failure = cudaSuccess;
    std::deque<Kernel> kernels;
    std::deque<Variable> variables;
    /// Keys of its kernels and variables in the registry.
    std::vector<const void*> symbols;
    bool managed_ready = false;
};

/// The kernel behind a host stub or a handle of ours, or null. @thread any
Kernel* find_kernel(const void* symbol) noexcept;

/// The host's name for the kernel behind a function, or null. @thread any
const void* find_symbol(CUfunction function) noexcept;

/// Kernel for a handle that the driver gave us (cudaLibraryGetKernel). @thread any
Kernel* adopt_kernel(CUkernel handle);

/// The variable registered for this host symbol, or null. @thread any
Variable* find_variable(const void* symbol) noexcept;

/// The managed variable at this address, or null: the host names such a variable by where it lies.
/// @thread any
Variable* find_managed(const void* address) noexcept;

/// Device address and size of a variable.
cudaError_t variable_address(Variable& variable, CUdeviceptr* address, std::size_t* bytes) noexcept;

}  // namespace libswap::simgpu::cudart
