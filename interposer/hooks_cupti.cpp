// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// CUPTI's calls by which a profiler begins. There is one user of CUPTI in a process: whoever comes
// has it, and ours lets go of it before the call is made.

#include <cstdint>
#include <new>
#include <string_view>

#include "interposer/counted_thunks.hpp"
#include "interposer/elf_image.hpp"
#include "interposer/library_table.hpp"
#include "runtime/kernel_times.hpp"

namespace libswap {
namespace {

constexpr int kCuptiNotInitialized = 15;  ///< CUPTI_ERROR_NOT_INITIALIZED

/// CUPTI calls itself by its exported names, also on threads of its own, and on ours when we use
/// it; where it does so last of all, the call seems to be ours.
bool is_the_programs(const ElfImage& caller) noexcept {
    return libswap_hook_depth == 0 && !(caller == own_image()) &&
           !std::string_view(caller.soname()).starts_with("libcupti");
}

/// A library that CUPTI was linked into, and that does not hide it, means its own, though its calls
/// come here by the loader's order. Looked for last: a shim of that name looks for the next one.
void* find_function(const ElfImage& caller, const char* name) noexcept {
    if (void* const function = find_library_function(name)) return function;
    return caller && !(caller == own_image()) ? caller.symbol(name) : nullptr;
}

void leave_to_others() noexcept {
    try {
        KernelTimes::instance().leave_to_others();
    } catch (const std::bad_alloc&) {
        // Then there is none of ours either.
    }
}

}  // namespace
}  // namespace libswap

#define CUPTI(name, parameters, arguments)                                                    \
    extern "C" [[gnu::visibility("default")]] int name parameters {                           \
        using namespace libswap;                                                              \
        const ElfImage caller = image_of_address(__builtin_return_address(0));                \
        if (is_the_programs(caller)) leave_to_others();                                       \
        auto* const real = reinterpret_cast<int(*) parameters>(find_function(caller, #name)); \
        return real ? real arguments : kCuptiNotInitialized;                                  \
    }
#include "interposer/cupti_exports.def"
#undef CUPTI
