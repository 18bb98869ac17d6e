// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Knows nothing of LD_PRELOAD.
int main() { return 0; }
