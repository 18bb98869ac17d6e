// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// A library that is linked against CUPTI, and may call it at any time.

extern "C" int cuptiGetVersion(unsigned* version);
extern "C" unsigned version_of_cupti() {
    unsigned version = 0;
    cuptiGetVersion(&version);
    return version;
}
