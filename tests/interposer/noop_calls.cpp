// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Calls that do nothing, to be preloaded behind libswap: what is left of them is libswap's part.

#define NOOP extern "C" __attribute__((visibility("default"))) int

NOOP cuLaunchKernel() { return 0; }
NOOP cuMemAlloc_v2() { return 0; }
NOOP cuMemFree_v2() { return 0; }
