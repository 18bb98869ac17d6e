// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/device/work_ptx.hpp"

#include <array>

#include <fmt/format.h>

namespace libswap::bench {

namespace {

constexpr int kChains = 16;

std::string registers(unsigned width, const char* prefix) {
    if (width == 1) return fmt::format("%{}0", prefix);
    std::string list = "{";
    for (unsigned k = 0; k < width; ++k)
        list += fmt::format("{}%{}{}", k == 0 ? "" : ", ", prefix, k);
    return list + "}";
}

std::string vector_type(unsigned width) {
    return width == 1 ? "f32" : fmt::format("v{}.f32", width);
}

std::string stream_body(Stream4 kind, unsigned width) {
    const std::string a = registers(width, "fa");
    const std::string b = registers(width, "fb");
    const std::string type = vector_type(width);
    std::string body;
    if (kind != Stream4::Write) body += fmt::format("    ld.global.{} {}, [%rda];\n", type, a);
    if (kind == Stream4::Triad) {
        body += fmt::format("    ld.global.{} {}, [%rdb];\n", type, b);
        for (unsigned k = 0; k < width; ++k)
            body += fmt::format("    fma.rn.f32 %fa{0}, %fb{0}, %fs, %fa{0};\n", k);
        body += fmt::format("    st.global.{} [%rdc], {};\n", type, a);
    }
    if (kind == Stream4::Copy) body += fmt::format("    st.global.{} [%rdb], {};\n", type, a);
    if (kind == Stream4::Write) body += fmt::format("    st.global.{} [%rda], {};\n", type, a);
    if (kind == Stream4::Read) {
        for (unsigned k = 0; k < width; ++k)
            body += fmt::format("    add.f32 %fsum, %fsum, %fa{};\n", k);
    }
    return body;
}

std::string chains(const std::string& format_of_one) {
    std::string text;
    for (int k = 0; k < kChains; ++k) text += fmt::format(fmt::runtime(format_of_one), k);
    return text;
}

}  // namespace

const char* const kEmptyPtx = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry bench_empty()
{
    ret;
}
)";

const char* const kSpinPtx = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry bench_spin(.param .u64 prounds, .param .u64 pout)
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [prounds];
    ld.param.u64 %rd2, [pout];
    mov.u32 %r1, 1;
NEXT:
    setp.eq.u64 %p1, %rd1, 0;
    @%p1 bra DONE;
    mad.lo.u32 %r1, %r1, 1664525, 1013904223;
    sub.u64 %rd1, %rd1, 1;
    bra NEXT;
DONE:
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra END;
    st.global.u32 [%rd2], %r1;
END:
    ret;
}
)";

const char* stream_name(Stream4 kind) {
    constexpr std::array<const char*, 4> kNames{"read", "write", "copy", "triad"};
    return kNames[static_cast<std::size_t>(kind)];
}

std::string stream_ptx(Stream4 kind, unsigned width) {
    constexpr const char* kText = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry bench_stream(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pn,
                             .param .f32 pzero)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .f32 %fa<4>, %fb<4>, %fs, %fsum;
    .reg .b64 %rd<8>, %rda, %rdb, %rdc, %rdn, %rdi, %rdstep;
    ld.param.u64 %rda, [pa];
    ld.param.u64 %rdb, [pb];
    ld.param.u64 %rdc, [pc];
    ld.param.u64 %rdn, [pn];
    ld.param.f32 %fs, [pzero];
    cvta.to.global.u64 %rda, %rda;
    cvta.to.global.u64 %rdb, %rdb;
    cvta.to.global.u64 %rdc, %rdc;
    mov.f32 %fsum, %fs;
    mov.f32 %fa0, %fs;
    mov.f32 %fa1, %fs;
    mov.f32 %fa2, %fs;
    mov.f32 %fa3, %fs;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    cvt.u64.u32 %rdi, %r4;
    mov.u32 %r5, %nctaid.x;
    mul.lo.u32 %r5, %r5, %r2;
    cvt.u64.u32 %rdstep, %r5;
    mul.lo.u64 %rd1, %rdi, {0};
    add.u64 %rda, %rda, %rd1;
    add.u64 %rdb, %rdb, %rd1;
    add.u64 %rdc, %rdc, %rd1;
    mul.lo.u64 %rd2, %rdstep, {0};
NEXT:
    setp.ge.u64 %p1, %rdi, %rdn;
    @%p1 bra DONE;
{1}    add.u64 %rda, %rda, %rd2;
    add.u64 %rdb, %rdb, %rd2;
    add.u64 %rdc, %rdc, %rd2;
    add.u64 %rdi, %rdi, %rdstep;
    bra NEXT;
DONE:
    setp.neu.f32 %p2, %fs, 0f00000000;
    @!%p2 bra END;
    st.global.f32 [%rdc], %fsum;
END:
    ret;
}}
)";
    return fmt::format(kText, 4 * width, stream_body(kind, width));
}

