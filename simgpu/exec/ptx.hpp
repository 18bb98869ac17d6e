// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>
#include <vector>

namespace simgpu::exec {
struct Program;
}

namespace simgpu::ptx {

/// Device addresses of a module's global and constant variables, by name.
using SymbolAddresses = std::unordered_map<std::string, std::uint64_t>;

/// One kernel parameter's place in the parameter block.
struct Param {
    std::string name;
    std::uint32_t offset_bytes = 0;
    std::uint32_t bytes = 0;
    std::uint32_t align = 1;
};

/// A kernel (`.entry`).
struct Kernel {
    std::string name;
    std::vector<Param> params;
    std::uint32_t param_bytes = 0;
    std::uint32_t static_shared_bytes = 0;
    /// Local memory of one thread, without that of functions it calls.
    std::uint32_t local_bytes = 0;
    /// `.maxntid` / `.reqntid`; 0 where not given.
    std::array<std::uint32_t, 3> max_block{};
    std::array<std::uint32_t, 3> required_block{};
    /// 32-bit registers it would use, a rough figure for occupancy.
    std::uint32_t registers = 0;
    /// It, or a function that it may call, uses texture or surface objects.
    bool uses_textures = false;
    /// Text of the first instruction (or name of the missing function) that cannot be executed, of
    /// the kernel or of a function it calls; empty if the kernel can run.
    std::string unknown;
    /// Position in the module's program.
    std::uint32_t function_index = 0;

    bool executable() const { return unknown.empty(); }
};

/// A pointer inside a variable's initial value: the 8 bytes (or fewer) at `offset_bytes` hold the
/// address of `symbol` plus `addend`.
struct Relocation {
    std::uint64_t offset_bytes = 0;
    std::string symbol;
    std::int64_t addend = 0;
    std::uint32_t bytes = 8;
};

/// A `.global` or `.const` variable. Constants live in device memory like globals: their generic
/// address is their constant address.
struct Global {
    std::string name;
    bool constant = false;
    /// Declared here, defined in another module.
    bool external = false;
    /// Managed memory (`.attribute(.managed)`).
    bool managed = false;
    std::uint64_t bytes = 0;
    std::uint32_t align = 1;
    /// Initial value; what it does not cover is zero.
    std::vector<std::byte> initial;
    std::vector<Relocation> relocations;
};

/// Why a text is not a module: one sentence and the line, counted from 1.
struct ParseError {
    std::uint32_t line = 0;
    std::string reason;
};

/// A parsed module. Immutable; may be used from any thread, and outlives nothing but itself.
struct Module {
    /// As in `.target`: "sm_80".
    std::string target;
    /// As in `.version`: "9.0".
    std::string version;
    std::vector<Kernel> kernels;
    std::vector<Global> globals;
    std::shared_ptr<const exec::Program> program;

    /// The kernel of that name, or nullptr.
    const Kernel* find_kernel(std::string_view name) const;
    /// The variable of that name, or nullptr.
    const Global* find_global(std::string_view name) const;
};

/// Reads PTX text (a trailing NUL is allowed). Instructions that are not known do not make it fail:
/// see `Kernel::unknown`. @thread any
tl::expected<Module, ParseError> parse(std::string_view text);

/// The bytes that a variable starts with (all `global.bytes` of them), pointers filled in from
/// `addresses` and from the module's functions; the error names a symbol that has no address.
tl::expected<std::vector<std::byte>, std::string> initial_bytes(const Module& module,
                                                                const Global& global,
                                                                const SymbolAddresses& addresses);

}  // namespace simgpu::ptx
