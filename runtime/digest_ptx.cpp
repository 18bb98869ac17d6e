// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// simgpu/host_kernels/digest.cpp computes the same on a CPU; a test holds them together.
//
// Sums go into accumulators in device memory (`out`: three sums and a count of blocks). With a
// `result`, the block that is done last moves them there and clears them: one launch, no clearing
// before and no copy after, which would have to queue behind the program's copies.

#include "runtime/digest.hpp"

namespace libswap {

const char kDigestPtx[] = R"(
.version 7.0
.target sm_52
.address_size 64

.visible .entry libswap_digest(
    .param .u64 param_base,
    .param .u64 param_words,
    .param .u64 param_first,
    .param .u64 param_out,
    .param .u64 param_low,
    .param .u64 param_span,
    .param .u64 param_result)
{
    .shared .u32 is_last;
    .reg .pred %p<10>;
    .reg .b32 %r<24>;
    .reg .b64 %rd<40>;

    ld.param.u64 %rd1, [param_base];
    ld.param.u64 %rd2, [param_words];
    ld.param.u64 %rd3, [param_first];
    ld.param.u64 %rd4, [param_out];
    ld.param.u64 %rd5, [param_low];
    ld.param.u64 %rd6, [param_span];
    cvta.to.global.u64 %rd7, %rd1;
    cvta.to.global.u64 %rd8, %rd4;

    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %nctaid.x;
    mad.lo.s32 %r5, %r1, %r2, %r3;
    mul.lo.s32 %r6, %r4, %r2;
    cvt.u64.u32 %rd9, %r5;
    cvt.u64.u32 %rd10, %r6;
    mov.u64 %rd11, 0;
    mov.u64 %rd12, 0;
    mov.u64 %rd13, 0;

LOOP:
    setp.ge.u64 %p1, %rd9, %rd2;
    @%p1 bra DONE;
    shl.b64 %rd14, %rd9, 3;
    add.s64 %rd15, %rd7, %rd14;
    ld.global.u64 %rd16, [%rd15];
    sub.s64 %rd17, %rd16, %rd5;
    setp.lt.u64 %p2, %rd17, %rd6;
    selp.u64 %rd18, 1, 0, %p2;
    add.s64 %rd13, %rd13, %rd18;
    add.s64 %rd19, %rd9, %rd3;
    add.s64 %rd19, %rd19, 1;
    mul.lo.s64 %rd20, %rd19, -7046029254386353131;
    add.s64 %rd21, %rd16, %rd20;
    shr.u64 %rd22, %rd21, 32;
    xor.b64 %rd21, %rd21, %rd22;
    mul.lo.s64 %rd21, %rd21, -4658895280553007687;
    shr.u64 %rd22, %rd21, 29;
    xor.b64 %rd21, %rd21, %rd22;
    mul.lo.s64 %rd21, %rd21, -7723592293110705685;
    shr.u64 %rd22, %rd21, 32;
    xor.b64 %rd23, %rd21, %rd22;
    add.s64 %rd11, %rd11, %rd23;
    mul.lo.s64 %rd24, %rd21, -4417276706812531889;
    shr.u64 %rd25, %rd24, 31;
    xor.b64 %rd24, %rd24, %rd25;
    add.s64 %rd12, %rd12, %rd24;
    add.s64 %rd9, %rd9, %rd10;
    bra LOOP;

DONE:
    mov.u32 %r10, 16;
REDUCE:
    mov.b64 {%r11, %r12}, %rd11;
    shfl.sync.bfly.b32 %r13, %r11, %r10, 31, -1;
    shfl.sync.bfly.b32 %r14, %r12, %r10, 31, -1;
    mov.b64 %rd30, {%r13, %r14};
    add.s64 %rd11, %rd11, %rd30;
    mov.b64 {%r11, %r12}, %rd12;
    shfl.sync.bfly.b32 %r13, %r11, %r10, 31, -1;
    shfl.sync.bfly.b32 %r14, %r12, %r10, 31, -1;
    mov.b64 %rd30, {%r13, %r14};
    add.s64 %rd12, %rd12, %rd30;
    mov.b64 {%r11, %r12}, %rd13;
    shfl.sync.bfly.b32 %r13, %r11, %r10, 31, -1;
    shfl.sync.bfly.b32 %r14, %r12, %r10, 31, -1;
    mov.b64 %rd30, {%r13, %r14};
    add.s64 %rd13, %rd13, %rd30;
    shr.u32 %r10, %r10, 1;
    setp.ne.u32 %p3, %r10, 0;
    @%p3 bra REDUCE;

    and.b32 %r15, %r3, 31;
    setp.ne.u32 %p4, %r15, 0;
    @%p4 bra ADDED;
    red.global.add.u64 [%rd8], %rd11;
    red.global.add.u64 [%rd8+8], %rd12;
    red.global.add.u64 [%rd8+16], %rd13;
    membar.gl;
ADDED:
    ld.param.u64 %rd31, [param_result];
    setp.eq.s64 %p5, %rd31, 0;
    @%p5 bra END;
    bar.sync 0;
    setp.ne.u32 %p6, %r3, 0;
    @%p6 bra COUNTED;
    atom.global.add.u32 %r16, [%rd8+24], 1;
    add.s32 %r17, %r16, 1;
    setp.eq.u32 %p7, %r17, %r4;
    selp.u32 %r18, 1, 0, %p7;
    st.shared.u32 [is_last], %r18;
COUNTED:
    bar.sync 0;
    ld.shared.u32 %r19, [is_last];
    setp.eq.u32 %p8, %r19, 0;
    @%p8 bra END;
    @%p6 bra END;
    membar.gl;
    ld.volatile.global.u64 %rd32, [%rd8];
    ld.volatile.global.u64 %rd33, [%rd8+8];
    ld.volatile.global.u64 %rd34, [%rd8+16];
    st.global.u64 [%rd31], %rd32;
    st.global.u64 [%rd31+8], %rd33;
    st.global.u64 [%rd31+16], %rd34;
    mov.u64 %rd35, 0;
    mov.u32 %r20, 0;
    st.global.u64 [%rd8], %rd35;
    st.global.u64 [%rd8+8], %rd35;
    st.global.u64 [%rd8+16], %rd35;
    st.global.u32 [%rd8+24], %r20;
    membar.sys;
END:
    ret;
}
)";

}  // namespace libswap