const char* arithmetic_name(Arithmetic kind) {
    constexpr std::array<const char*, 6> kNames{"fp32",  "fp64",         "fp16 (two at a time)",
                                                "int32", "tf32, matrix", "fp16, matrix"};
    return kNames[static_cast<std::size_t>(kind)];
}

double arithmetic_operations(Arithmetic kind) {
    switch (kind) {
        case Arithmetic::Fp16:
            return 4.0 * kChains;
        case Arithmetic::Tf32Matrix:  // 16 x 8 x 8 by a warp
            return 2.0 * 16 * 8 * 8 / 32 * kChains;
        case Arithmetic::Fp16Matrix:  // 16 x 8 x 16 by a warp
            return 2.0 * 16 * 8 * 16 / 32 * kChains;
        default:
            return 2.0 * kChains;
    }
}

std::string arithmetic_ptx(Arithmetic kind) {
    constexpr const char* kText = R"(
.version 7.0
.target {0}
.address_size 64
.visible .entry bench_arithmetic(.param .u32 prounds, .param .u64 pout)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<8>, %a<4>, %b<2>, %x<16>;
    .reg .f32 %f<16>, %fm, %g<16>, %h<16>, %i<16>;
    .reg .f64 %d<16>, %dm;
    .reg .b64 %rd<4>;
    ld.param.u32 %r1, [prounds];
    ld.param.u64 %rd1, [pout];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r2, 0;
    mov.u32 %r3, %tid.x;
    mov.f32 %fm, 0f3f800000;
    mov.f64 %dm, 0d3ff0000000000000;
    mov.u32 %a0, 0;
    mov.u32 %a1, 0;
    mov.u32 %a2, 0;
    mov.u32 %a3, 0;
    mov.u32 %b0, 0;
    mov.u32 %b1, 0;
{1}NEXT:
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra DONE;
{2}    add.u32 %r2, %r2, 1;
    bra NEXT;
DONE:
{3}    @!%p2 bra END;
    st.global.u32 [%rd2], %r3;
END:
    ret;
}}
)";
    std::string target = "sm_52";
    std::string begin;
    std::string round;
    std::string end;
    switch (kind) {
        case Arithmetic::Fp32:
            begin = chains("    mov.f32 %f{0}, 0f00000000;\n");
            round = chains("    fma.rn.f32 %f{0}, %f{0}, %fm, %fm;\n");
            break;
        case Arithmetic::Fp64:
            begin = chains("    mov.f64 %d{0}, 0d0000000000000000;\n");
            round = chains("    fma.rn.f64 %d{0}, %d{0}, %dm, %dm;\n");
            break;
        case Arithmetic::Fp16:
            target = "sm_60";
            begin = chains("    mov.u32 %x{0}, 0;\n");
            round = chains("    fma.rn.f16x2 %x{0}, %x{0}, %a0, %a0;\n");
            break;
        case Arithmetic::Int32:
            begin = chains("    mov.u32 %x{0}, %r3;\n");
            round = chains("    mad.lo.u32 %x{0}, %x{0}, %r3, %r3;\n");
            break;
        case Arithmetic::Tf32Matrix:
        case Arithmetic::Fp16Matrix: {
            target = "sm_80";
            begin = chains(
                "    mov.f32 %f{0}, 0f00000000;\n    mov.f32 %g{0}, 0f00000000;\n"
                "    mov.f32 %h{0}, 0f00000000;\n    mov.f32 %i{0}, 0f00000000;\n");
            const char* shape = kind == Arithmetic::Tf32Matrix ? "m16n8k8.row.col.f32.tf32.tf32.f32"
                                                               : "m16n8k16.row.col.f32.f16.f16.f32";
            round = chains(fmt::format(
                "    mma.sync.aligned.{} {{{{%f{{0}}, %g{{0}}, %h{{0}}, %i{{0}}}}}}, "
                "{{{{%a0, %a1, %a2, %a3}}}}, {{{{%b0, %b1}}}}, {{{{%f{{0}}, %g{{0}}, %h{{0}}, "
                "%i{{0}}}}}};\n",
                shape));
            break;
        }
    }
    // A use of every chain, so that none can be left out.
    switch (kind) {
        case Arithmetic::Fp64:
            for (int k = 1; k < kChains; ++k)
                end += fmt::format("    add.f64 %d0, %d0, %d{};\n", k);
            end += "    setp.lt.f64 %p2, %d0, 0d0000000000000000;\n";
            break;
        case Arithmetic::Fp16:
        case Arithmetic::Int32:
            for (int k = 1; k < kChains; ++k)
                end += fmt::format("    xor.b32 %x0, %x0, %x{};\n", k);
            end += "    setp.eq.u32 %p2, %x0, 305419896;\n";
            break;
        default:
            for (int k = 1; k < kChains; ++k)
                end += fmt::format("    add.f32 %f0, %f0, %f{};\n", k);
            end += "    setp.lt.f32 %p2, %f0, 0f00000000;\n";
            break;
    }
    return fmt::format(kText, target, begin, round, end);
}

}  // namespace libswap::bench
