// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <bit>
#include <limits>

#include "tests/simgpu/exec/kernel_fixture.hpp"

namespace simgpu::exec {

/// Values that arithmetic trips over.
template <class T>
std::vector<T> edge_values() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) {
        return {T{0},
                -T{0},
                T{1},
                -T{1},
                Limits::min(),
                -Limits::min(),
                Limits::denorm_min(),
                -Limits::denorm_min(),
                Limits::max(),
                Limits::lowest(),
                Limits::infinity(),
                -Limits::infinity(),
                Limits::quiet_NaN(),
                T{0.5},
                T{-1.5},
                T{2.5},
                T{3.0e9},
                T{-3.0e9},
                T{1.0e20},
                T{-7.25}};
    } else {
        return {T{0},
                T{1},
                static_cast<T>(-1),
                T{2},
                static_cast<T>(-2),
                T{7},
                T{31},
                T{32},
                T{33},
                T{63},
                T{64},
                T{100},
                Limits::min(),
                Limits::max(),
                static_cast<T>(Limits::max() - 1),
                static_cast<T>(Limits::max() / 2 + 1)};
    }
}

/// Runs one instruction on many operands: one thread each, operands and result in memory.
class InstructionTest : public testing::Test {
  protected:
    /// Edge values against each other, then random ones.
    template <class T>
    std::vector<T> operand_values(int which) {
        const auto edges = edge_values<T>();
        std::vector<T> values;
        for (const T a : edges) {
            for (const T b : edges)
                values.push_back(which == 0   ? a
                                 : which == 1 ? b
                                              : edges[(values.size() * 7) % edges.size()]);
        }
        while (values.size() < 480) values.push_back(random_value<T>());
        return values;
    }

    template <class T>
    T random_value() {
        if constexpr (std::is_floating_point_v<T>) {
            return static_cast<T>(std::uniform_real_distribution<double>(-1000, 1000)(random_));
        } else {
            return static_cast<T>(random_());
        }
    }

    static const char* letter(std::size_t bytes) {
        return bytes == 8 ? "b64" : bytes == 4 ? "b32" : bytes == 2 ? "b16" : "b8";
    }
    static const char* register_of(std::size_t bytes) {
        return bytes == 8 ? "%d" : bytes == 4 ? "%r" : "%h";
    }

    /// `body` uses registers x0, x1, x2 (operands) and y (result) of the right widths, and
    /// predicates p, q.
    template <class R, class... A>
    std::vector<R> execute(const std::string& body, const std::vector<A>&... operands) {
        const std::size_t sizes[] = {sizeof(A)...};
        std::string text =
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, "
            ".param .u64 in0, .param .u64 in1, .param .u64 in2, .param .u32 n)\n{\n";
        text +=
            ".reg .pred p, q, skip; .reg .b32 t, c, w, lane, total; .reg .b64 base, offset; .reg "
            "." +
            std::string(register_type(sizeof(R))) + " y;\n";
        text +=
            "mov.u32 t, %tid.x; mov.u32 c, %ctaid.x; mov.u32 w, %ntid.x; mad.lo.u32 lane, c, w, t; "
            "ld.param.u32 total, [n];\n";
        text += "setp.ge.u32 skip, lane, total; @skip exit;\n";
        for (std::size_t k = 0; k < sizeof...(A); ++k) {
            const std::string name = "x" + std::to_string(k);
            text += ".reg ." + std::string(register_type(sizes[k])) + " " + name +
                    "; ld.param.u64 base, [in" + std::to_string(k) +
                    "]; mul.wide.u32 offset, lane, " + std::to_string(sizes[k]) +
                    "; add.u64 base, base, offset; ld.global." + letter(sizes[k]) + " " + name +
                    ", [base];\n";
        }
        text += "mov." + std::string(register_type(sizeof(R))) + " y, 0;\n" + body + "\n";
        text += "ld.param.u64 base, [out]; mul.wide.u32 offset, lane, " +
                std::to_string(sizeof(R)) + "; add.u64 base, base, offset; st.global." +
                letter(sizeof(R)) + " [base], y;\nret;\n}\n";
        return run_text<R>(text, operands...);
    }

    static const char* register_type(std::size_t bytes) {
        return bytes == 8 ? "b64" : bytes == 4 ? "b32" : "b16";
    }

    template <class R, class... A>
    std::vector<R> run_text(const std::string& text, const std::vector<A>&... operands) {
        auto module = ptx::parse(text);
        if (!module) {
            ADD_FAILURE() << module.error().line << ": " << module.error().reason << "\n" << text;
            return {};
        }
        const std::size_t counts[] = {operands.size()...};
        const std::size_t count = counts[0];
        FlatMemory memory;
        std::vector<std::uint64_t> inputs{memory.upload(operands)...};
        inputs.resize(3);
        const std::uint64_t out = memory.allocate(count * sizeof(R));
        const auto block = static_cast<std::uint32_t>((count + 95) / 96);
        const RunResult result = run(
            *module, module->kernels.at(0), {{block, 1, 1}, {96, 1, 1}, 0},
            params(out, inputs[0], inputs[1], inputs[2], static_cast<std::uint32_t>(count)).bytes(),
            memory, {});
        EXPECT_EQ(result.status, RunStatus::Ok) << result.detail << "\n" << text;
        if (!result.ok()) return {};
        return memory.download<R>(out, count);
    }

    /// All NaNs are one.
    template <class T>
    static bool same(T a, T b) {
        if constexpr (std::is_floating_point_v<T>) {
            if (a != a || b != b) return a != a && b != b;
            return std::signbit(a) == std::signbit(b) && a == b;
        } else {
            return a == b;
        }
    }

    template <class T, class F>
    void check1(const std::string& opcode, F f) {
        const auto a = operand_values<T>(0);
        using R = decltype(f(T{}));
        const auto got = execute<R>(opcode + " y, x0;", a);
        for (std::size_t k = 0; k < got.size(); ++k)
            ASSERT_TRUE(same<R>(got[k], f(a[k])))
                << opcode << " " << +a[k] << " gives " << +got[k] << ", not " << +f(a[k]);
    }

    template <class T, class U = T, class F>
    void check2(const std::string& opcode, F f) {
        const auto a = operand_values<T>(0);
        auto b = operand_values<U>(1);
        b.resize(a.size(), U{3});
        using R = decltype(f(T{}, U{}));
        const auto got = execute<R>(opcode + " y, x0, x1;", a, b);
        for (std::size_t k = 0; k < got.size(); ++k) {
            ASSERT_TRUE(same<R>(got[k], f(a[k], b[k])))
                << opcode << " " << +a[k] << ", " << +b[k] << " gives " << +got[k] << ", not "
                << +f(a[k], b[k]);
        }
    }

    template <class T, class U = T, class V = T, class F>
    void check3(const std::string& opcode, F f) {
        const auto a = operand_values<T>(0);
        auto b = operand_values<U>(1);
        auto c = operand_values<V>(2);
        b.resize(a.size(), U{3});
        c.resize(a.size(), V{5});
        using R = decltype(f(T{}, U{}, V{}));
        const auto got = execute<R>(opcode + " y, x0, x1, x2;", a, b, c);
        for (std::size_t k = 0; k < got.size(); ++k) {
            ASSERT_TRUE(same<R>(got[k], f(a[k], b[k], c[k])))
                << opcode << " " << +a[k] << ", " << +b[k] << ", " << +c[k] << " gives " << +got[k]
                << ", not " << +f(a[k], b[k], c[k]);
        }
    }

    std::mt19937_64 random_{11};
};

}  // namespace simgpu::exec
