// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cuda_runtime_api.h>

#include <cstdio>

/// The smallest program that wakes the runtime up.
int main() {
    std::printf("%s\n", cudaGetErrorName(cudaFree(nullptr)));
    return 0;
}
