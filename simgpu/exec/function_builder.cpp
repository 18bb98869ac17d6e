// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/function_builder.hpp"

#include <bit>
#include <charconv>

namespace simgpu::exec {

namespace {

std::uint32_t align_up(std::uint64_t value, std::uint64_t align) {
    return static_cast<std::uint32_t>((value + align - 1) / align * align);
}

std::string trimmed(std::string_view raw) {
    std::string out;
    for (const char c : raw) {
        const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!blank)
            out += c;
        else if (!out.empty() && out.back() != ' ')
            out += ' ';
        if (out.size() >= 120) break;
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
}

}  // namespace

void FunctionBuilder::open_scope() {
    Scope scope;
    scope.id = static_cast<std::uint32_t>(scope_parents_.size());
    scope_parents_.push_back(scopes_.empty() ? scope.id : scopes_.back().id);
    scope.local_top = local_top_;
    scopes_.push_back(std::move(scope));
}

void FunctionBuilder::close_scope() {
    if (scopes_.size() == 1) return;
    local_top_ = scopes_.back().local_top;
    scopes_.pop_back();
}

std::uint32_t FunctionBuilder::allocate_register(Type type) {
    if (type == Type::Pred) {
        if (predicates_left_ == 0) {
            predicate_chunk_ = function_.frame_bytes;
            function_.frame_bytes += 64;
            predicates_left_ = 16;
        }
        return predicate_chunk_ + 4 * (16 - predicates_left_--);
    }
    const std::uint32_t slot = function_.frame_bytes;
    function_.frame_bytes += 32 * std::max<std::uint32_t>(4, type_bytes(type));
    return slot;
}

FrameParam FunctionBuilder::declare_frame_variable(const ast::Variable& variable, SymbolKind kind) {
    Symbol symbol;
    symbol.kind = kind;
    symbol.type = variable.type;
    // Whole words, so that a copy of one variable never touches its neighbour.
    symbol.offset_bytes = align_up(local_top_, std::max<std::uint32_t>(variable.align, 8));
    if (variable.bytes > 512 * 1024 || symbol.offset_bytes > 512 * 1024) {
        if (function_.unknown.empty()) function_.unknown = "local variable of more than 512 KiB";
        return {};
    }
    symbol.bytes = static_cast<std::uint32_t>(variable.bytes);
    local_top_ = symbol.offset_bytes + align_up(symbol.bytes, 8);
    function_.local_bytes = std::max(function_.local_bytes, local_top_);
    scopes_.back().symbols[variable.name] = symbol;
    return {symbol.offset_bytes, symbol.bytes};
}

void FunctionBuilder::declare_kernel_param(std::string_view name, std::uint32_t offset_bytes,
                                           std::uint32_t bytes) {
    Symbol symbol;
    symbol.kind = SymbolKind::KernelParam;
    symbol.offset_bytes = offset_bytes;
    symbol.bytes = bytes;
    scopes_.back().symbols[name] = symbol;
}

void FunctionBuilder::declare(const ast::Variable& variable) {
    if (variable.space == Space::Reg) {
        if (variable.count != 0) {
            scopes_.back().ranges.push_back({variable.name, variable.count, variable.type});
            return;
        }
        Symbol symbol;
        symbol.type = variable.type;
        symbol.slot = allocate_register(variable.type);
        scopes_.back().symbols[variable.name] = symbol;
        return;
    }
    if (variable.space == Space::Shared) {
        Symbol symbol;
        symbol.kind = SymbolKind::Shared;
        symbol.index = static_cast<std::uint32_t>(program_.shared.size());
        program_.shared.push_back(
            {std::string(variable.name), variable.bytes, variable.align, variable.external});
        scopes_.back().symbols[variable.name] = symbol;
        return;
    }
    declare_frame_variable(
        variable, variable.space == Space::Param ? SymbolKind::FrameParam : SymbolKind::Local);
}

void FunctionBuilder::declare_statement(const ast::Statement& statement, SymbolKind kind) {
    Symbol symbol;
    symbol.kind = kind;
    symbol.statement = &statement;
    scopes_.back().symbols[statement.text] = symbol;
}

std::optional<Symbol> FunctionBuilder::find(std::string_view name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        const auto found = scope->symbols.find(name);
        if (found != scope->symbols.end()) return found->second;
        for (const Range& range : scope->ranges) {
            if (name.size() <= range.prefix.size() ||
                name.substr(0, range.prefix.size()) != range.prefix)
                continue;
            std::uint32_t number = 0;
            const char* first = name.data() + range.prefix.size();
            const char* last = name.data() + name.size();
            const auto [end, code] = std::from_chars(first, last, number);
            if (code != std::errc{} || end != last || number >= range.count) continue;
            Symbol symbol;
            symbol.type = range.type;
            symbol.slot = allocate_register(range.type);
            scope->symbols[name] = symbol;
            return symbol;
        }
    }
    const auto found = module_symbols_.find(name);
    if (found != module_symbols_.end()) return found->second;
    return std::nullopt;
}

