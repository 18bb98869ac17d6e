// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The measurements besides the memory hierarchy, one function per question. Each throws CudaError
// where the device cannot do it; suite.cpp turns that into a line of Report::not_measured.
#pragma once

#include <string>
#include <vector>

#include "microbench/device/session.hpp"
#include "microbench/report/profile.hpp"

namespace libswap::bench {

enum class Depth : std::uint8_t { Quick, Full };

/// A measurement's place in the report: tables are appended, the profile is filled in.
struct Bench {
    Session& session;
    Depth depth = Depth::Quick;
    Report& report;
    /// The digest kernel's text and name, or null: libswap's, which this library does not know.
    const char* digest_ptx = nullptr;

    bool full() const { return depth == Depth::Full; }
    Table& table(std::string key, std::string question, std::string unit) {
        report.tables.push_back({std::move(key), std::move(question), std::move(unit), {}, {}});
        return report.tables.back();
    }
};

void measure_transfers(Bench& bench);    ///< LogGP of both directions, pinned
void measure_duplex(Bench& bench);       ///< 2x2, copy engines
void measure_pageable(Bench& bench);     ///< pinned against pageable
void measure_chunks(Bench& bench);       ///< several chunks in flight
void measure_vmm(Bench& bench);          ///< create, map, set access, unmap, release
void measure_host_memory(Bench& bench);  ///< alloc and register per GiB
void measure_calls(Bench& bench);        ///< events, queries, waits, launches
void measure_memory(Bench& bench);       ///< read, write, copy, triad
void measure_arithmetic(Bench& bench);   ///< peak operations by type
void measure_kernels(Bench& bench);      ///< some of each kind, for the Roofline
void measure_digest(Bench& bench);

/// All of them, and the hierarchy in a full run.
struct SuiteOptions {
    int device = 0;
    Depth depth = Depth::Quick;
    const char* digest_ptx = nullptr;
    std::string version;  ///< of libswap, for the header
    /// Names of the measurements to make; empty for all of that depth.
    std::vector<std::string> only;
};
/// The names that SuiteOptions::only knows.
std::vector<std::string> measurement_names();
/// Throws CudaError only where there is no device to measure.
Report run_suite(const SuiteOptions& options);

}  // namespace libswap::bench
