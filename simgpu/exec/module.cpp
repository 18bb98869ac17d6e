// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <algorithm>
#include <cstring>
#include <set>

#include "simgpu/exec/ast.hpp"
#include "simgpu/exec/function_builder.hpp"
#include "simgpu/exec/ptx.hpp"

namespace simgpu::ptx {

namespace {

using exec::Function;
using exec::FunctionBuilder;
using exec::Program;
using exec::SharedLayout;
using exec::Space;
using exec::Symbol;
using exec::SymbolKind;
using exec::SymbolTable;

std::uint32_t align_up(std::uint64_t value, std::uint64_t align) {
    const std::uint64_t unit = std::max<std::uint64_t>(align, 1);
    return static_cast<std::uint32_t>((value + unit - 1) / unit * unit);
}

/// From a parsed text to a module with code.
class ModuleBuilder {
  public:
    explicit ModuleBuilder(const exec::ast::File& file)
        : file_(file), program_(std::make_shared<Program>()) {}

    tl::expected<Module, ParseError> run() {
        module_.target = file_.target;
        module_.version = file_.version;
        for (const auto& variable : file_.variables) declare_variable(variable);
        for (const auto& function : file_.functions) declare_function(function);
        for (const auto& function : file_.functions) {
            if (function.defined) decode(function);
        }
        for (const auto& function : file_.functions) {
            if (function.defined && function.entry) finish_kernel(function);
        }
        if (!error_.reason.empty()) return tl::unexpected(error_);
        module_.program = std::move(program_);
        return std::move(module_);
    }

  private:
    void fail(std::uint32_t line, std::string reason) {
        if (error_.reason.empty()) error_ = {line, std::move(reason)};
    }

    void declare_variable(const exec::ast::Variable& variable) {
        Symbol symbol;
        symbol.type = variable.type;
        if (variable.space == Space::Shared) {
            symbol.kind = SymbolKind::Shared;
            symbol.index = static_cast<std::uint32_t>(program_->shared.size());
            program_->shared.push_back({std::string(variable.name), variable.bytes, variable.align,
                                        variable.bytes == 0 && variable.is_array});
        } else if (variable.space == Space::Global || variable.space == Space::Const) {
            symbol.kind = SymbolKind::Global;
            symbol.index = global_index(variable);
        } else {
            return;
        }
        symbols_[variable.name] = symbol;
    }

    /// A declaration and a definition of one name are one variable.
    std::uint32_t global_index(const exec::ast::Variable& variable) {
        Global global;
        global.name = variable.name;
        global.constant = variable.space == Space::Const;
        global.external = variable.external;
        global.managed = variable.managed;
        global.bytes = variable.bytes;
        global.align = variable.align;
        global.initial = variable.initial;
        global.relocations = variable.relocations;
        const auto found = symbols_.find(variable.name);
        if (found != symbols_.end() && found->second.kind == SymbolKind::Global) {
            if (!variable.external) module_.globals[found->second.index] = std::move(global);
            return found->second.index;
        }
        module_.globals.push_back(std::move(global));
        program_->global_names.emplace_back(variable.name);
        return static_cast<std::uint32_t>(module_.globals.size() - 1);
    }

    void declare_function(const exec::ast::Function& function) {
        const auto found = program_->function_by_name.find(std::string(function.name));
        std::uint32_t index = 0;
        if (found != program_->function_by_name.end()) {
            index = found->second;
            if (function.defined && program_->functions[index].defined)
                return fail(function.line,
                            "function " + std::string(function.name) + " is defined twice");
        } else {
            index = static_cast<std::uint32_t>(program_->functions.size());
            program_->functions.emplace_back();
            program_->function_by_name.emplace(function.name, index);
        }
        Function& made = program_->functions[index];
        made.name = function.name;
        made.entry = function.entry;
        made.defined = made.defined || function.defined;
        Symbol symbol;
        symbol.kind = SymbolKind::Function;
        symbol.index = index;
        symbols_[function.name] = symbol;
    }