void FunctionBuilder::begin(const ast::Statement& statement) {
    statement_ = &statement;
    failed_ = false;
    widenings_.clear();
    guard_ = kNoGuard;
    guard_negated_ = false;
    if (statement.predicate.empty()) return;
    const auto symbol = find(statement.predicate);
    if (!symbol || symbol->kind != SymbolKind::Register || symbol->type != Type::Pred) {
        return unknown("predicate " + std::string(statement.predicate) + " of " +
                       trimmed(statement.raw));
    }
    guard_ = symbol->slot;
    guard_negated_ = statement.predicate_negated;
}

void FunctionBuilder::end() {
    for (const auto& [wide, narrow, type] : widenings_) {
        OpKey key;
        key.op = Op::Cvt;
        key.type = is_signed(type) ? Type::S64 : Type::U64;
        key.from = type;
        Inst inst;
        inst.op[0] = wide;
        inst.op[1] = narrow;
        emit(key, inst);
    }
    widenings_.clear();
}

void FunctionBuilder::unknown(const std::string& why) {
    failed_ = true;
    if (!function_.unknown.empty()) return;
    function_.unknown = why.empty() ? trimmed(statement_->raw) : why;
    if (function_.unknown.empty()) function_.unknown = "an instruction that cannot be read";
}

std::uint32_t FunctionBuilder::constant(ConstantKind kind, bool wide, std::uint64_t bits,
                                        std::uint32_t index) {
    const auto key = std::make_tuple(kind, wide, bits, index);
    const auto found = constants_.find(key);
    if (found != constants_.end()) return found->second;
    const Type type = kind == ConstantKind::Predicate ? Type::Pred : wide ? Type::B64 : Type::B32;
    const std::uint32_t slot = allocate_register(type);
    function_.constants.push_back({kind, wide, slot, index, bits});
    constants_.emplace(key, slot);
    return slot;
}

std::uint32_t FunctionBuilder::temporary(Type type) { return allocate_register(type); }

std::uint32_t FunctionBuilder::constant_of(const ast::Operand& operand, Type type) {
    std::uint64_t bits = operand.bits;
    const bool wide = type_bytes(type) == 8;
    if (operand.kind == ast::OperandKind::Float32 && type == Type::F64) {
        bits = std::bit_cast<std::uint64_t>(
            static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    } else if (operand.kind == ast::OperandKind::Float64 && !wide) {
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    } else if (operand.kind == ast::OperandKind::Integer && type == Type::F32 &&
               statement_->text.substr(0, 3) != "mov") {
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int64_t>(bits)));
    }
    return constant(ConstantKind::Value, wide, wide ? bits : bits & 0xffffffffU);
}

std::uint32_t FunctionBuilder::read(const ast::Operand& operand, Type type) {
    switch (operand.kind) {
        case ast::OperandKind::Integer:
        case ast::OperandKind::Float32:
        case ast::OperandKind::Float64:
            return constant_of(operand, type);
        case ast::OperandKind::Name:
            return read_symbol(operand, type);
        default:
            unknown();
            return kNoSlot;
    }
}

std::uint32_t FunctionBuilder::read_special(SpecialRegister which, bool wide, Type type) {
    const bool wanted = type_bytes(type) == 8;
    OpKey key;
    key.op = Op::Special;
    Inst inst;
    inst.op[0] = temporary(wanted ? Type::B64 : Type::B32);
    inst.mode = static_cast<std::uint8_t>(which);
    inst.mode2 = wanted ? 8 : 4;
    if (wanted && !wide && which <= SpecialRegister::LanemaskGt &&
        which != SpecialRegister::WarpId) {
        unknown();
        return kNoSlot;
    }
    return emit(key, inst).op[0];
}

