// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

// A driver that does nothing but count: all exports of a CUDA driver, each returning what it is
// told to. Exported beside them, for tests that link or look it up:

extern "C" {
/// Calls that reached the driver's function of this exact name.
unsigned long fake_calls(const char* name);
/// Address of the driver's own function of this exact name, or nullptr.
void* fake_address(const char* name);
/// From now on every plain function returns this.
void fake_set_result(int result);
/// Makes cuGetProcAddress answer `address` for `symbol` (nullptr: the usual answer again).
void fake_answer(const char* symbol, void* address);
/// Number of cuGetProcAddress requests, and what the n-th asked for: "cuMemAlloc ver=3020 flags=0".
unsigned long fake_request_count();
const char* fake_request(unsigned long index);
/// Whether the n-th request came from an object whose file name contains `part`.
int fake_request_came_from(unsigned long index, const char* part);
}
