// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "simgpu/exec/ast.hpp"
#include "simgpu/exec/opcode.hpp"
#include "simgpu/exec/program.hpp"

namespace simgpu::exec {

/// What a name stands for.
enum class SymbolKind : std::uint8_t {
    Register,
    Local,
    FrameParam,
    KernelParam,
    Shared,
    Global,
    Function,
    Targets,
    Prototype
};

struct Symbol {
    SymbolKind kind = SymbolKind::Register;
    Type type = Type::None;
    std::uint32_t index = 0;
    std::uint32_t slot = kNoSlot;
    std::uint32_t offset_bytes = 0;
    std::uint32_t bytes = 0;
    const ast::Statement* statement = nullptr;
};

using SymbolTable = std::unordered_map<std::string_view, Symbol>;

/// The code of one function in the making: names, register slots, constants, instructions.
/// Instructions that cannot be executed are noted in `Function::unknown`; nothing else fails.
class FunctionBuilder {
  public:
    FunctionBuilder(Program& program, const SymbolTable& module_symbols, Function& function)
        : program_(program), module_symbols_(module_symbols), function_(function) {
        open_scope();
    }

    void open_scope();
    void close_scope();
    void declare(const ast::Variable& variable);
    void declare_statement(const ast::Statement& statement, SymbolKind kind);
    /// A variable in the function's local memory.
    FrameParam declare_frame_variable(const ast::Variable& variable, SymbolKind kind);
    void declare_kernel_param(std::string_view name, std::uint32_t offset_bytes,
                              std::uint32_t bytes);
    std::optional<Symbol> find(std::string_view name);

    /// Begins an instruction of the text: what is emitted next has its guard.
    void begin(const ast::Statement& statement);
    /// Emits what converts results after the instruction itself.
    void end();
    void unknown(const std::string& why = {});
    bool failed() const { return failed_; }

    /// Slot of an operand to be read as `type`; kNoSlot and a failure if there is none.
    std::uint32_t read(const ast::Operand& operand, Type type);
    /// Slot of a register to be written as `type`; kNoSlot for a dropped result.
    std::uint32_t write(const ast::Operand& operand, Type type);
    /// Slot of a predicate to be read; `negated` takes the operand's `!`.
    std::uint32_t read_predicate(const ast::Operand& operand, bool& negated);
    std::uint32_t write_predicate(const ast::Operand& operand);
    std::uint32_t constant(ConstantKind kind, bool wide, std::uint64_t bits,
                           std::uint32_t index = 0);
    std::uint32_t temporary(Type type);
    /// Fills the address fields of `inst`. False if the operand is no address.
    bool address(const ast::Operand& operand, Inst& inst);

    Inst& emit(const OpKey& key, const Inst& inst);
    void label(std::string_view name);
    /// The next branch's target is `name`, once all labels are known.
    void branch_to(std::string_view name);
    std::uint32_t branch_table(const ast::Statement& targets);
    void resolve_labels();

    Function& function() { return function_; }
    Program& program() { return program_; }
    const ast::Statement& statement() const { return *statement_; }

    static std::optional<SpecialRegister> special_register(std::string_view name, bool& wide);

  private:
    struct Range {
        std::string_view prefix;
        std::uint32_t count = 0;
        Type type = Type::None;
    };
    struct Scope {
        std::uint32_t id = 0;
        SymbolTable symbols;
        std::vector<Range> ranges;
        std::uint32_t local_top = 0;
    };
    struct Fixup {
        std::uint32_t scope = 0;
        std::string_view name;
        std::uint32_t inst = 0;
        std::uint32_t table = kNoSlot;
        std::uint32_t entry = 0;
    };

    std::uint32_t allocate_register(Type type);
    std::uint32_t read_symbol(const ast::Operand& operand, Type type);
    std::uint32_t read_special(SpecialRegister which, bool wide, Type type);
    std::uint32_t constant_of(const ast::Operand& operand, Type type);
    std::optional<std::uint32_t> find_label(std::uint32_t scope, std::string_view name) const;

    Program& program_;
    const SymbolTable& module_symbols_;
    Function& function_;
    std::vector<Scope> scopes_;
    std::vector<std::uint32_t> scope_parents_;
    std::uint32_t local_top_ = 0;
    std::uint32_t predicate_chunk_ = 0;
    std::uint32_t predicates_left_ = 0;
    std::map<std::tuple<ConstantKind, bool, std::uint64_t, std::uint32_t>, std::uint32_t>
        constants_;
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> labels_;
    std::vector<Fixup> fixups_;
    const ast::Statement* statement_ = nullptr;
    std::uint32_t guard_ = kNoGuard;
    bool guard_negated_ = false;
    bool failed_ = false;
    std::vector<std::tuple<std::uint32_t, std::uint32_t, Type>> widenings_;
};

/// Decodes the statement that `builder` has begun.
void decode_instruction(FunctionBuilder& builder);

/// Likewise, for the instructions of textures and surfaces.
void decode_texture(FunctionBuilder& builder, const Opcode& opcode);

}  // namespace simgpu::exec