    void decode(const exec::ast::Function& parsed) {
        Function& function =
            program_->functions[program_->function_by_name.at(std::string(parsed.name))];
        FunctionBuilder builder(*program_, symbols_, function);
        if (parsed.entry) {
            kernel_params(parsed, builder, function);
        } else {
            for (const auto& variable : parsed.returns)
                function.returns.push_back(frame_param(variable, builder, function));
            for (const auto& variable : parsed.params)
                function.params.push_back(frame_param(variable, builder, function));
        }
        for (const auto& statement : parsed.body) decode_statement(statement, builder);
        exec::Inst ret;
        exec::OpKey key;
        key.op = exec::Op::Ret;
        ret.fn = exec::find_handler(key);
        function.code.push_back(ret);
        function.lines.push_back(parsed.line);
        builder.resolve_labels();
    }

    static exec::FrameParam frame_param(const exec::ast::Variable& variable,
                                        FunctionBuilder& builder, Function& function) {
        if (variable.space == Space::Reg && function.unknown.empty())
            function.unknown = "parameters in registers";
        return builder.declare_frame_variable(variable, SymbolKind::FrameParam);
    }

    static void kernel_params(const exec::ast::Function& parsed, FunctionBuilder& builder,
                              Function& function) {
        std::uint32_t offset = 0;
        for (const auto& variable : parsed.params) {
            offset = align_up(offset, variable.align);
            const auto bytes = static_cast<std::uint32_t>(variable.bytes);
            builder.declare_kernel_param(variable.name, offset, bytes);
            function.params.push_back({offset, bytes});
            offset += bytes;
        }
    }

    static void decode_statement(const exec::ast::Statement& statement, FunctionBuilder& builder) {
        using Kind = exec::ast::StatementKind;
        switch (statement.kind) {
            case Kind::Open:
                return builder.open_scope();
            case Kind::Close:
                return builder.close_scope();
            case Kind::Label:
                return builder.label(statement.text);
            case Kind::Targets:
                return builder.declare_statement(statement, SymbolKind::Targets);
            case Kind::Prototype:
                return builder.declare_statement(statement, SymbolKind::Prototype);
            case Kind::Variable:
                for (const auto& variable : statement.variables) builder.declare(variable);
                return;
            case Kind::Instruction:
                break;
        }
        builder.begin(statement);
        if (!builder.failed()) exec::decode_instruction(builder);
        builder.end();
    }

    /// Functions that may run under the kernel, itself first. An indirect call may reach any.
    std::vector<std::uint32_t> reachable(std::uint32_t kernel) const {
        std::vector<std::uint32_t> order{kernel};
        std::set<std::uint32_t> seen{kernel};
        const auto add = [&](std::uint32_t index) {
            if (seen.insert(index).second) order.push_back(index);
        };
        for (std::size_t k = 0; k < order.size(); ++k) {
            const Function& function = program_->functions[order[k]];
            for (const std::uint32_t callee : function.callees) add(callee);
            if (!function.calls_indirectly) continue;
            for (std::uint32_t index = 0; index < program_->functions.size(); ++index) {
                if (program_->functions[index].defined && !program_->functions[index].entry)
                    add(index);
            }
        }
        return order;
    }

    /// PTX says nothing of real registers, so this guesses, and never so many that a block as
    /// large as the kernel allows could not be launched: what it does is right wherever it runs.
    static std::uint32_t guess_registers(const Function& function, const Kernel& kernel) {
        constexpr std::uint32_t kRegistersPerSm = 65536;
        constexpr std::uint32_t kVirtualPerReal = 3;
        const auto& bound =
            kernel.required_block[0] != 0 ? kernel.required_block : kernel.max_block;
        std::uint32_t threads = 1024;
        if (bound[0] != 0) {
            std::uint64_t largest =
                std::uint64_t{bound[0]} * std::max(bound[1], 1U) * std::max(bound[2], 1U);
            threads = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(largest, 32, 1024));
        }
        threads = (threads + 31) / 32 * 32;
        std::uint32_t most = std::min(kRegistersPerSm / threads / 8 * 8, 255U);
        return std::clamp<std::uint32_t>(function.frame_bytes / 128 / kVirtualPerReal, 16, most);
    }