std::uint32_t FunctionBuilder::read_symbol(const ast::Operand& operand, Type type) {
    const bool wide = type_bytes(type) == 8;
    const auto symbol = find(operand.name);
    if (!symbol) {
        bool wide_special = false;
        if (operand.name == "WARP_SZ") return constant(ConstantKind::Value, wide, 32);
        if (const auto which = special_register(operand.name, wide_special))
            return read_special(*which, wide_special, type);
        unknown();
        return kNoSlot;
    }
    switch (symbol->kind) {
        case SymbolKind::Register:
            break;
        case SymbolKind::Local:
        case SymbolKind::FrameParam:
            return constant(ConstantKind::Local, wide, symbol->offset_bytes + operand.bits);
        case SymbolKind::KernelParam:
            return constant(ConstantKind::Value, wide, symbol->offset_bytes + operand.bits);
        case SymbolKind::Shared:
            function_.shared_used.push_back(symbol->index);
            return constant(ConstantKind::Shared, wide, operand.bits, symbol->index);
        case SymbolKind::Global:
            return constant(ConstantKind::Global, wide, operand.bits, symbol->index);
        case SymbolKind::Function:
            function_.callees.push_back(symbol->index);
            return constant(ConstantKind::Function, wide, 0, symbol->index);
        default:
            unknown();
            return kNoSlot;
    }
    const std::uint32_t register_bytes = std::max<std::uint32_t>(4, type_bytes(symbol->type));
    if (symbol->type == Type::Pred || register_bytes > 8 || type_bytes(type) > register_bytes ||
        operand.bits != 0) {
        unknown();
        return kNoSlot;
    }
    if (register_bytes == 4 || wide) return symbol->slot;
    OpKey key;
    key.op = Op::Cvt;
    key.type = Type::U32;
    key.from = Type::U64;
    Inst inst;
    inst.op[0] = temporary(Type::B32);
    inst.op[1] = symbol->slot;
    return emit(key, inst).op[0];
}

std::uint32_t FunctionBuilder::write(const ast::Operand& operand, Type type) {
    if (operand.kind == ast::OperandKind::Sink) return kNoSlot;
    const auto symbol = operand.kind == ast::OperandKind::Name ? find(operand.name) : std::nullopt;
    if (!symbol || symbol->kind != SymbolKind::Register || symbol->type == Type::Pred) {
        unknown();
        return kNoSlot;
    }
    const std::uint32_t register_bytes = std::max<std::uint32_t>(4, type_bytes(symbol->type));
    if (register_bytes > 8 || type_bytes(type) > register_bytes) {
        unknown();
        return kNoSlot;
    }
    if (register_bytes == 8 && type_bytes(type) < 8) {
        const std::uint32_t narrow = temporary(Type::B32);
        widenings_.emplace_back(symbol->slot, narrow, type);
        return narrow;
    }
    return symbol->slot;
}

std::uint32_t FunctionBuilder::read_predicate(const ast::Operand& operand, bool& negated) {
    negated = operand.negated;
    if (operand.kind == ast::OperandKind::Integer)
        return constant(ConstantKind::Predicate, false, operand.bits != 0 ? 1 : 0);
    const auto symbol = operand.kind == ast::OperandKind::Name ? find(operand.name) : std::nullopt;
    if (!symbol || symbol->kind != SymbolKind::Register || symbol->type != Type::Pred) {
        unknown();
        return kNoSlot;
    }
    return symbol->slot;
}

std::uint32_t FunctionBuilder::write_predicate(const ast::Operand& operand) {
    if (operand.kind == ast::OperandKind::Sink) return kNoSlot;
    bool negated = false;
    if (operand.kind != ast::OperandKind::Name || operand.negated) {
        unknown();
        return kNoSlot;
    }
    return read_predicate(operand, negated);
}

bool FunctionBuilder::address(const ast::Operand& operand, Inst& inst) {
    if (operand.kind != ast::OperandKind::Address || !operand.parts.empty()) return false;
    if (operand.name.empty()) {
        inst.addr = constant(ConstantKind::Value, true, 0);
        inst.imm = static_cast<std::int64_t>(operand.bits);
        return true;
    }
    const auto symbol = find(operand.name);
    if (!symbol) return false;
    inst.imm = static_cast<std::int64_t>(operand.bits);
    ast::Operand base;
    base.kind = ast::OperandKind::Name;
    base.name = operand.name;
    if (symbol->kind == SymbolKind::Register && type_bytes(symbol->type) == 4) {
        inst.addr32 = true;
        inst.addr = read(base, Type::B32);
    } else {
        inst.addr = read(base, Type::B64);
    }
    return !failed_;
}

Inst& FunctionBuilder::emit(const OpKey& key, const Inst& inst) {
    function_.code.push_back(inst);
    Inst& emitted = function_.code.back();
    emitted.fn = find_handler(key);
    if (emitted.fn == nullptr) unknown();
    emitted.guard = guard_;
    emitted.guard_negated = guard_negated_;
    function_.lines.push_back(statement_ == nullptr ? 0 : statement_->line);
    return emitted;
}

void FunctionBuilder::label(std::string_view name) {
    labels_[{scopes_.back().id, name}] = static_cast<std::uint32_t>(function_.code.size());
}

