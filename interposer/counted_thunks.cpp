// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/counted_thunks.hpp"

// The hooks that only count. They need no signature: count, then jump to the driver's function with
// every argument register as it was. Generated from hooks.def, whose order gives each thunk its
// index.

extern "C" {
constinit std::uint64_t libswap_hook_calls[libswap::kHookCount] = {};
constinit void* libswap_real_functions[libswap::kHookCount] = {};
constinit thread_local int libswap_hook_depth = 0;
}

#if !defined(__x86_64__)
#error "The counting hooks are written for x86-64"
#endif

__asm__(R"(
    .pushsection .text.libswap_counted, "ax", @progbits
    .set libswap_index, 0

    .macro libswap_counted name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    endbr64
    movq libswap_hook_depth@gottpoff(%rip), %rax
    cmpl $0, %fs:(%rax)
    jne 1f
    lock incq libswap_hook_calls+8*libswap_index(%rip)
1:  movq libswap_real_functions+8*libswap_index(%rip), %rax
    testq %rax, %rax
    jz 2f
    jmpq *%rax
2:  movl $libswap_index, %eax
    jmp libswap_counted_first_use
    .size \name, . - \name
    .set libswap_index, libswap_index + 1
    .endm

    .type libswap_counted_first_use, @function
libswap_counted_first_use:
    .cfi_startproc
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movl %eax, %edi
    call libswap_resolve_real
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jz 1f
    jmpq *%rax
1:  movl $801, %eax  # CUDA_ERROR_NOT_SUPPORTED
    ret
    .cfi_endproc
    .size libswap_counted_first_use, . - libswap_counted_first_use
)");

#define HOOK(name, version, kind) __asm__("    .set libswap_index, libswap_index + 1");
#define COUNTED(name, version) __asm__("    libswap_counted " #name);
#include "interposer/hooks.def"
#undef HOOK
#undef COUNTED
__asm__("    .popsection");
