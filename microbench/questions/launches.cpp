// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Launches and copies as a program issues them. Run with and without what is to be judged.
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "cupti_trace/trace.hpp"
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

/// The same launch over and over, with buffers that libswap has to look for.
class Launches {
  public:
    Launches(Session& session, std::size_t rounds)
        : session_(session),
          rounds_(rounds),
          module_(session.driver(), kNamingPtx),
          function_(module_.function("bench_naming")) {
        for (std::size_t k = 0; k < 2 * kBuffers; ++k) {
            if (k < kBuffers) {
                buffers_.push_back(std::make_unique<DeviceBuffer>(session.driver(), kBufferBytes));
                values_[k] = buffers_.back()->address;
            }
            parameters_[k] = &values_[k];
        }
    }

    void once() {
        BENCH_CU(session_.driver(), cuLaunchKernel(function_, 1, 1, 1, 32, 1, 1, 0,
                                                   session_.stream(), parameters_, nullptr));
    }

    /// us per launch, of the host and of the device; `launch` does one.
    template <typename Launch>
    void measure(Table& table, const std::string& name, Launch launch) {
        std::vector<double> host;
        std::vector<double> device;
        for (std::size_t round = 0; round <= rounds_; ++round) {
            double us = 0;
            const double device_us = session_.time_us([&] {
                us = host_us([&] {
                    for (std::size_t k = 0; k < kInARow; ++k) launch();
                });
            });
            if (round == 0) continue;  // the first warms up
            host.push_back(us / kInARow);
            device.push_back(device_us / kInARow);
        }
        table.add("of the host's time" + name, host);
        table.add("from one to the next on the device" + name, device);
    }

  private:
    Session& session_;
    std::size_t rounds_;
    Module module_;
    CUfunction function_;
    std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
    std::uint64_t values_[2 * kBuffers] = {};
    void* parameters_[2 * kBuffers] = {};
};

constexpr const char* kWhatALaunchCosts = "What does a launch with 8 pointers cost?";

}  // namespace

Answer ask_launches(Session& session, const AskOptions& options) {
    Answer answer;
    Table& table = answer.table("launches", kWhatALaunchCosts, "us");
    Launches launches(session, options.quick ? 5 : 100);
    launches.measure(table, "", [&] { launches.once(); });
    answer.in_short = fmt::format("{:.2f} us of the host", table.rows[0].value.median);
    return answer;
}

Answer ask_cupti(Session& session, const AskOptions& options) {
    Answer answer;
    Table& table = answer.table("cupti", kWhatALaunchCosts, "us");
    Launches launches(session, options.quick ? 3 : 30);
    launches.measure(table, ", before", [&] { launches.once(); });
    std::string why;
    const auto trace = cupti::Trace::open(true, &why);
    if (trace == nullptr || !trace->begin(&why)) throw CudaError(CUDA_ERROR_NOT_SUPPORTED, why);
    std::uint64_t tag = 0;
    launches.measure(table, ", recorded and tagged", [&] {
        trace->enter(++tag);
        launches.once();
        trace->leave();
    });
    session.synchronize();
    const auto times = trace->collect(true);
    trace->stop();
    launches.measure(table, ", afterwards", [&] { launches.once(); });
    answer.fact("operations whose times came with their tags",
                fmt::format("{} of {}", times.size(), tag));
    answer.in_short = fmt::format("{:.2f} us become {:.2f}, and {:.2f} afterwards; {} of {} times",
                                  table.rows[0].value.median, table.rows[2].value.median,
                                  table.rows[4].value.median, times.size(), tag);
    return answer;
}

}  // namespace libswap::bench
