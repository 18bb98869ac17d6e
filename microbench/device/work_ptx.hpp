// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>

namespace libswap::bench {

/// bench_empty(): does nothing.
extern const char* const kEmptyPtx;

/// bench_spin(rounds, out): one thread adds and multiplies, each step waiting for the one before.
/// `out`, 4 bytes, is written only where the result is 0.
extern const char* const kSpinPtx;

/// What a kernel does with arrays of 4-byte words.
enum class Stream4 { Read, Write, Copy, Triad };
const char* stream_name(Stream4 kind);

/// bench_stream(a, b, c, count, zero): each thread takes every (grid)-th element of `width` words:
/// read a; write a; b = a; c = a + s b.
std::string stream_ptx(Stream4 kind, unsigned width);

enum class Arithmetic { Fp32, Fp64, Fp16, Int32, Tf32Matrix, Fp16Matrix };
const char* arithmetic_name(Arithmetic kind);

/// bench_arithmetic(rounds, out): per thread (per warp for matrices) and round 16 independent
/// multiply-adds. `out` is written only if a result is not what it can be.
std::string arithmetic_ptx(Arithmetic kind);
/// Operations of one thread in one round: a multiply-add is two.
double arithmetic_operations(Arithmetic kind);

}  // namespace libswap::bench
