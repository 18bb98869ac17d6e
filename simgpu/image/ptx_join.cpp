// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/image/ptx_join.hpp"

#include <fmt/format.h>

#include <cctype>
#include <unordered_map>
#include <unordered_set>

namespace libswap::simgpu::image {
namespace {

/// A statement at the outermost level: a directive, a declaration or a function with its body.
struct Statement {
    std::string_view text;
    std::string_view name;
    bool is_extern = false;
    bool is_weak = false;
    /// A declaration that ends in ';' where a definition would have a body.
    bool is_prototype = false;
};

bool is_name_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

/// Where a string or comment that starts at `at` ends; `at` itself if none does.
std::size_t after_opaque(std::string_view text, std::size_t at) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//")) {
        const std::size_t end = text.find('\n', at);
        return end == std::string_view::npos ? text.size() : end;
    }
    if (rest.starts_with("/*")) {
        const std::size_t end = text.find("*/", at + 2);
        return end == std::string_view::npos ? text.size() : end + 2;
    }
    if (rest.starts_with("\"")) {
        std::size_t end = at + 1;
        while (end < text.size() && text[end] != '"') {
            end += text[end] == '\\' ? 2 : 1;
        }
        return std::min(end + 1, text.size());
    }
    return at;
}

std::size_t skip_blank(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        const bool comment = text.substr(at, 2) == "//" || text.substr(at, 2) == "/*";
        if (comment) {
            at = after_opaque(text, at);
        } else if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
            ++at;
        } else {
            break;
        }
    }
    return at;
}

bool ends_with_line(std::string_view rest) {
    for (const std::string_view directive :
         {".version", ".target", ".address_size", ".file", ".loc", ".pragma"}) {
        if (rest.starts_with(directive)) {
            return true;
        }
    }
    return false;
}

/// Where the statement that starts at `at` ends.
std::size_t statement_end(std::string_view text, std::size_t at) {
    if (ends_with_line(text.substr(at))) {
        const std::size_t end = text.find('\n', at);
        return end == std::string_view::npos ? text.size() : end + 1;
    }
    int depth = 0;
    bool initialiser = false;
    while (at < text.size()) {
        const std::size_t past = after_opaque(text, at);
        if (past != at) {
            at = past;
            continue;
        }
        const char c = text[at++];
        if (c == '=' && depth == 0) {
            initialiser = true;
        } else if (c == '{') {
            ++depth;
        } else if (c == '}') {
            // An initialiser's brace is followed by ';'; a body's, or a section's, ends the
            // statement.
            if (--depth <= 0 && !initialiser) {
                return at;
            }
        } else if (c == ';' && depth == 0) {
            return at;
        }
    }
    return text.size();
}

std::string_view next_word(std::string_view text, std::size_t& at) {
    at = skip_blank(text, at);
    const std::size_t start = at;
    while (at < text.size() && (is_name_character(text[at]) || text[at] == '.')) {
        ++at;
    }
    if (at == start && at < text.size()) {
        ++at;
    }
    return text.substr(start, at - start);
}

std::size_t after_parenthesis(std::string_view text, std::size_t at) {
    const std::size_t end = text.find(')', at);
    return end == std::string_view::npos ? text.size() : end + 1;
}

/// The first word that is no directive, number or parenthesised list.
std::string_view declared_name(std::string_view text) {
    std::size_t at = 0;
    std::string_view previous;
    while (at < text.size()) {
        const std::string_view word = next_word(text, at);
        if (word == "(") {
            at = after_parenthesis(text, at);
        } else if (!word.empty() && is_name_character(word[0]) &&
                   std::isdigit(static_cast<unsigned char>(word[0])) == 0) {
            return word;
        }
        previous = word;
    }
    return {};
}

Statement describe(std::string_view text) {
    Statement statement;
    statement.text = text;
    if (ends_with_line(text)) {
        return statement;
    }
    std::size_t at = 0;
    bool is_function = false;
    for (std::string_view word = next_word(text, at); word.starts_with(".");) {
        statement.is_extern |= word == ".extern";
        statement.is_weak |= word == ".weak" || word == ".common";
        is_function |= word == ".func" || word == ".entry";
        word = next_word(text, at);
    }
    statement.name = declared_name(text);
    statement.is_prototype = is_function && text.find('{') == std::string_view::npos;
    return statement;
}

std::vector<Statement> split(std::string_view text) {
    std::vector<Statement> statements;
    for (std::size_t at = skip_blank(text, 0); at < text.size(); at = skip_blank(text, at)) {
        const std::size_t end = statement_end(text, at);
        statements.push_back(describe(text.substr(at, end - at)));
        at = end;
    }
    return statements;
}

bool is_header(std::string_view text) {
    return text.starts_with(".version") || text.starts_with(".target") ||
           text.starts_with(".address_size");
}

bool is_definition(const Statement& statement) {
    return !statement.name.empty() && !statement.is_extern && !statement.is_prototype;
}

}  // namespace

tl::expected<std::string, ImageError> join_ptx(const std::vector<std::string_view>& texts) {
    if (texts.size() == 1) {
        return std::string(texts[0]);
    }
    std::vector<std::vector<Statement>> units;
    std::unordered_map<std::string_view, bool> defined;
    for (const std::string_view text : texts) {
        units.push_back(split(text));
        for (const Statement& statement : units.back()) {
            if (!is_definition(statement)) {
                continue;
            }
            const auto [place, fresh] = defined.emplace(statement.name, statement.is_weak);
            if (!fresh && !place->second && !statement.is_weak) {
                return tl::make_unexpected(ImageError{
                    CUDA_ERROR_INVALID_PTX,
                    fmt::format("{} is defined in two translation units", statement.name)});
            }
        }
    }
    std::string joined;
    std::unordered_set<std::string_view> written;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        for (const Statement& statement : units[unit]) {
            if (unit > 0 && is_header(statement.text)) {
                continue;
            }
            if (statement.is_extern && defined.contains(statement.name)) {
                continue;
            }
            const bool once = is_definition(statement) || statement.is_extern;
            if (once && !statement.name.empty() && !written.insert(statement.name).second) {
                continue;
            }
            joined.append(statement.text);
            joined.push_back('\n');
        }
    }
    return joined;
}

}  // namespace libswap::simgpu::image
