// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "interposer/counted_thunks.hpp"
#include "interposer/elf_image.hpp"
#include "interposer/hook_table.hpp"

namespace libswap {

/// The driver that the program uses: the one it looked names up in, or is linked with. Until the
/// first cuInit has succeeded another look-up may change it; then it stays.

/// Takes `image` for the program's driver if it is one and none is settled. @return whether it is
/// the driver in use
bool follow_driver(const ElfImage& image) noexcept;

/// As follow_driver() for the next object in the global scope that defines `name`.
void adopt_driver_in_scope(const char* name) noexcept;

/// Forgets the driver if the program has closed it since (a probe for one). To be called before the
/// program's cuInit.
void drop_closed_driver() noexcept;

/// From now on the driver in use does not change.
void settle_driver() noexcept;

/// The driver in use; empty if none is known.
ElfImage driver_image() noexcept;

/// The exported symbol of the driver in use, or nullptr.
void* driver_symbol(Hook hook) noexcept;

/// What the hook goes on to: the driver's function, or that of another library interposed between
/// us and it.
void set_real_function(Hook hook, void* function) noexcept;
void* real_function_or_null(Hook hook) noexcept;

/// Stands in for a function that the driver does not have.
template <class Function>
struct Unavailable;
template <class Result, class... Args>
struct Unavailable<Result (*)(Args...)> {
    static Result call(Args...) noexcept {
        return static_cast<Result>(801);
    }  // CUDA_ERROR_NOT_SUPPORTED
};

/// The function behind a hook, always callable.
template <class Function>
Function real_function(Hook hook) noexcept {
    void* function = real_function_or_null(hook);
    return function ? reinterpret_cast<Function>(function) : &Unavailable<Function>::call;
}

}  // namespace libswap
