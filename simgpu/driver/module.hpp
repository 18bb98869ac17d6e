// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/driver/context.hpp"
#include "simgpu/driver/handle_table.hpp"
#include "simgpu/driver/jit_options.hpp"
#include "simgpu/exec/ptx.hpp"
#include "simgpu/image/image.hpp"

namespace simgpu::driver {

namespace image = libswap::simgpu::image;

/// A variable of a loaded module.
struct Variable {
    std::uint64_t va = 0;
    std::uint64_t bytes = 0;
    bool managed = false;
};

/// The variables of an image, in the memory of one device.
class ModuleData {
  public:
    /// Allocates and initialises. @thread any
    static Result<std::shared_ptr<ModuleData>> load(Context& context,
                                                    const image::Contents& contents);
    /// Frees the memory; no launch uses it any more, since each holds a reference.
    ~ModuleData();

    const Variable* find(std::string_view name) const;
    const ptx::SymbolAddresses& addresses() const { return addresses_; }

  private:
    ModuleData() = default;
    CUresult place(Context& context, const image::Contents& contents);
    CUresult initialise(const image::Contents& contents, int device);

    std::map<std::string, Variable, std::less<>> variables_;
    ptx::SymbolAddresses addresses_;
    std::uint64_t block_va_ = 0;
    std::vector<void*> managed_;
};

/// What a CUfunction points at: a kernel in one context.
struct Function {
    Context& context;
    CUmodule module;
    /// Keeps what `info` and `code` point into.
    image::Image code_owner;
    std::shared_ptr<const ModuleData> data;
    const image::KernelInfo* info;
    const ptx::Module* ptx_module;
    /// Null where the image has no PTX.
    const ptx::Kernel* code;
    std::uint32_t architecture;

    std::atomic<int> max_dynamic_shared_bytes{0};
    std::atomic<int> shared_carveout{-1};
    std::atomic<bool> said_unsupported{false};

    /// Largest block it can be launched with.
    int max_threads() const;
};

/// What a CUmodule points at.
class Module {
  public:
    static Result<std::shared_ptr<Module>> load(Context& context, image::Image code);
    ~Module();

    Context& context() const { return context_; }
    CUmodule handle() { return reinterpret_cast<CUmodule>(this); }
    /// Null if there is no such kernel.
    Function* function(std::string_view name) const;
    const std::vector<std::shared_ptr<Function>>& functions() const { return functions_; }
    const ModuleData& data() const { return *data_; }

  private:
    explicit Module(Context& context) : context_(context) {}

    Context& context_;
    std::shared_ptr<const ModuleData> data_;
    std::vector<std::shared_ptr<Function>> functions_;
    std::map<std::string_view, Function*> by_name_;
};

class Library;

/// What a CUkernel points at: a kernel of a library, in no context yet.
struct Kernel {
    Library& library;
    std::string name;
    const image::KernelInfo* info;
};

/// What a CUlibrary points at. It becomes a module in each context that uses it.
class Library {
  public:
    explicit Library(image::Image code) : code_(std::move(code)) {}
    ~Library();

    /// Unpacks the image at the first call.
    CUresult kernels(const std::vector<std::shared_ptr<Kernel>>*& out);
    CUresult kernel(std::string_view name, Kernel*& out);
    CUresult module_in(Context& context, std::shared_ptr<Module>& out);
    std::vector<std::shared_ptr<Module>> loaded();
    void forget(Context& context);
    CUlibrary handle() { return reinterpret_cast<CUlibrary>(this); }

  private:
    CUresult open();

    image::Image code_;
    std::mutex mutex_;
    bool opened_ = false;
    std::vector<std::shared_ptr<Kernel>> kernels_;
    std::map<Context*, std::shared_ptr<Module>> modules_;
};

HandleTable<Module>& modules();
HandleTable<Library>& libraries();
HandleTable<Function>& functions();
HandleTable<Kernel>& kernels();

/// Reads an image; what is wrong with it goes to the log buffer and, as one line, to stderr.
Result<image::Image> open_image(const void* data, const JitOptions& options, bool unpack);
/// The code for an image's error, said once and logged.
CUresult report(const image::ImageError& error, const JitOptions& options);

/// A function handle, or a kernel handle cast to one: then its function in `context`.
CUresult find_function(CUfunction handle, Context* context, std::shared_ptr<Function>& out);

/// Unloads what was loaded into a context.
void release_modules_of(Context& context);

}  // namespace simgpu::driver
