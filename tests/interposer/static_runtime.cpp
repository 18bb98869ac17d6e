// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cuda_runtime_api.h>

// A library with the vendor's static runtime inside, which shows nothing of it but this.

extern "C" __attribute__((visibility("default"))) int count_devices(int* count) {
    return cudaGetDeviceCount(count);
}
