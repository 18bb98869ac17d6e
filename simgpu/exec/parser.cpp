// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <algorithm>
#include <bit>
#include <cstring>

#include "simgpu/exec/ast.hpp"
#include "simgpu/exec/lexer.hpp"

namespace simgpu::exec::ast {

namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxInitialBytes = std::uint64_t{1} << 30;
constexpr int kMaxNesting = 64;

class Parser {
  public:
    explicit Parser(std::string_view text, std::vector<Token> tokens)
        : text_(text), tokens_(std::move(tokens)) {}

    tl::expected<File, ptx::ParseError> run() {
        while (ok() && peek().kind != TokenKind::End) module_item();
        if (ok() && file_.version.empty()) fail("no .version directive: this is not PTX");
        if (!ok()) return tl::unexpected(error_);
        return std::move(file_);
    }

  private:
    bool ok() const { return error_.reason.empty(); }

    void fail(std::string reason) {
        if (ok()) error_ = {peek().line, std::move(reason)};
    }

    const Token& peek(std::size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
    }

    const Token& take() {
        const Token& token = peek();
        if (at_ + 1 < tokens_.size()) ++at_;
        return token;
    }

    bool accept(char c) {
        if (!peek().is(c)) return false;
        take();
        return true;
    }

    bool accept_word(std::string_view word) {
        if (!peek().is_word(word)) return false;
        take();
        return true;
    }

    void expect(char c) {
        if (!accept(c)) fail(std::string("expected '") + c + "' before " + shown(peek()));
    }

    static std::string shown(const Token& token) {
        return token.kind == TokenKind::End ? "the end of the text"
                                            : "'" + std::string(token.text.substr(0, 40)) + "'";
    }

    std::string_view expect_name() {
        if (peek().kind != TokenKind::Word || peek().text[0] == '.') {
            fail("expected a name before " + shown(peek()));
            return {};
        }
        return take().text;
    }

    std::uint64_t expect_integer() {
        const bool negative = accept('-');
        if (peek().kind != TokenKind::Integer) {
            fail("expected a number before " + shown(peek()));
            return 0;
        }
        const std::uint64_t value = take().bits;
        return negative ? std::uint64_t{0} - value : value;
    }

    void skip_line() {
        const std::uint32_t line = peek().line;
        while (peek().kind != TokenKind::End && peek().line == line) take();
    }

    void skip_statement() {
        while (peek().kind != TokenKind::End && !accept(';')) take();
    }

    void skip_braces() {
        while (peek().kind != TokenKind::End && !peek().is('{')) take();
        int depth = 0;
        do {
            if (peek().is('{')) ++depth;
            if (peek().is('}')) --depth;
            take();
        } while (depth > 0 && peek().kind != TokenKind::End);
    }

    void module_item() {
        const Token& token = peek();
        if (token.is('@')) return skip_line();
        if (accept(';')) return;
        if (token.kind != TokenKind::Word || token.text[0] != '.') {
            return fail("expected a directive before " + shown(token));
        }
        if (accept_word(".version")) {
            if (peek().kind != TokenKind::Float64 && peek().kind != TokenKind::Integer)
                return fail("expected a version number");
            file_.version = take().text;
        } else if (accept_word(".target")) {
            file_.target = expect_name();
            while (ok() && accept(',')) expect_name();
        } else if (accept_word(".address_size")) {
            file_.address_bits = static_cast<std::uint32_t>(expect_integer());
            if (ok() && file_.address_bits != 64) fail("only 64-bit addresses are supported");
        } else if (token.text == ".file" || token.text == ".loc") {
            skip_line();
        } else if (token.text == ".section") {
            skip_braces();
        } else if (token.text == ".pragma" || token.text == ".alias") {
            skip_statement();
        } else {
            declaration();
        }
    }

    void declaration() {
        Linkage linkage;
        for (;;) {
            if (accept_word(".visible"))
                linkage.visible = true;
            else if (accept_word(".extern"))
                linkage.external = true;
            else if (accept_word(".weak") || accept_word(".common"))
                linkage.weak = linkage.visible = true;
            else
                break;
        }
        if (accept_word(".entry")) return function(linkage, true);
        if (accept_word(".func")) return function(linkage, false);
        variables(linkage, file_.variables);
        expect(';');
    }

