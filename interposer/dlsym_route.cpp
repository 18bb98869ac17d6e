// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/dlsym_route.hpp"

#include "interposer/elf_image.hpp"
#include "interposer/hook_table.hpp"
#include "interposer/library_table.hpp"
#include "interposer/real_driver.hpp"

#include <dlfcn.h>

#include <atomic>

#if !defined(__x86_64__)
#error "The dlsym thunks are written for x86-64"
#endif

// dlsym and dlvsym must not be ordinary functions: libc answers RTLD_NEXT and RTLD_DEFAULT by the
// return address, so the jump to libc leaves the stack as the caller made it. Names that do not
// begin with cu and a capital letter, cudn or cupt, cost a few comparisons. libswap_real_dlsym and
// _dlvsym begin as our own finders and become libc's functions.

extern "C" {
[[gnu::visibility("hidden")]] void libswap_find_real_lookups();
[[gnu::visibility("hidden")]] void* libswap_real_lookups[2] = {nullptr, nullptr};  // dlsym, dlvsym
}

__asm__(R"(
    .pushsection .text.libswap_dlsym, "ax", @progbits

    # Jumps to libc's function number \number with the arguments as they are.
    .macro libswap_forward number
    movq libswap_real_lookups+8*\number(%rip), %rax
    testq %rax, %rax
    jnz 9f
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    call libswap_find_real_lookups
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    movq libswap_real_lookups+8*\number(%rip), %rax
9:  jmpq *%rax
    .endm

    .macro libswap_lookup name, number
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    testq %rsi, %rsi
    jz 1f
    cmpb $'c', (%rsi)
    jne 1f
    cmpb $'u', 1(%rsi)
    jne 1f
    movzbl 2(%rsi), %eax
    subl $'A', %eax
    cmpl $25, %eax
    jbe 2f
    cmpl $35, %eax          # 'd'
    jne 3f
    cmpb $'n', 3(%rsi)
    je 2f
    jmp 1f
3:  cmpl $47, %eax          # 'p'
    jne 1f
    cmpb $'t', 3(%rsi)
    je 2f
1:  libswap_forward \number
2:  pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    .if \number == 0
    xorl %edx, %edx
    .endif
    movq 24(%rsp), %rcx
    call libswap_route
    movq %rdx, %rdi
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    leaq 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jz 1b
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    libswap_lookup dlsym, 0
    libswap_lookup dlvsym, 1
    .popsection
)");

namespace libswap {
namespace {

using Dlsym = void* (*)(void*, const char*);
using Dlvsym = void* (*)(void*, const char*, const char*);

void* lookup(void* handle, const char* name, const char* version) noexcept {
    if (!libswap_real_lookups[0]) libswap_find_real_lookups();
    if (version) return reinterpret_cast<Dlvsym>(libswap_real_lookups[1])(handle, name, version);
    return reinterpret_cast<Dlsym>(libswap_real_lookups[0])(handle, name);
}

/// For answers of "not there": libc exports nothing of a driver, and its failing look-up sets
/// dlerror as it should.
void* handle_without_driver() noexcept {
    static constinit std::atomic<void*> known{nullptr};
    void* handle = known.load(std::memory_order_relaxed);
    if (!handle)
        known.store(handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD),
                    std::memory_order_relaxed);
    return handle;
}

/// Whether the program would find the name without us: in the global scope, or in what the caller
/// was loaded with.
bool is_reachable(const char* name, const void* caller) noexcept {
    if (lookup(RTLD_NEXT, name, nullptr)) return true;
    Dl_info info;
    if (dladdr(caller, &info) == 0) return false;
    void* object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!object) return false;  // the program itself, whose scope is the global one
    void* found = lookup(object, name, nullptr);
    dlclose(object);
    return found && !(image_of_address(found) == own_image());
}

/// RTLD_NEXT and RTLD_DEFAULT: libc answers, by the caller's address, and our export is where it
/// stands in the scope. Only what would not be there without us must not be there with us.
Route route_by_scope(void* handle, const char* name, const void* caller) noexcept {
    if (handle == RTLD_DEFAULT) {
        void* first = lookup(RTLD_DEFAULT, name, nullptr);
        if (!first || !(image_of_address(first) == own_image())) return {nullptr, handle};
    }
    if (!is_reachable(name, caller)) return {nullptr, handle_without_driver()};
    adopt_driver_in_scope(name);
    return {nullptr, handle};
}

/// A handle: the name must be in that object, and that object must be a driver.
Route route_by_handle(void* handle, Hook hook, const char* name, const char* version) noexcept {
    void* found = lookup(handle, name, version);
    if (!found) return {nullptr, handle};
    ElfImage image = image_of_address(found);
    if (image == own_image()) {  // the program's own handle finds us first
        if (!lookup(RTLD_NEXT, name, nullptr)) return {nullptr, handle_without_driver()};
        adopt_driver_in_scope(name);
    } else if (!follow_driver(image) || driver_symbol(hook) != found) {
        return {nullptr, handle};
    }
    lookup(handle, name, version);  // leaves dlerror as a successful look-up does
    return {hook_info(hook).address, handle};
}

/// Hooks of cuDNN and CUPTI go where the look-up's answer is what they would call: so a library
/// between the program and cuDNN that looks for the real one gets that, and not itself through us.
Route route_library(void* handle, void* hook, const char* name, const char* version,
                    const void* caller) noexcept {
    if (image_of_address(caller) == own_image()) return {nullptr, handle};  // our own use of CUPTI
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
        return {nullptr, is_reachable(name, caller) ? handle : handle_without_driver()};
    void* const found = lookup(handle, name, version);
    if (!found) return {nullptr, handle};
    if (image_of_address(found) == own_image())  // the program's own handle finds us first
        return {nullptr, lookup(RTLD_NEXT, name, nullptr) ? handle : handle_without_driver()};
    if (find_library_function(name) != found) return {nullptr, handle};
    lookup(handle, name, version);  // leaves dlerror as a successful look-up does
    return {hook, handle};
}

}  // namespace

void* real_dlsym(void* handle, const char* name) noexcept { return lookup(handle, name, nullptr); }

}  // namespace libswap

void libswap_find_real_lookups() {
    const libswap::ElfImage libc = libswap::libc_image();
    libswap_real_lookups[1] = libc.symbol("dlvsym");
    libswap_real_lookups[0] = libc.symbol("dlsym");
}

libswap::Route libswap_route(void* handle, const char* name, const char* version,
                             const void* caller) {
    using namespace libswap;
    const Hook hook = find_hook(name);
    if (hook == Hook::kCount) {
        void* const library = find_library_hook(name);
        if (!library) return {nullptr, handle};
        return route_library(handle, library, name, version, caller);
    }
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return route_by_scope(handle, name, caller);
    return route_by_handle(handle, hook, name, version);
}
