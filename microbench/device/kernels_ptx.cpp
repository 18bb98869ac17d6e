// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/device/kernels_ptx.hpp"

#include <fmt/format.h>

namespace libswap::bench {

namespace {

constexpr const char* kHead = R"(
.version 7.0
.target sm_52
.address_size 64
)";

constexpr unsigned kSlice = 16;  ///< of a product's inner dimension

/// One step of a product in registers: f0..15 += a0..3 outer b0..3.
std::string outer_product(unsigned k) {
    std::string text = fmt::format(
        "    ld.shared.v4.f32 {{%a0, %a1, %a2, %a3}}, [%rsa+{0}];\n"
        "    ld.shared.v4.f32 {{%b0, %b1, %b2, %b3}}, [%rsb+{0}];\n",
        k * kProductTile * 4);
    for (unsigned i = 0; i < 4; ++i)
        for (unsigned j = 0; j < 4; ++j)
            text += fmt::format("    fma.rn.f32 %f{0}, %a{1}, %b{2}, %f{0};\n", 4 * i + j, i, j);
    return text;
}

/// A thread's place in arrays of four words: %rdi, and %rdstep to the next.
constexpr const char* kPlaceInFours = R"(
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    cvt.u64.u32 %rdi, %r4;
    mov.u32 %r5, %nctaid.x;
    mul.lo.u32 %r5, %r5, %r2;
    cvt.u64.u32 %rdstep, %r5;
    shl.b64 %rdbytes, %rdstep, 4;
    shl.b64 %rdoffset, %rdi, 4;
)";

}  // namespace

std::string product_ptx() {
    constexpr const char* kText = R"({0}
.visible .entry bench_product(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<16>, %rn, %rk, %rsa, %rsb, %rta, %rtb;
    .reg .f32 %f<16>, %a<4>, %b<4>;
    .reg .b64 %rd<8>, %rda, %rdb, %rdc, %rdstep;
    .shared .align 16 .b8 tile_a[{1}];
    .shared .align 16 .b8 tile_b[{1}];
    ld.param.u64 %rda, [pa];
    ld.param.u64 %rdb, [pb];
    ld.param.u64 %rdc, [pc];
    ld.param.u32 %rn, [pn];
    cvta.to.global.u64 %rda, %rda;
    cvta.to.global.u64 %rdb, %rdb;
    cvta.to.global.u64 %rdc, %rdc;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ctaid.y;
    shl.b32 %r2, %r2, 6;
    shl.b32 %r3, %r3, 6;
    // A row of a's tile and four of its columns; a column of fours of b's.
    shr.u32 %r4, %r1, 2;
    and.b32 %r5, %r1, 3;
    add.u32 %r6, %r3, %r4;
    mul.lo.u32 %r6, %r6, %rn;
    shl.b32 %r7, %r5, 2;
    add.u32 %r6, %r6, %r7;
    mul.wide.u32 %rd1, %r6, 4;
    add.u64 %rda, %rda, %rd1;
    mov.u32 %rta, tile_a;
    shl.b32 %r7, %r5, 10;
    add.u32 %rta, %rta, %r7;
    shl.b32 %r7, %r4, 2;
    add.u32 %rta, %rta, %r7;
    shr.u32 %r8, %r1, 4;
    and.b32 %r9, %r1, 15;
    mul.lo.u32 %r10, %r8, %rn;
    shl.b32 %r11, %r9, 2;
    add.u32 %r10, %r10, %r11;
    add.u32 %r10, %r10, %r2;
    mul.wide.u32 %rd2, %r10, 4;
    add.u64 %rdb, %rdb, %rd2;
    mov.u32 %rtb, tile_b;
    shl.b32 %r7, %r1, 4;
    add.u32 %rtb, %rtb, %r7;
    // Where this thread's part of the result begins in both tiles.
    mov.u32 %rsa, tile_a;
    shl.b32 %r7, %r8, 4;
    add.u32 %rsa, %rsa, %r7;
    mov.u32 %rsb, tile_b;
    shl.b32 %r7, %r9, 4;
    add.u32 %rsb, %rsb, %r7;
    mul.wide.u32 %rdstep, %rn, {2};
{3}    mov.u32 %rk, 0;
NEXT:
    ld.global.v4.f32 {{%a0, %a1, %a2, %a3}}, [%rda];
    ld.global.v4.f32 {{%b0, %b1, %b2, %b3}}, [%rdb];
    st.shared.f32 [%rta], %a0;
    st.shared.f32 [%rta+256], %a1;
    st.shared.f32 [%rta+512], %a2;
    st.shared.f32 [%rta+768], %a3;
    st.shared.v4.f32 [%rtb], {{%b0, %b1, %b2, %b3}};
    bar.sync 0;
{4}    bar.sync 0;
    add.u64 %rda, %rda, {5};
    add.u64 %rdb, %rdb, %rdstep;
    add.u32 %rk, %rk, {6};
    setp.lt.u32 %p1, %rk, %rn;
    @%p1 bra NEXT;
    shl.b32 %r12, %r8, 2;
    add.u32 %r12, %r12, %r3;
    mul.lo.u32 %r12, %r12, %rn;
    add.u32 %r12, %r12, %r11;
    add.u32 %r12, %r12, %r2;
    mul.wide.u32 %rd3, %r12, 4;
    add.u64 %rdc, %rdc, %rd3;
    mul.wide.u32 %rd4, %rn, 4;
{7}    ret;
}}
)";
    std::string begin;
    for (unsigned k = 0; k < 16; ++k) begin += fmt::format("    mov.f32 %f{}, 0f00000000;\n", k);
    std::string inner;
    for (unsigned k = 0; k < kSlice; ++k) inner += outer_product(k);
    std::string end;
    for (unsigned k = 0; k < 16; k += 4)
        end += fmt::format(
            "    st.global.v4.f32 [%rdc], {{%f{}, %f{}, %f{}, %f{}}};\n"
            "    add.u64 %rdc, %rdc, %rd4;\n",
            k, k + 1, k + 2, k + 3);
    return fmt::format(kText, kHead, kSlice * kProductTile * 4, 4 * kSlice, begin, inner,
                       4 * kSlice, kSlice, end);
}

