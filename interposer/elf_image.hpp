// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <link.h>

namespace libswap {

/// A loaded object, read in place: no lock, no allocation, no call into the loader. Usable before
/// any initialisation has run. Built without sanitizers.
struct ElfImage {
    ElfW(Addr) base = 0;
    const ElfW(Dyn) * dynamic = nullptr;

    explicit operator bool() const noexcept { return dynamic != nullptr; }
    friend bool operator==(const ElfImage& a, const ElfImage& b) noexcept {
        return a.dynamic == b.dynamic;
    }

    /// Address of the exported default version of `name`, or nullptr. Indirect functions are not
    /// resolved.
    void* symbol(const char* name) const noexcept;
    /// DT_SONAME, or "".
    const char* soname() const noexcept;
};

/// The object that `address` lies in, whichever namespace it was loaded into.
ElfImage image_of_address(const void* address) noexcept;

/// libswap itself.
ElfImage own_image() noexcept;

/// libc.so.6 of the namespace of the program; found without a single call, so at any moment.
ElfImage libc_image() noexcept;

/// The first object in load order, other than libswap, that `accept` says yes to.
ElfImage find_image(bool (*accept)(const ElfImage&)) noexcept;

}  // namespace libswap