    void finish_kernel(const exec::ast::Function& parsed) {
        Kernel kernel;
        kernel.name = parsed.name;
        kernel.function_index = program_->function_by_name.at(kernel.name);
        const Function& function = program_->functions[kernel.function_index];
        for (std::size_t k = 0; k < parsed.params.size(); ++k) {
            const auto& variable = parsed.params[k];
            kernel.params.push_back({std::string(variable.name), function.params[k].offset_bytes,
                                     function.params[k].bytes, variable.align});
            kernel.param_bytes = function.params[k].offset_bytes + function.params[k].bytes;
        }
        kernel.local_bytes = function.local_bytes;
        kernel.max_block = parsed.max_block;
        kernel.required_block = parsed.required_block;
        kernel.registers = guess_registers(function, kernel);
        const std::vector<std::uint32_t> functions = reachable(kernel.function_index);
        kernel.uses_textures = std::any_of(
            functions.begin(), functions.end(),
            [&](std::uint32_t index) { return !program_->functions[index].textures.empty(); });
        SharedLayout layout = place_shared(functions, kernel.unknown);
        kernel.static_shared_bytes = layout.static_bytes;
        program_->layouts.emplace(kernel.function_index, std::move(layout));
        module_.kernels.push_back(std::move(kernel));
    }

    SharedLayout place_shared(const std::vector<std::uint32_t>& functions,
                              std::string& unknown) const {
        SharedLayout layout;
        std::set<std::uint32_t> used;
        std::set<std::uint32_t> globals;
        for (const std::uint32_t index : functions) {
            const Function& function = program_->functions[index];
            if (unknown.empty()) unknown = function.unknown;
            used.insert(function.shared_used.begin(), function.shared_used.end());
            for (const exec::Constant& constant : function.constants) {
                if (constant.kind == exec::ConstantKind::Global) globals.insert(constant.index);
            }
        }
        std::uint64_t offset = 0;
        std::uint64_t dynamic_align = 16;
        for (const std::uint32_t index : used) {
            const exec::SharedVariable& variable = program_->shared[index];
            if (variable.dynamic) {
                dynamic_align = std::max<std::uint64_t>(dynamic_align, variable.align);
                continue;
            }
            offset = (offset + variable.align - 1) / variable.align * variable.align;
            layout.offsets[index] = static_cast<std::uint32_t>(offset);
            offset += variable.bytes;
            if (offset > (std::uint64_t{1} << 30)) break;
        }
        layout.static_bytes = static_cast<std::uint32_t>(offset);
        layout.dynamic_offset = align_up(offset, dynamic_align);
        for (const std::uint32_t index : used) {
            if (program_->shared[index].dynamic) layout.offsets[index] = layout.dynamic_offset;
        }
        layout.globals_used.assign(globals.begin(), globals.end());
        return layout;
    }

    const exec::ast::File& file_;
    std::shared_ptr<Program> program_;
    Module module_;
    SymbolTable symbols_;
    ParseError error_;
};

}  // namespace

const Kernel* Module::find_kernel(std::string_view name) const {
    const auto found = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const Kernel& kernel) { return kernel.name == name; });
    return found == kernels.end() ? nullptr : &*found;
}

const Global* Module::find_global(std::string_view name) const {
    const auto found = std::find_if(globals.begin(), globals.end(),
                                    [&](const Global& global) { return global.name == name; });
    return found == globals.end() ? nullptr : &*found;
}

tl::expected<Module, ParseError> parse(std::string_view text) {
    const auto file = exec::ast::parse_file(text);
    if (!file) return tl::unexpected(file.error());
    return ModuleBuilder(*file).run();
}

tl::expected<std::vector<std::byte>, std::string> initial_bytes(const Module& module,
                                                                const Global& global,
                                                                const SymbolAddresses& addresses) {
    std::vector<std::byte> bytes(global.bytes);
    std::copy_n(global.initial.begin(), std::min(global.initial.size(), bytes.size()),
                bytes.begin());
    for (const Relocation& relocation : global.relocations) {
        std::uint64_t value = 0;
        if (const auto variable = addresses.find(relocation.symbol); variable != addresses.end()) {
            value = variable->second;
        } else if (const auto function = module.program->function_by_name.find(relocation.symbol);
                   function != module.program->function_by_name.end()) {
            value = exec::kFunctionWindow + function->second;
        } else {
            return tl::unexpected("variable " + global.name + " points to " + relocation.symbol +
                                  ", which has no address");
        }
        value += static_cast<std::uint64_t>(relocation.addend);
        if (relocation.offset_bytes + relocation.bytes <= bytes.size())
            std::memcpy(bytes.data() + relocation.offset_bytes, &value,
                        std::min<std::size_t>(relocation.bytes, 8));
    }
    return bytes;
}

}  // namespace simgpu::ptx
