// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What programs ask of a library before they decide to use it, or to say why not.

#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

#if defined(ABSENT_IS_nvrtc)
EXPORT int nvrtcVersion(int* major, int* minor) {
    constexpr int kInvalidInput = 3;
    if (major == nullptr || minor == nullptr) return kInvalidInput;
    *major = 13;
    *minor = 0;
    return 0;
}
#elif defined(ABSENT_IS_nccl)
EXPORT int ncclGetVersion(int* version) {
    constexpr int kInvalidArgument = 4;
    if (version == nullptr) return kInvalidArgument;
    *version = 22800;
    return 0;
}
#endif
