// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <tl/expected.hpp>

namespace simgpu {

/// What device calls answer: the public error codes, as values.
using Status = CUresult;

template <typename T>
using Result = tl::expected<T, Status>;

inline tl::unexpected<Status> failed(Status status) { return tl::unexpected<Status>(status); }

}  // namespace simgpu