std::string convolution_ptx(unsigned channels) {
    constexpr const char* kText = R"({0}
.visible .entry bench_convolution(.param .u64 px, .param .u64 pw, .param .u64 py)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<16>, %rc, %rw, %rs;
    .reg .f32 %f<8>, %v, %b<8>;
    .reg .b64 %rd<8>, %rdx, %rdw, %rdy;
    .shared .align 16 .b8 weights[{1}];
    ld.param.u64 %rdx, [px];
    ld.param.u64 %rdw, [pw];
    ld.param.u64 %rdy, [py];
    cvta.to.global.u64 %rdx, %rdx;
    cvta.to.global.u64 %rdw, %rdw;
    cvta.to.global.u64 %rdy, %rdy;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ctaid.y;
    // The weights of these channels, together.
    mul.lo.u32 %r4, %r3, {1};
    cvt.u64.u32 %rd1, %r4;
    add.u64 %rdw, %rdw, %rd1;
    shl.b32 %r5, %r1, 2;
    mov.u32 %rs, weights;
WEIGHT:
    cvt.u64.u32 %rd2, %r5;
    add.u64 %rd3, %rdw, %rd2;
    ld.global.f32 %v, [%rd3];
    add.u32 %rw, %rs, %r5;
    st.shared.f32 [%rw], %v;
    add.u32 %r5, %r5, {2};
    setp.lt.u32 %p1, %r5, {1};
    @%p1 bra WEIGHT;
    bar.sync 0;
    shl.b32 %r6, %r2, 8;
    add.u32 %r6, %r6, %r1;
    shr.u32 %r7, %r6, 6;
    and.b32 %r8, %r6, 63;
    mad.lo.u32 %r9, %r7, {3}, %r8;
    mul.wide.u32 %rd4, %r9, 4;
    add.u64 %rdx, %rdx, %rd4;
{4}    mov.u32 %rc, 0;
CHANNEL:
{5}    add.u64 %rdx, %rdx, {6};
    add.u32 %rs, %rs, {7};
    add.u32 %rc, %rc, 1;
    setp.lt.u32 %p2, %rc, {8};
    @%p2 bra CHANNEL;
    mul.lo.u32 %r10, %r3, {9};
    add.u32 %r10, %r10, %r6;
    mul.wide.u32 %rd5, %r10, 4;
    add.u64 %rdy, %rdy, %rd5;
{10}    ret;
}}
)";
    constexpr unsigned kTaps = 9;
    constexpr unsigned kTapBytes = kConvolutionDepth * 4;
    std::string begin;
    std::string taps;
    std::string end;
    for (unsigned d = 0; d < kConvolutionDepth; ++d) {
        begin += fmt::format("    mov.f32 %f{}, 0f00000000;\n", d);
        end += fmt::format("    st.global.f32 [%rdy+{}], %f{};\n",
                           d * kConvolutionSide * kConvolutionSide * 4, d);
    }
    for (unsigned tap = 0; tap < kTaps; ++tap) {
        taps += fmt::format(
            "    ld.global.f32 %v, [%rdx+{0}];\n"
            "    ld.shared.v4.f32 {{%b0, %b1, %b2, %b3}}, [%rs+{1}];\n"
            "    ld.shared.v4.f32 {{%b4, %b5, %b6, %b7}}, [%rs+{2}];\n",
            4 * (tap / 3 * kConvolutionPadded + tap % 3), tap * kTapBytes, tap * kTapBytes + 16);
        for (unsigned d = 0; d < kConvolutionDepth; ++d)
            taps += fmt::format("    fma.rn.f32 %f{0}, %v, %b{0}, %f{0};\n", d);
    }
    return fmt::format(kText, kHead, channels * kTaps * kTapBytes, 4 * kKernelThreads,
                       kConvolutionPadded, begin, taps, 4 * kConvolutionPadded * kConvolutionPadded,
                       kTaps * kTapBytes, channels,
                       kConvolutionDepth * kConvolutionSide * kConvolutionSide, end);
}

