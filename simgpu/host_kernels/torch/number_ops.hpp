// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace simgpu::torch {

/// Operations on two numbers, doubles or whole ones, which wrap around.
struct Multiply {
    double operator()(double a, double b) const { return a * b; }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) *
                                         static_cast<std::uint64_t>(b));
    }
};
struct Divide {
    double operator()(double a, double b) const { return a / b; }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const { return b == 0 ? 0 : a / b; }
};
struct DivideDown {
    double operator()(double a, double b) const {
        if (b == 0) return a / b;
        const double rest = std::fmod(a, b);
        double quotient = (a - rest) / b;
        if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
        return std::round(quotient);
    }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const {
        if (b == 0) return 0;
        return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    }
};
struct DivideToZero {
    double operator()(double a, double b) const { return std::trunc(a / b); }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const { return b == 0 ? 0 : a / b; }
};
/// Of the divisor's sign.
struct Remainder {
    double operator()(double a, double b) const {
        const double rest = std::fmod(a, b);
        return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
    }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const {
        if (b == 0) return 0;
        const std::int64_t rest = a % b;
        return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
    }
};
/// Of the dividend's sign.
struct FloatRemainder {
    double operator()(double a, double b) const { return std::fmod(a, b); }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const { return b == 0 ? 0 : a % b; }
};
struct Greater {
    double operator()(double a, double b) const {
        return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b);
    }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const { return std::max(a, b); }
};
struct GreaterNumber {
    double operator()(double a, double b) const { return std::fmax(a, b); }
};
struct LessNumber {
    double operator()(double a, double b) const { return std::fmin(a, b); }
};
struct Less {
    double operator()(double a, double b) const {
        return std::isnan(a) ? a : std::isnan(b) ? b : std::fmin(a, b);
    }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const { return std::min(a, b); }
};
/// Operations on bits: doubles hold whole numbers here.
template <typename Whole>
struct OnBits {
    double operator()(double a, double b) const {
        return static_cast<double>(
            Whole{}(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
    }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const { return Whole{}(a, b); }
};
struct ShiftLeft {
    std::int64_t operator()(std::int64_t a, std::int64_t b) const {
        return b < 0 || b > 63 ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b);
    }
};
struct ShiftRight {
    std::int64_t operator()(std::int64_t a, std::int64_t b) const {
        return a >> std::clamp<std::int64_t>(b, 0, 63);
    }
};
template <typename F>
struct Floating {
    double operator()(double a, double b) const { return F{}(a, b); }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const {
        return static_cast<std::int64_t>(F{}(static_cast<double>(a), static_cast<double>(b)));
    }
};
struct ArcTangent {
    double operator()(double a, double b) const { return std::atan2(a, b); }
};
struct TimesLog {
    double operator()(double a, double b) const {
        if (std::isnan(b)) return b;
        return a == 0 ? 0 : a * std::log(b);
    }
};
struct Both {
    double operator()(double a, double b) const { return a != 0 && b != 0 ? 1 : 0; }
};
struct Either {
    double operator()(double a, double b) const { return a != 0 || b != 0 ? 1 : 0; }
};
struct OneOf {
    double operator()(double a, double b) const { return (a != 0) != (b != 0) ? 1 : 0; }
};

/// How an element that is there and one that comes to it become one, when scattered.
enum class Combine : std::uint8_t { Set, Add, Multiply, Maximum, Minimum };

inline double combine(Combine how, double a, double b) {
    switch (how) {
        case Combine::Set:
            return b;
        case Combine::Add:
            return a + b;
        case Combine::Multiply:
            return a * b;
        case Combine::Maximum:
            return std::isnan(a) || a > b ? a : b;
        case Combine::Minimum:
            break;
    }
    return std::isnan(a) || a < b ? a : b;
}

}  // namespace simgpu::torch
