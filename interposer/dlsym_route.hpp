// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

// The exported dlsym and dlvsym, and the real ones behind them.

namespace libswap {

/// libc's own functions. To be used for every look-up of ours; never the public names, which are
/// us.
void* real_dlsym(void* handle, const char* name) noexcept;

/// What a look-up of a driver's name comes to.
struct Route {
    void* answer;  ///< the result, if not nullptr
    void* handle;  ///< else libc is asked for the name with this handle, as if by the caller
};

}  // namespace libswap

extern "C" {
/// Decides about a name that begins like a driver's. `version` is nullptr for dlsym; `caller` the
/// return address.
[[gnu::visibility("hidden")]] libswap::Route libswap_route(void* handle, const char* name,
                                                           const char* version, const void* caller);
}
