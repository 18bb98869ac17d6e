// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Launches and copies as a program issues them. Run with and without what is to be judged.
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "microbench/questions/answers.hpp"
#include "microbench/questions/busy_kernel.hpp"

namespace libswap::bench {

namespace {

constexpr std::size_t kBuffers = 8;
constexpr std::uint64_t kBufferBytes = 2 << 20;
constexpr std::size_t kInARow = 200;

// Takes eight pointers and eight words, as kernels do; reads none.
constexpr const char* kNamingPtx = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry bench_naming(
    .param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3,
    .param .u64 p4, .param .u64 p5, .param .u64 p6, .param .u64 p7,
    .param .u64 n0, .param .u64 n1, .param .u64 n2, .param .u64 n3,
    .param .u64 n4, .param .u64 n5, .param .u64 n6, .param .u64 n7)
{
    ret;
}
)";

}  // namespace

Answer ask_launches(Session& session, const AskOptions& options) {
    const Driver& driver = session.driver();
    Module module(driver, kNamingPtx);
    CUfunction function = module.function("bench_naming");
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    std::uint64_t values[2 * kBuffers] = {};
    void* parameters[2 * kBuffers];
    for (std::size_t k = 0; k < 2 * kBuffers; ++k) {
        if (k < kBuffers) {
            buffers.push_back(std::make_unique<DeviceBuffer>(driver, kBufferBytes));
            values[k] = buffers.back()->address;
        }
        parameters[k] = &values[k];
    }
    std::vector<double> host;
    std::vector<double> device;
    const std::size_t rounds = options.quick ? 5 : 100;
    for (std::size_t round = 0; round <= rounds; ++round) {
        double us = 0;
        const double device_us = session.time_us([&] {
            us = host_us([&] {
                for (std::size_t k = 0; k < kInARow; ++k)
                    BENCH_CU(driver, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0,
                                                    session.stream(), parameters, nullptr));
            });
        });
        if (round == 0) continue;  // the first warms up
        host.push_back(us / kInARow);
        device.push_back(device_us / kInARow);
    }
    Answer answer;
    Table& table = answer.table("launches", "What does a launch with 8 pointers cost?", "us");
    table.add("of the host's time", host);
    table.add("from one to the next on the device", device);
    answer.in_short = fmt::format("{:.2f} us of the host", table.rows[0].value.median);
    return answer;
}

}  // namespace libswap::bench
