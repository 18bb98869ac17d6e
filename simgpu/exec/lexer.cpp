// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/lexer.hpp"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>

namespace simgpu::exec {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool starts_word(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool continues_word(char c) { return starts_word(c) || is_digit(c); }

class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    tl::expected<std::vector<Token>, ptx::ParseError> run() {
        tokens_.reserve(text_.size() / 4);
        while (error_.empty()) {
            skip_blank();
            if (at_ >= text_.size() || text_[at_] == '\0') break;
            next();
        }
        if (!error_.empty()) return tl::unexpected(ptx::ParseError{line_, error_});
        push(TokenKind::End, at_);
        return std::move(tokens_);
    }

  private:
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }

    void push(TokenKind kind, std::size_t start, std::uint64_t bits = 0) {
        tokens_.push_back({kind, line_, text_.substr(start, at_ - start), bits});
    }

    void skip_blank() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') {
                ++line_;
                ++at_;
            } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
                ++at_;
            } else if (c == '/' && peek(1) == '/') {
                while (at_ < text_.size() && text_[at_] != '\n') ++at_;
            } else if (c == '/' && peek(1) == '*') {
                skip_block_comment();
            } else {
                return;
            }
        }
    }

    void skip_block_comment() {
        at_ += 2;
        while (at_ < text_.size() && !(text_[at_] == '*' && peek(1) == '/')) {
            if (text_[at_] == '\n') ++line_;
            ++at_;
        }
        at_ = std::min(at_ + 2, text_.size());
    }

    void next() {
        const char c = text_[at_];
        if (starts_word(c) || (c == '.' && (starts_word(peek(1)) || is_digit(peek(1)))))
            return word();
        if (is_digit(c)) return number();
        if (c == '"') return string();
        static constexpr std::string_view kPunctuation = "{}()[],;:+-!@<>=|~*/&^?%#.";
        if (kPunctuation.find(c) == std::string_view::npos) {
            error_ =
                "unexpected character with code " + std::to_string(static_cast<unsigned char>(c));
            return;
        }
        ++at_;
        push(TokenKind::Punctuation, at_ - 1);
    }

    void word() {
        const std::size_t start = at_;
        ++at_;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (continues_word(c)) {
                ++at_;
            } else if (c == '.' && continues_word(peek(1))) {
                ++at_;
            } else if (c == ':' && peek(1) == ':' && continues_word(peek(2))) {
                at_ += 2;
            } else {
                break;
            }
        }
        push(TokenKind::Word, start);
    }

    void hex_float(std::size_t digits, TokenKind kind, std::size_t start) {
        at_ += 2;
        std::uint64_t bits = 0;
        const char* first = text_.data() + at_;
        const std::size_t left = text_.size() - at_;
        const auto [end, code] = std::from_chars(first, first + std::min(digits, left), bits, 16);
        if (code != std::errc{} || end != first + digits) {
            error_ = "floating-point constant with too few digits";
            return;
        }
        at_ += digits;
        push(kind, start, bits);
    }

    void number() {
        const std::size_t start = at_;
        const char c = peek(1);
        if (peek() == '0' && (c == 'f' || c == 'F')) return hex_float(8, TokenKind::Float32, start);
        if (peek() == '0' && (c == 'd' || c == 'D'))
            return hex_float(16, TokenKind::Float64, start);
        int base = 10;
        if (peek() == '0' && (c == 'x' || c == 'X')) base = 16;
        if (peek() == '0' && (c == 'b' || c == 'B')) base = 2;
        if (base == 10 && is_decimal_float()) return decimal_float(start);
        if (base != 10) at_ += 2;
        if (base == 10 && peek() == '0' && is_digit(c)) base = 8;
        std::uint64_t value = 0;
        const char* first = text_.data() + at_;
        const auto [end, code] = std::from_chars(first, text_.data() + text_.size(), value, base);
        if (code != std::errc{}) {
            error_ = "integer constant that cannot be read";
            return;
        }
        at_ += static_cast<std::size_t>(end - first);
        if (peek() == 'U') ++at_;
        push(TokenKind::Integer, start, value);
    }

    bool is_decimal_float() const {
        std::size_t i = at_;
        while (i < text_.size() && is_digit(text_[i])) ++i;
        if (i >= text_.size()) return false;
        if (text_[i] == '.') return i + 1 < text_.size() && is_digit(text_[i + 1]);
        return text_[i] == 'e' || text_[i] == 'E';
    }

    void decimal_float(std::size_t start) {
        const std::string copy(
            text_.substr(start, std::min<std::size_t>(64, text_.size() - start)));
        char* end = nullptr;
        const double value = std::strtod(copy.c_str(), &end);
        at_ += static_cast<std::size_t>(end - copy.c_str());
        push(TokenKind::Float64, start, std::bit_cast<std::uint64_t>(value));
    }

    void string() {
        const std::size_t start = ++at_;
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
            at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
        }
        if (at_ >= text_.size() || text_[at_] != '"') {
            error_ = "string without an end";
            return;
        }
        push(TokenKind::String, start);
        ++at_;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
    std::vector<Token> tokens_;
    std::string error_;
};

}  // namespace

tl::expected<std::vector<Token>, ptx::ParseError> tokenize(std::string_view text) {
    return Lexer(text).run();
}

}  // namespace simgpu::exec
