// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cuda.h>

#include <source_location>
#include <tl/expected.hpp>

namespace libswap {

/// Why something of ours did not work. `what` has static lifetime (a literal, or the text of an
/// expression).
struct Error {
    CUresult code = CUDA_ERROR_UNKNOWN;
    const char* what = "";
    std::source_location where = std::source_location::current();
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// `return fail(CUDA_ERROR_NOT_SUPPORTED, "no VMM")` from any function that returns a Result.
[[nodiscard]] inline tl::unexpected<Error> fail(
    CUresult code, const char* what,
    std::source_location where = std::source_location::current()) noexcept {
    return tl::unexpected<Error>(Error{code, what, where});
}

}  // namespace libswap

/// Leaves the enclosing function with the error of `expr` (a Result) if it has one; drops its
/// value.
#define LIBSWAP_TRY(expr)                                                      \
    do {                                                                       \
        if (auto libswap_result = (expr); !libswap_result)                     \
            return ::tl::unexpected<::libswap::Error>(libswap_result.error()); \
    } while (false)