    struct Linkage {
        bool visible = false;
        bool external = false;
        bool weak = false;
    };

    static bool space_of(std::string_view word, Space& space) {
        if (word == ".reg")
            space = Space::Reg;
        else if (word == ".global")
            space = Space::Global;
        else if (word == ".const")
            space = Space::Const;
        else if (word == ".shared" || word == ".shared::cta")
            space = Space::Shared;
        else if (word == ".local")
            space = Space::Local;
        else if (word == ".param")
            space = Space::Param;
        else
            return false;
        return true;
    }

    /// Everything of a declaration up to the type.
    Variable variable_prefix(Linkage linkage) {
        Variable variable;
        variable.external = linkage.external;
        variable.visible = linkage.visible || linkage.external;
        variable.weak = linkage.weak;
        if (!space_of(peek().text, variable.space) || peek().kind != TokenKind::Word) {
            fail("unknown directive " + shown(peek()));
            return variable;
        }
        take();
        bool typed = false;
        while (ok() && peek().kind == TokenKind::Word && peek().text[0] == '.') {
            const std::string_view word = take().text;
            if (word == ".align") {
                variable.align = static_cast<std::uint32_t>(expect_integer());
                if (!std::has_single_bit(variable.align) || variable.align > 4096)
                    fail("alignment is not a power of two");
            } else if (word == ".attribute") {
                attribute(variable);
            } else if (word == ".ptr") {
                pointer_annotation();
            } else if (word == ".v2" || word == ".v4" || word == ".v8") {
                variable.vector = static_cast<std::uint32_t>(word[2] - '0');
            } else if (word == ".texref" || word == ".samplerref" || word == ".surfref") {
                variable.type = Type::B64;
                typed = true;
            } else if (const auto type = type_of(word.substr(1))) {
                variable.type = *type;
                typed = true;
            } else {
                fail("unknown type or qualifier '" + std::string(word) + "'");
            }
        }
        if (!typed) fail("a declaration without a type");
        return variable;
    }

    void pointer_annotation() {
        Space ignored{};
        if (peek().kind == TokenKind::Word && space_of(peek().text, ignored)) take();
        if (accept_word(".align")) expect_integer();
    }

    void attribute(Variable& variable) {
        expect('(');
        while (ok() && !accept(')')) {
            if (peek().kind == TokenKind::End) return fail("attribute without an end");
            if (take().text == ".managed") variable.managed = true;
        }
    }

    void variable_name(Variable& variable) {
        variable.name = expect_name();
        std::uint64_t bytes =
            std::max<std::uint64_t>(type_bytes(variable.type), 1) * variable.vector;
        if (variable.align == 0) variable.align = static_cast<std::uint32_t>(bytes);
        const std::uint64_t element_bytes = bytes;
        if (accept('<')) {
            variable.count = static_cast<std::uint32_t>(expect_integer());
            if (variable.count > 1'000'000) fail("more than a million registers");
            expect('>');
        }
        bool open_array = false;
        while (ok() && accept('[')) {
            variable.is_array = true;
            if (accept(']')) {
                open_array = true;
                continue;
            }
            const std::uint64_t extent = expect_integer();
            if (extent != 0 && bytes > kMaxVariableBytes / extent) fail("variable is too large");
            bytes *= extent;
            expect(']');
        }
        variable.bytes = open_array ? 0 : bytes;
        if (ok() && accept('=')) initializer(variable, element_bytes / variable.vector, open_array);
    }

    void initializer(Variable& variable, std::uint64_t element_bytes, bool open_array) {
        std::uint64_t offset = 0;
        initializer_value(variable, element_bytes, offset, 0);
        if (open_array) variable.bytes = offset;
        if (ok() && offset > variable.bytes) fail("initial value is larger than its variable");
    }

