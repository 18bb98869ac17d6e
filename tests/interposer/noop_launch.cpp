// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// A launch that does nothing, to be preloaded behind libswap: what is left of a launch is libswap's
// part.

extern "C" __attribute__((visibility("default"))) int cuLaunchKernel() { return 0; }
