// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace simgpu::exec {

/// PTX fundamental and packed types.
enum class Type : std::uint8_t {
    None,
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    F32,
    F64,
};

/// State spaces of variables and memory instructions.
enum class Space : std::uint8_t { Generic, Reg, Global, Const, Shared, Local, Param };

/// Bytes in memory; a predicate has none.
constexpr std::uint32_t type_bytes(Type type) {
    switch (type) {
        case Type::B8:
        case Type::U8:
        case Type::S8:
            return 1;
        case Type::B16:
        case Type::U16:
        case Type::S16:
        case Type::F16:
        case Type::BF16:
            return 2;
        case Type::B32:
        case Type::U32:
        case Type::S32:
        case Type::F32:
        case Type::F16x2:
        case Type::BF16x2:
            return 4;
        case Type::B64:
        case Type::U64:
        case Type::S64:
        case Type::F64:
            return 8;
        case Type::B128:
            return 16;
        case Type::None:
        case Type::Pred:
            return 0;
    }
    return 0;
}

constexpr bool is_signed(Type type) {
    return type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64;
}

constexpr bool is_float(Type type) {
    return type == Type::F16 || type == Type::F16x2 || type == Type::BF16 || type == Type::BF16x2 ||
           type == Type::F32 || type == Type::F64;
}

/// The type a suffix such as "f32" (no dot) names, if it names one.
constexpr std::optional<Type> type_of(std::string_view suffix) {
    struct Entry {
        std::string_view name;
        Type type;
    };
    constexpr Entry kEntries[] = {
        {"pred", Type::Pred}, {"b8", Type::B8},         {"b16", Type::B16}, {"b32", Type::B32},
        {"b64", Type::B64},   {"b128", Type::B128},     {"u8", Type::U8},   {"u16", Type::U16},
        {"u32", Type::U32},   {"u64", Type::U64},       {"s8", Type::S8},   {"s16", Type::S16},
        {"s32", Type::S32},   {"s64", Type::S64},       {"f16", Type::F16}, {"f16x2", Type::F16x2},
        {"bf16", Type::BF16}, {"bf16x2", Type::BF16x2}, {"f32", Type::F32}, {"f64", Type::F64},
    };
    for (const Entry& entry : kEntries) {
        if (entry.name == suffix) return entry.type;
    }
    return std::nullopt;
}

}  // namespace simgpu::exec