    void initializer_value(Variable& variable, std::uint64_t bytes, std::uint64_t& offset,
                           int depth) {
        if (depth > kMaxNesting) return fail("initial value is nested too deeply");
        if (accept('{')) {
            while (ok() && !accept('}')) {
                initializer_value(variable, bytes, offset, depth + 1);
                if (!peek().is('}')) expect(',');
            }
            return;
        }
        const std::uint64_t end = offset + bytes;
        if (end > kMaxInitialBytes) return fail("initial value is too large");
        if (variable.initial.size() < end) variable.initial.resize(end);
        scalar_value(variable, bytes, offset);
        offset = end;
    }

    void scalar_value(Variable& variable, std::uint64_t bytes, std::uint64_t offset) {
        std::uint64_t bits = 0;
        const Token token = peek();
        if (token.kind == TokenKind::Word) return address_value(variable, bytes, offset);
        const bool minus = accept('-');
        if (peek().kind == TokenKind::Float32 || peek().kind == TokenKind::Float64) {
            bits = float_bits(take(), variable.type);
            if (minus) bits ^= std::uint64_t{1} << (bytes * 8 - 1);
        } else {
            bits = expect_integer();
            if (minus) bits = std::uint64_t{0} - bits;
            if (variable.type == Type::F64)
                bits = std::bit_cast<std::uint64_t>(
                    static_cast<double>(static_cast<std::int64_t>(bits)));
            if (variable.type == Type::F32)
                bits = std::bit_cast<std::uint32_t>(
                    static_cast<float>(static_cast<std::int64_t>(bits)));
        }
        if (ok())
            std::memcpy(variable.initial.data() + offset, &bits, std::min<std::uint64_t>(bytes, 8));
    }

