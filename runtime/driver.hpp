// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "runtime/error.hpp"

#include <cuda.h>

#include <cstddef>
#include <source_location>
#include <string_view>

namespace libswap {

/// The real driver's functions, by pointers that lead past every hook: what the engine calls
/// through. Members have the exact exported names, so that `driver().cuMemAlloc(...)`, a macro of
/// cuda.h, is `cuMemAlloc_v2`.
struct Driver {
#define DRIVER_FUNCTION(symbol, need, older) decltype(&::symbol) symbol = nullptr;
#include "runtime/driver.def"
#undef DRIVER_FUNCTION
};

/// Address of an exported symbol of the driver, or nullptr.
using SymbolLookup = void* (*)(const char* symbol, void* context);

/// Fills every field that `lookup` knows. The error names the first required symbol that is
/// missing;
/// `*out` is then not to be used.
Status load_driver(SymbolLookup lookup, void* context, Driver* out) noexcept;

/// The table in use. All fields are nullptr before set_driver(). @thread any
const Driver& driver() noexcept;

/// Makes `table` (copied) the one in use. Called once, before the engine starts; tests may call it
/// again.
void set_driver(const Driver& table) noexcept;

/// True once the process runs its exit handlers: from then on no destructor calls the driver.
/// @thread any
bool process_is_exiting() noexcept;
void note_process_exit() noexcept;

/// Name of a result ("CUDA_ERROR_OUT_OF_MEMORY"), never nullptr; from the driver, or the number.
const char* error_name(CUresult code) noexcept;

/// The function that a failed driver call named: "cuMemMap" of `driver_.cuMemMap(a, b)`. Text that
/// is no call is returned whole.
std::string_view call_name(std::string_view expression) noexcept;

namespace detail {
Status check_driver_call(CUresult code, const char* expression,
                         std::source_location where = std::source_location::current()) noexcept;
void ignore_driver_call(CUresult code, const char* expression,
                        std::source_location where = std::source_location::current()) noexcept;
}  // namespace detail

}  // namespace libswap

/// Turns a driver call into a Status; a failure is logged at level debug with the call's text and
/// place.
#define LIBSWAP_CU(expr) (::libswap::detail::check_driver_call((expr), #expr))

/// For teardown: a driver that is already shut down is not worth a word, any other failure is
/// logged at debug.
#define LIBSWAP_CU_IGNORE(expr) (::libswap::detail::ignore_driver_call((expr), #expr))
