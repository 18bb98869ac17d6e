// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace libswap::cupti {

/// CUPTI's functions, looked up at run time.
struct Functions {
#define CUPTI_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "cupti_trace/functions.def"
#undef CUPTI_FUNCTION
};

/// Who else in the process uses CUPTI, or would be in the way of it; "" if nobody is known:
/// variables of profilers and injected tools, and loaded objects that need libcupti. @thread any
std::string other_client();

/// Opens libcupti of the CUDA runtime's major version, from where that one lies (a toolkit's
/// folders or the wheels' of PyPI), else as the loader finds it. It stays loaded. nullopt: *why
/// says what is missing. @thread any
std::optional<Functions> open_library(std::string* why);

}  // namespace libswap::cupti
