// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// One thread, one load after the other. What a load brings is masked with a zero that only the host
// knows to be one, and added to the next address: no load can begin before the last one has ended,
// and nothing needs to be written into the memory beforehand. The first clock is read before the
// load, the second after the loaded word has been stored to shared memory, as in fine-grained
// pointer chases (Mei and Chu, 2017). All that is told goes to shared memory first, so that no
// store disturbs the caches.
#include "microbench/device/probe_ptx.hpp"

#include <string_view>

namespace libswap::bench {

namespace {

constexpr std::string_view kHead = R"(
.version 7.0
.target sm_52
.address_size 64

.visible .entry bench_overhead(.param .u64 param_out)
{
    .shared .u32 last;
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [param_out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 0;
NEXT:
    mov.u32 %r2, %clock;
    st.shared.u32 [last], %r1;
    mov.u32 %r3, %clock;
    sub.u32 %r4, %r3, %r2;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd3, %rd2, %rd3;
    st.global.u32 [%rd3], %r4;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 64;
    @%p1 bra NEXT;
    ret;
}
)";

// out: flagged, then pairs of index and cycles.
constexpr std::string_view kKernels = R"(
.visible .entry bench_sweep_@X@(
    .param .u64 param_base,
    .param .u64 param_length,
    .param .u64 param_step,
    .param .u32 param_skip,
    .param .u32 param_count,
    .param .u32 param_threshold,
    .param .u32 param_companion,
    .param .u32 param_zero,
    .param .u64 param_out)
{
    .shared .align 8 .b8 told[32768];
    .shared .u32 last;
    .reg .pred %p<8>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<32>;
    ld.param.u64 %rd1, [param_base];
    ld.param.u64 %rd2, [param_length];
    ld.param.u64 %rd3, [param_step];
    ld.param.u32 %r1, [param_skip];
    ld.param.u32 %r2, [param_count];
    ld.param.u32 %r3, [param_threshold];
    ld.param.u32 %r4, [param_companion];
    ld.param.u32 %r5, [param_zero];
    ld.param.u64 %rd4, [param_out];
    cvta.to.global.u64 %rd5, %rd1;
    cvta.to.global.u64 %rd6, %rd4;
    cvt.u64.u32 %rd7, %r4;
    setp.ne.u32 %p1, %r4, 0;
    mov.u64 %rd8, 0;
    mov.u32 %r6, 0;
    mov.u32 %r7, 0;
    mov.u32 %r20, told;
    setp.ge.u32 %p2, %r6, %r1;
    @%p2 bra TELL;
SKIP:
    @!%p1 bra SKIPONE;
    add.u64 %rd9, %rd5, %rd8;
    xor.b64 %rd9, %rd9, %rd7;
    @LD@ %r8, [%rd9];
    and.b32 %r8, %r8, %r5;
    cvt.u64.u32 %rd10, %r8;
    add.u64 %rd8, %rd8, %rd10;
SKIPONE:
    add.u64 %rd9, %rd5, %rd8;
    @LD@ %r8, [%rd9];
    and.b32 %r8, %r8, %r5;
    cvt.u64.u32 %rd10, %r8;
    add.u64 %rd8, %rd8, %rd10;
    add.u64 %rd8, %rd8, %rd3;
    setp.ge.u64 %p3, %rd8, %rd2;
    @%p3 sub.u64 %rd8, %rd8, %rd2;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p2, %r6, %r1;
    @%p2 bra SKIP;
TELL:
    mov.u32 %r6, 0;
    setp.ge.u32 %p2, %r6, %r2;
    @%p2 bra DONE;
LOAD:
    @!%p1 bra LOADONE;
    add.u64 %rd9, %rd5, %rd8;
    xor.b64 %rd9, %rd9, %rd7;
    @LD@ %r8, [%rd9];
    and.b32 %r8, %r8, %r5;
    cvt.u64.u32 %rd10, %r8;
    add.u64 %rd8, %rd8, %rd10;
    st.shared.u32 [last], %r8;
LOADONE:
    add.u64 %rd9, %rd5, %rd8;
    mov.u32 %r9, %clock;
    @LD@ %r8, [%rd9];
    st.shared.u32 [last], %r8;
    mov.u32 %r10, %clock;
    sub.u32 %r11, %r10, %r9;
    and.b32 %r8, %r8, %r5;
    cvt.u64.u32 %rd10, %r8;
    add.u64 %rd8, %rd8, %rd10;
    add.u64 %rd8, %rd8, %rd3;
    setp.ge.u64 %p3, %rd8, %rd2;
    @%p3 sub.u64 %rd8, %rd8, %rd2;
    setp.lt.u32 %p4, %r11, %r3;
    @%p4 bra NEXT;
    setp.ge.u32 %p5, %r7, 4096;
    @%p5 bra COUNTED;
    shl.b32 %r12, %r7, 3;
    add.u32 %r12, %r20, %r12;
    st.shared.u32 [%r12], %r6;
    st.shared.u32 [%r12+4], %r11;
COUNTED:
    add.u32 %r7, %r7, 1;
NEXT:
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p2, %r6, %r2;
    @%p2 bra LOAD;
DONE:
    st.global.u32 [%rd6], %r7;
    min.u32 %r13, %r7, 4096;
    mov.u32 %r6, 0;
WRITE:
    setp.ge.u32 %p2, %r6, %r13;
    @%p2 bra END;
    shl.b32 %r12, %r6, 3;
    cvt.u64.u32 %rd11, %r12;
    add.u64 %rd11, %rd6, %rd11;
    add.u32 %r12, %r20, %r12;
    ld.shared.u32 %r14, [%r12];
    ld.shared.u32 %r15, [%r12+4];
    st.global.u32 [%rd11+8], %r14;
    st.global.u32 [%rd11+12], %r15;
    add.u32 %r6, %r6, 1;
    bra WRITE;
END:
    ret;
}

.visible .entry bench_probe_@X@(
    .param .u64 param_base,
    .param .u64 param_sequence,
    .param .u32 param_count,
    .param .u32 param_companion,
    .param .u32 param_zero,
    .param .u64 param_out)
{
    .shared .align 8 .b8 told[32768];
    .shared .u32 last;
    .reg .pred %p<8>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<32>;
    ld.param.u64 %rd1, [param_base];
    ld.param.u64 %rd2, [param_sequence];
    ld.param.u32 %r2, [param_count];
    ld.param.u32 %r4, [param_companion];
    ld.param.u32 %r5, [param_zero];
    ld.param.u64 %rd4, [param_out];
    cvta.to.global.u64 %rd5, %rd1;
    cvta.to.global.u64 %rd3, %rd2;
    cvta.to.global.u64 %rd6, %rd4;
    cvt.u64.u32 %rd7, %r4;
    setp.ne.u32 %p1, %r4, 0;
    mov.u32 %r20, told;
    mov.u32 %r6, 0;
READ:
    setp.ge.u32 %p2, %r6, %r2;
    @%p2 bra BEGIN;
    mul.wide.u32 %rd9, %r6, 8;
    add.u64 %rd9, %rd3, %rd9;
    ld.global.cg.u64 %rd10, [%rd9];
    shl.b32 %r12, %r6, 3;
    add.u32 %r12, %r20, %r12;
    st.shared.u64 [%r12], %rd10;
    add.u32 %r6, %r6, 1;
    bra READ;
BEGIN:
    mov.u32 %r6, 0;
    mov.u64 %rd8, 0;
LOAD:
    setp.ge.u32 %p2, %r6, %r2;
    @%p2 bra DONE;
    shl.b32 %r12, %r6, 3;
    add.u32 %r12, %r20, %r12;
    ld.shared.u64 %rd10, [%r12];
    add.u64 %rd8, %rd8, %rd10;
    add.u64 %rd9, %rd5, %rd8;
    @!%p1 bra LOADONE;
    xor.b64 %rd11, %rd9, %rd7;
    @LD@ %r8, [%rd11];
    st.shared.u32 [last], %r8;
    and.b32 %r8, %r8, %r5;
    cvt.u64.u32 %rd10, %r8;
    add.u64 %rd9, %rd9, %rd10;
LOADONE:
    mov.u32 %r9, %clock;
    @LD@ %r8, [%rd9];
    st.shared.u32 [last], %r8;
    mov.u32 %r10, %clock;
    sub.u32 %r11, %r10, %r9;
    st.shared.u32 [%r12], %r11;
    and.b32 %r8, %r8, %r5;
    cvt.u64.u32 %rd8, %r8;
    add.u32 %r6, %r6, 1;
    bra LOAD;
DONE:
    mov.u32 %r6, 0;
WRITE:
    setp.ge.u32 %p2, %r6, %r2;
    @%p2 bra END;
    shl.b32 %r12, %r6, 3;
    add.u32 %r12, %r20, %r12;
    ld.shared.u32 %r14, [%r12];
    mul.wide.u32 %rd9, %r6, 4;
    add.u64 %rd9, %rd6, %rd9;
    st.global.u32 [%rd9], %r14;
    add.u32 %r6, %r6, 1;
    bra WRITE;
END:
    ret;
}
)";

std::string with(std::string_view text, std::string_view name, std::string_view load) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        if (text.substr(at, 3) == "@X@") {
            result += name;
            at += 3;
        } else if (text.substr(at, 4) == "@LD@") {
            result += load;
            at += 4;
        } else {
            result += text[at++];
        }
    }
    return result;
}

}  // namespace

std::string probe_ptx() {
    return std::string(kHead) + with(kKernels, "ca", "ld.global.ca.u32") +
           with(kKernels, "cg", "ld.global.cg.u32") + with(kKernels, "nc", "ld.global.nc.u32");
}

}  // namespace libswap::bench
