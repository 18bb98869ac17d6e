// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "simgpu/exec/inst.hpp"

namespace simgpu::exec {

/// An opcode taken apart at its dots.
class Opcode {
  public:
    explicit Opcode(std::string_view text) {
        std::size_t start = 0;
        while (start <= text.size()) {
            const std::size_t dot = std::min(text.find('.', start), text.size());
            parts_.push_back(text.substr(start, dot - start));
            start = dot + 1;
        }
        for (std::size_t k = 1; k < parts_.size(); ++k) {
            if (const auto type = type_of(parts_[k])) types_.push_back(*type);
        }
    }

    std::string_view base() const { return parts_[0]; }
    /// Suffix `k`, counted from 0, or an empty text.
    std::string_view suffix(std::size_t k) const {
        return k + 1 < parts_.size() ? parts_[k + 1] : std::string_view{};
    }
    std::size_t suffixes() const { return parts_.size() - 1; }
    bool has(std::string_view suffix) const {
        return std::find(parts_.begin() + 1, parts_.end(), suffix) != parts_.end();
    }
    /// Type suffix `k`, or None.
    Type type(std::size_t k = 0) const { return k < types_.size() ? types_[k] : Type::None; }
    std::size_t types() const { return types_.size(); }

    Round round() const {
        struct Name {
            std::string_view text;
            Round round;
        };
        constexpr Name kNames[] = {{"rn", Round::Nearest},     {"rz", Round::Zero},
                                   {"rm", Round::Down},        {"rp", Round::Up},
                                   {"rni", Round::NearestInt}, {"rzi", Round::ZeroInt},
                                   {"rmi", Round::DownInt},    {"rpi", Round::UpInt}};
        for (const Name& name : kNames) {
            if (has(name.text)) return name.round;
        }
        return Round::None;
    }

    /// A key with the modifiers that arithmetic shares.
    OpKey key(Op op, Type type) const {
        OpKey key;
        key.op = op;
        key.type = type;
        key.round = round();
        key.ftz = has("ftz");
        key.saturate = has("sat");
        key.nan = has("NaN");
        key.relu = has("relu");
        return key;
    }

    /// Whether every suffix is a type or one of `known`.
    template <std::size_t N>
    bool only(const std::string_view (&known)[N]) const {
        for (std::size_t k = 1; k < parts_.size(); ++k) {
            if (type_of(parts_[k]) || parts_[k].find("::") != std::string_view::npos) continue;
            if (std::find(std::begin(known), std::end(known), parts_[k]) == std::end(known))
                return false;
        }
        return true;
    }

  private:
    std::vector<std::string_view> parts_;
    std::vector<Type> types_;
};

}  // namespace simgpu::exec