std::string elementwise_ptx(unsigned steps) {
    constexpr const char* kText = R"({0}
.visible .entry bench_elementwise(.param .u64 px, .param .u64 py, .param .u64 pn)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %x<4>, %f<4>, %s, %t;
    .reg .b64 %rdx, %rdy, %rdn, %rdi, %rdstep, %rdbytes, %rdoffset;
    ld.param.u64 %rdx, [px];
    ld.param.u64 %rdy, [py];
    ld.param.u64 %rdn, [pn];
    cvta.to.global.u64 %rdx, %rdx;
    cvta.to.global.u64 %rdy, %rdy;
{1}    add.u64 %rdx, %rdx, %rdoffset;
    add.u64 %rdy, %rdy, %rdoffset;
    mov.f32 %s, 0f3f000000;
    mov.f32 %t, 0f3e800000;
NEXT:
    setp.ge.u64 %p1, %rdi, %rdn;
    @%p1 bra DONE;
    ld.global.v4.f32 {{%x0, %x1, %x2, %x3}}, [%rdx];
{2}    st.global.v4.f32 [%rdy], {{%f0, %f1, %f2, %f3}};
    add.u64 %rdx, %rdx, %rdbytes;
    add.u64 %rdy, %rdy, %rdbytes;
    add.u64 %rdi, %rdi, %rdstep;
    bra NEXT;
DONE:
    ret;
}}
)";
    std::string work;
    for (unsigned k = 0; k < 4; ++k)
        work += fmt::format("    fma.rn.f32 %f{0}, %x{0}, %t, %s;\n", k);
    for (unsigned step = 0; step < steps; ++step)
        for (unsigned k = 0; k < 4; ++k)
            work += fmt::format("    fma.rn.f32 %f{0}, %f{0}, %x{0}, %t;\n", k);
    for (unsigned k = 0; k < 4; ++k) work += fmt::format("    max.f32 %f{0}, %f{0}, %x{0};\n", k);
    return fmt::format(kText, kHead, kPlaceInFours, work);
}

std::string reduction_ptx() {
    constexpr const char* kText = R"({0}
.visible .entry bench_reduction(.param .u64 px, .param .u64 pout, .param .u64 pn)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .f32 %x<4>, %sum, %other;
    .reg .b64 %rdx, %rdout, %rdn, %rdi, %rdstep, %rdbytes, %rdoffset;
    ld.param.u64 %rdx, [px];
    ld.param.u64 %rdout, [pout];
    ld.param.u64 %rdn, [pn];
    cvta.to.global.u64 %rdx, %rdx;
    cvta.to.global.u64 %rdout, %rdout;
{1}    add.u64 %rdx, %rdx, %rdoffset;
    mov.f32 %sum, 0f00000000;
NEXT:
    setp.ge.u64 %p1, %rdi, %rdn;
    @%p1 bra DONE;
    ld.global.v4.f32 {{%x0, %x1, %x2, %x3}}, [%rdx];
    add.f32 %x0, %x0, %x1;
    add.f32 %x2, %x2, %x3;
    add.f32 %x0, %x0, %x2;
    add.f32 %sum, %sum, %x0;
    add.u64 %rdx, %rdx, %rdbytes;
    add.u64 %rdi, %rdi, %rdstep;
    bra NEXT;
DONE:
{2}    and.b32 %r6, %r3, 31;
    setp.ne.u32 %p2, %r6, 0;
    @%p2 bra END;
    red.global.add.f32 [%rdout], %sum;
END:
    ret;
}}
)";
    std::string across;
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
        across += fmt::format(
            "    shfl.sync.bfly.b32 %other, %sum, {}, 31, -1;\n"
            "    add.f32 %sum, %sum, %other;\n",
            lanes);
    return fmt::format(kText, kHead, kPlaceInFours, across);
}

}  // namespace libswap::bench
