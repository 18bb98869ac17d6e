// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/questions/busy_kernel.hpp"

#include <algorithm>

#include "microbench/device/work_ptx.hpp"

namespace libswap::bench {

BusyKernel::BusyKernel(Session& session, std::chrono::milliseconds runs_for)
    : session_(session),
      module_(session.driver(), kSpinPtx),
      function_(module_.function("bench_spin")),
      out_(session.driver(), 4096),
      done_(session.driver()) {
    const double wanted_us = 1e3 * static_cast<double>(runs_for.count());
    launch(1);  // loads the module
    session_.synchronize();
    // Long enough that what a launch costs does not count.
    double us = 0;
    for (rounds_ = 4096; us < wanted_us / 8 && rounds_ < (std::uint64_t{1} << 32); rounds_ *= 4) {
        us = host_us([&] {
            launch(4 * rounds_);
            session_.synchronize();
        });
    }
    rounds_ =
        static_cast<std::uint64_t>(static_cast<double>(rounds_) * wanted_us / std::max(us, 1.0));
}

void BusyKernel::launch(std::uint64_t rounds) {
    void* parameters[] = {&rounds, &out_.address};
    BENCH_CU(session_.driver(), cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, session_.stream(),
                                               parameters, nullptr));
}

void BusyKernel::start() {
    launch(rounds_);
    BENCH_CU(session_.driver(), cuEventRecord(done_.handle, session_.stream()));
}

bool BusyKernel::runs() const {
    const CUresult code = session_.driver().cuEventQuery(done_.handle);
    if (code == CUDA_ERROR_NOT_READY) return true;
    session_.driver().check(code, "cuEventQuery");
    return false;
}

void BusyKernel::finish() const { BENCH_CU(session_.driver(), cuEventSynchronize(done_.handle)); }

}  // namespace libswap::bench
