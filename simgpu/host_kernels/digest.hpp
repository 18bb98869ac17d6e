// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/driver/host_kernel.h"

namespace simgpu {

/// Adds the digest of `words` words at `data`, of any alignment, to out[0] and out[1], and the
/// count of words in [low, low + span) to out[2]. `first` is the index of the first word.
void digest_words(const void* data, std::size_t words, std::uint64_t first, std::uint64_t low,
                  std::uint64_t span, std::uint64_t out[3]);

/// libswap's digest kernel, natively.
void run_digest(const SimgpuHostLaunch* launch);

/// Calls `add(name, function)` for every kernel that is done natively.
template <typename Add>
void for_each_host_kernel(Add&& add) {
    add("libswap_digest", &run_digest);
}

}  // namespace simgpu