void FunctionBuilder::branch_to(std::string_view name) {
    Fixup fixup;
    fixup.scope = scopes_.back().id;
    fixup.name = name;
    fixup.inst = static_cast<std::uint32_t>(function_.code.size());
    fixups_.push_back(fixup);
}

std::uint32_t FunctionBuilder::branch_table(const ast::Statement& targets) {
    const auto index = static_cast<std::uint32_t>(function_.branch_tables.size());
    function_.branch_tables.emplace_back(targets.operands.size());
    for (std::uint32_t k = 0; k < targets.operands.size(); ++k) {
        fixups_.push_back({scopes_.back().id, targets.operands[k].name, 0, index, k});
    }
    return index;
}

std::optional<std::uint32_t> FunctionBuilder::find_label(std::uint32_t scope,
                                                         std::string_view name) const {
    for (;;) {
        const auto found = labels_.find({scope, name});
        if (found != labels_.end()) return found->second;
        if (scope_parents_[scope] == scope) return std::nullopt;
        scope = scope_parents_[scope];
    }
}

void FunctionBuilder::resolve_labels() {
    for (const Fixup& fixup : fixups_) {
        const auto target = find_label(fixup.scope, fixup.name);
        if (!target) {
            if (function_.unknown.empty())
                function_.unknown =
                    "branch to " + std::string(fixup.name) + ", which is not a label";
            continue;
        }
        if (fixup.table != kNoSlot) {
            function_.branch_tables[fixup.table][fixup.entry] = *target;
        } else if (fixup.inst < function_.code.size()) {
            function_.code[fixup.inst].addr = *target;
        }
    }
}

std::optional<SpecialRegister> FunctionBuilder::special_register(std::string_view name,
                                                                 bool& wide) {
    using S = SpecialRegister;
    struct Name {
        std::string_view text;
        S which;
    };
    static constexpr Name kNames[] = {
        {"%tid.x", S::TidX},
        {"%tid.y", S::TidY},
        {"%tid.z", S::TidZ},
        {"%ntid.x", S::NtidX},
        {"%ntid.y", S::NtidY},
        {"%ntid.z", S::NtidZ},
        {"%ctaid.x", S::CtaidX},
        {"%ctaid.y", S::CtaidY},
        {"%ctaid.z", S::CtaidZ},
        {"%nctaid.x", S::NctaidX},
        {"%nctaid.y", S::NctaidY},
        {"%nctaid.z", S::NctaidZ},
        {"%laneid", S::LaneId},
        {"%warpid", S::WarpId},
        {"%nwarpid", S::NwarpId},
        {"%smid", S::SmId},
        {"%nsmid", S::NsmId},
        {"%gridid", S::GridId},
        {"%lanemask_eq", S::LanemaskEq},
        {"%lanemask_le", S::LanemaskLe},
        {"%lanemask_lt", S::LanemaskLt},
        {"%lanemask_ge", S::LanemaskGe},
        {"%lanemask_gt", S::LanemaskGt},
        {"%clock", S::Clock},
        {"%clock_hi", S::ClockHi},
        {"%clock64", S::Clock64},
        {"%globaltimer", S::GlobalTimer},
        {"%globaltimer_lo", S::GlobalTimerLo},
        {"%globaltimer_hi", S::GlobalTimerHi},
        {"%dynamic_smem_size", S::DynamicSharedBytes},
        {"%total_smem_size", S::TotalSharedBytes},
        // Where cooperative groups find the memory by which a grid waits for all its CTAs.
        {"%envreg1", S::GridWorkspaceHigh},
        {"%envreg2", S::GridWorkspaceLow},
        {"%aggr_smem_size", S::TotalSharedBytes},
        {"%clusterid.x", S::CtaidX},
        {"%clusterid.y", S::CtaidY},
        {"%clusterid.z", S::CtaidZ},
        {"%nclusterid.x", S::NctaidX},
        {"%nclusterid.y", S::NctaidY},
        {"%nclusterid.z", S::NctaidZ},
        {"%cluster_ctaid.x", S::Zero},
        {"%cluster_ctaid.y", S::Zero},
        {"%cluster_ctaid.z", S::Zero},
        {"%cluster_ctarank", S::Zero},
        {"%cluster_nctaid.x", S::One},
        {"%cluster_nctaid.y", S::One},
        {"%cluster_nctaid.z", S::One},
        {"%cluster_nctarank", S::One},
    };
    for (const Name& entry : kNames) {
        if (entry.text != name) continue;
        wide =
            entry.which == S::Clock64 || entry.which == S::GlobalTimer || entry.which == S::GridId;
        return entry.which;
    }
    if (name.substr(0, 7) == "%envreg" || name.substr(0, 3) == "%pm") return S::Zero;
    return std::nullopt;
}

}  // namespace simgpu::exec
