// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "simgpu/exec/ptx.hpp"

namespace simgpu::exec {

enum class TokenKind : std::uint8_t { Word, Integer, Float32, Float64, String, Punctuation, End };

/// A piece of PTX text. A word keeps its dots ("ld.global.f32", "%tid.x", ".reg"), as PTX never
/// needs its parts on their own before the instruction is known.
struct Token {
    TokenKind kind = TokenKind::End;
    std::uint32_t line = 0;
    std::string_view text;
    /// Value of an integer, or the bits of a float.
    std::uint64_t bits = 0;

    bool is(char c) const { return kind == TokenKind::Punctuation && text[0] == c; }
    bool is_word(std::string_view word) const { return kind == TokenKind::Word && text == word; }
};

/// Cuts the text, which must outlive the tokens. The last token is always End.
tl::expected<std::vector<Token>, ptx::ParseError> tokenize(std::string_view text);

}  // namespace simgpu::exec
