// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "simgpu/exec/ptx.hpp"
#include "simgpu/exec/types.hpp"

/// A PTX text as its parser saw it. Names are views into the text.
namespace simgpu::exec::ast {

enum class OperandKind : std::uint8_t {
    Name,  ///< register, variable, label or function; `bits` is an added constant
    Integer,
    Float32,
    Float64,
    Address,  ///< [name + bits], or [bits] if there is no name; [name, part, ...] of a texture
    Vector,   ///< {a, b, ...}
    Group,    ///< (a, b, ...) of a call
    Sink,     ///< _
};

struct Operand {
    OperandKind kind = OperandKind::Sink;
    /// `!p`
    bool negated = false;
    std::string_view name;
    std::uint64_t bits = 0;
    /// Parts of a vector, group or address; for `a|b`, b is the only part of a Name.
    std::vector<Operand> parts;
    /// p of `{a, b, ...}|p`.
    std::string_view predicate;
};

struct Variable {
    Space space = Space::Reg;
    Type type = Type::B32;
    std::uint32_t vector = 1;
    std::string_view name;
    /// `%r<5>`: five registers %r0 to %r4.
    std::uint32_t count = 0;
    std::uint32_t align = 0;
    bool is_array = false;
    bool external = false;
    bool managed = false;
    bool visible = false;
    bool weak = false;
    std::uint64_t bytes = 0;
    std::vector<std::byte> initial;
    std::vector<ptx::Relocation> relocations;
};

enum class StatementKind : std::uint8_t {
    Instruction,
    Label,
    Open,
    Close,
    Variable,
    Targets,
    Prototype
};

struct Statement {
    StatementKind kind = StatementKind::Instruction;
    std::uint32_t line = 0;
    /// Opcode with its suffixes, label, or name of the branch targets.
    std::string_view text;
    std::string_view predicate;
    bool predicate_negated = false;
    /// The operands could not be read; `raw` has the instruction.
    bool opaque = false;
    std::string_view raw;
    std::vector<Operand> operands;
    /// Variable: itself. Prototype: return values, then parameters.
    std::vector<Variable> variables;
    std::uint32_t return_count = 0;
};

struct Function {
    std::string_view name;
    bool entry = false;
    bool defined = false;
    bool visible = false;
    bool weak = false;
    std::uint32_t line = 0;
    std::vector<Variable> returns;
    std::vector<Variable> params;
    std::array<std::uint32_t, 3> max_block{};
    std::array<std::uint32_t, 3> required_block{};
    std::vector<Statement> body;
};

struct File {
    std::string_view version;
    std::string_view target;
    std::uint32_t address_bits = 32;
    std::vector<Variable> variables;
    std::vector<Function> functions;
};

/// Reads one text, which must outlive the answer.
tl::expected<File, ptx::ParseError> parse_file(std::string_view text);

}  // namespace simgpu::exec::ast