    static std::uint64_t float_bits(const Token& token, Type type) {
        if (token.kind == TokenKind::Float32 && type == Type::F64) {
            return std::bit_cast<std::uint64_t>(
                static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(token.bits))));
        }
        if (token.kind == TokenKind::Float64 && type == Type::F32) {
            return std::bit_cast<std::uint32_t>(
                static_cast<float>(std::bit_cast<double>(token.bits)));
        }
        return token.bits;
    }

    /// name, name+4, generic(name), generic(name)+4, mask(...)(name) is not used by nvcc.
    void address_value(Variable& variable, std::uint64_t bytes, std::uint64_t offset) {
        ptx::Relocation relocation;
        relocation.offset_bytes = offset;
        relocation.bytes = static_cast<std::uint32_t>(bytes);
        std::string_view name = expect_name();
        if (name == "generic") {
            expect('(');
            name = expect_name();
            relocation.addend += offset_suffix();
            expect(')');
        }
        relocation.symbol = name;
        relocation.addend += offset_suffix();
        if (ok()) variable.relocations.push_back(std::move(relocation));
    }

    std::int64_t offset_suffix() {
        std::uint64_t sum = 0;
        while (ok() && (peek().is('+') || peek().is('-'))) {
            const bool minus = take().is('-');
            const std::uint64_t value = expect_integer();
            sum += minus ? std::uint64_t{0} - value : value;
        }
        return static_cast<std::int64_t>(sum);
    }

    void variables(Linkage linkage, std::vector<Variable>& into) {
        const Variable prefix = variable_prefix(linkage);
        do {
            Variable variable = prefix;
            variable_name(variable);
            into.push_back(std::move(variable));
        } while (ok() && accept(','));
    }

    std::vector<Variable> parameter_list() {
        std::vector<Variable> list;
        expect('(');
        while (ok() && !accept(')')) {
            Variable variable = variable_prefix({});
            variable_name(variable);
            list.push_back(std::move(variable));
            if (!peek().is(')')) expect(',');
        }
        return list;
    }

    void function(Linkage linkage, bool entry) {
        Function function;
        function.entry = entry;
        function.visible = linkage.visible || linkage.external;
        function.weak = linkage.weak;
        function.line = peek().line;
        while (accept_word(".noreturn") || (peek().is_word(".attribute") && skip_attribute())) {
        }
        if (peek().is('(')) function.returns = parameter_list();
        function.name = expect_name();
        if (peek().is('(')) function.params = parameter_list();
        while (ok() && !peek().is('{') && !peek().is(';')) performance_directive(function);
        if (accept(';')) {
            if (ok()) file_.functions.push_back(std::move(function));
            return;
        }
        expect('{');
        function.defined = true;
        body(function);
        if (ok()) file_.functions.push_back(std::move(function));
    }

    bool skip_attribute() {
        Variable ignored;
        take();
        attribute(ignored);
        return true;
    }

    void performance_directive(Function& function) {
        if (accept_word(".maxntid")) return extents(function.max_block);
        if (accept_word(".reqntid")) return extents(function.required_block);
        if (peek().kind == TokenKind::End) return fail("function without a body");
        if (peek().is('}')) return fail("function without a body");
        take();
    }

    void extents(std::array<std::uint32_t, 3>& extents) {
        extents = {1, 1, 1};
        std::size_t i = 0;
        do {
            const std::uint64_t value = expect_integer();
            if (i < 3) extents[i++] = static_cast<std::uint32_t>(value);
        } while (ok() && accept(','));
    }

    void body(Function& function) {
        int depth = 1;
        while (ok()) {
            const Token& token = peek();
            if (token.kind == TokenKind::End) return fail("function without an end");
            if (accept('{')) {
                if (++depth > kMaxNesting) return fail("blocks are nested too deeply");
                add(function, StatementKind::Open);
            } else if (accept('}')) {
                if (--depth == 0) return;
                add(function, StatementKind::Close);
            } else if (token.kind == TokenKind::Word && token.text[0] == '.') {
                body_directive(function);
            } else if (token.kind == TokenKind::Word && peek(1).is(':')) {
                label(function);
            } else if (!accept(';')) {
                instruction(function);
            }
        }
    }

    Statement& add(Function& function, StatementKind kind) {
        function.body.emplace_back();
        function.body.back().kind = kind;
        function.body.back().line = peek().line;
        return function.body.back();
    }

    void body_directive(Function& function) {
        const std::string_view word = peek().text;
        if (word == ".loc" || word == ".file") return skip_line();
        if (word == ".section") return skip_braces();
        Space ignored{};
        if (word == ".extern" || word == ".visible" || space_of(word, ignored)) {
            Linkage linkage;
            linkage.external = accept_word(".extern");
            if (accept_word(".visible")) linkage.visible = true;
            Statement& statement = add(function, StatementKind::Variable);
            variables(linkage, statement.variables);
            return expect(';');
        }
        skip_statement();
    }

    void label(Function& function) {
        const std::string_view name = take().text;
        take();
        if (accept_word(".branchtargets")) {
            Statement& statement = add(function, StatementKind::Targets);
            statement.text = name;
            do {
                Operand target;
                target.kind = OperandKind::Name;
                target.name = expect_name();
                statement.operands.push_back(target);
            } while (ok() && accept(','));
            return expect(';');
        }
        if (peek().is_word(".calltargets")) return skip_statement();
        if (accept_word(".callprototype")) {
            Statement& statement = add(function, StatementKind::Prototype);
            statement.text = name;
            if (peek().is('(')) statement.variables = parameter_list();
            statement.return_count = static_cast<std::uint32_t>(statement.variables.size());
            expect_name();
            if (peek().is('(')) {
                for (Variable& param : parameter_list())
                    statement.variables.push_back(std::move(param));
            }
            return skip_statement();
        }
        add(function, StatementKind::Label).text = name;
    }

    void instruction(Function& function) {
        Statement& statement = add(function, StatementKind::Instruction);
        const std::size_t start = at_;
        if (accept('@')) {
            statement.predicate_negated = accept('!');
            statement.predicate = expect_name();
        }
        statement.text = expect_name();
        if (!ok()) return;
        bool readable = true;
        if (!peek().is(';')) {
            do {
                statement.operands.emplace_back();
                readable = operand(statement.operands.back(), 0);
            } while (readable && accept(','));
        }
        if (!readable || !peek().is(';')) statement.opaque = true;
        while (!peek().is(';')) {
            if (peek().kind == TokenKind::End || peek().is('}')) {
                if (!inside_braces(start))
                    return fail("instruction without ';' before " + shown(peek()));
            }
            if (peek().kind == TokenKind::End) return;
            take();
        }
        const std::size_t first =
            static_cast<std::size_t>(tokens_[start].text.data() - text_.data());
        const std::size_t last = static_cast<std::size_t>(peek().text.data() - text_.data());
        statement.raw = text_.substr(first, last - first);
        take();
    }

    /// Whether an opening brace since `start` is still to be closed.
    bool inside_braces(std::size_t start) const {
        int depth = 0;
        for (std::size_t i = start; i < at_; ++i) {
            depth += tokens_[i].is('{') ? 1 : tokens_[i].is('}') ? -1 : 0;
        }
        return depth > 0;
    }

    bool operand(Operand& into, int depth) {
        if (depth > 4) return false;
        if (accept('!')) into.negated = true;
        if (accept('[')) return address(into, depth);
        if (accept('{')) return list(into, OperandKind::Vector, '}', depth) && predicate_of(into);
        if (accept('(')) return list(into, OperandKind::Group, ')', depth);
        const bool minus = accept('-');
        const Token& token = peek();
        if (token.kind == TokenKind::Word && !minus && token.text[0] != '.') return name(into);
        if (token.kind == TokenKind::Integer)
            into.kind = OperandKind::Integer;
        else if (token.kind == TokenKind::Float32)
            into.kind = OperandKind::Float32;
        else if (token.kind == TokenKind::Float64)
            into.kind = OperandKind::Float64;
        else
            return false;
        into.bits = take().bits;
        if (minus) negate(into);
        return true;
    }

    static void negate(Operand& operand) {
        if (operand.kind == OperandKind::Integer) operand.bits = std::uint64_t{0} - operand.bits;
        if (operand.kind == OperandKind::Float32) operand.bits ^= 0x80000000U;
        if (operand.kind == OperandKind::Float64) operand.bits ^= std::uint64_t{1} << 63;
    }

    bool name(Operand& into) {
        into.name = take().text;
        into.kind = into.name == "_" ? OperandKind::Sink : OperandKind::Name;
        if (accept('|')) {
            into.parts.emplace_back();
            if (peek().kind != TokenKind::Word) return false;
            Operand& second = into.parts.back();
            second.name = take().text;
            second.kind = second.name == "_" ? OperandKind::Sink : OperandKind::Name;
            return true;
        }
        return added_constant(into);
    }

    bool added_constant(Operand& into) {
        while (peek().is('+') || peek().is('-')) {
            bool minus = take().is('-');
            if (accept('-')) minus = !minus;
            if (peek().kind != TokenKind::Integer) return false;
            const std::uint64_t value = take().bits;
            into.bits += minus ? std::uint64_t{0} - value : value;
        }
        return true;
    }

    bool predicate_of(Operand& vector) {
        if (!accept('|')) return true;
        if (peek().kind != TokenKind::Word) return false;
        vector.predicate = take().text;
        return true;
    }

    bool address(Operand& into, int depth) {
        into.kind = OperandKind::Address;
        if (peek().kind == TokenKind::Word && peek().text[0] != '.') {
            into.name = take().text;
        } else if (peek().kind == TokenKind::Integer) {
            into.bits = take().bits;
        } else {
            return false;
        }
        if (!added_constant(into)) return false;
        while (accept(',')) {
            into.parts.emplace_back();
            if (!operand(into.parts.back(), depth + 1)) return false;
        }
        return accept(']');
    }

    bool list(Operand& into, OperandKind kind, char end, int depth) {
        into.kind = kind;
        if (accept(end)) return true;
        do {
            into.parts.emplace_back();
            if (!operand(into.parts.back(), depth + 1)) return false;
        } while (accept(','));
        return accept(end);
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    File file_;
    ptx::ParseError error_;
};

}  // namespace

tl::expected<File, ptx::ParseError> parse_file(std::string_view text) {
    auto tokens = tokenize(text);
    if (!tokens) return tl::unexpected(tokens.error());
    return Parser(text, std::move(*tokens)).run();
}

}  // namespace simgpu::exec::ast
