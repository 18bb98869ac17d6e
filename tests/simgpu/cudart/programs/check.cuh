// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

/// Ends the program with what went wrong and where; for programs that check themselves.
#define EXPECT(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

#define EXPECT_CODE(expected, call)                                                        \
    do {                                                                                   \
        const cudaError_t seen_ = (call);                                                  \
        if (seen_ != (expected)) {                                                         \
            std::fprintf(stderr, "%s:%d: %s gave %s, not %s\n", __FILE__, __LINE__, #call, \
                         cudaGetErrorName(seen_), #expected);                              \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

#define CUDA(call) EXPECT_CODE(cudaSuccess, call)
