// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Chunks of device memory: what calls on them cost, which wait for kernels, where one may lie.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "microbench/device/chunks.hpp"
#include "microbench/questions/answers.hpp"
#include "microbench/questions/busy_kernel.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kMib = 1 << 20;

struct Step {
    const char* name;
    void (Chunks::*call)(std::size_t);
};
constexpr Step kSteps[] = {{"cuMemCreate", &Chunks::create},
                           {"cuMemMap", &Chunks::map},
                           {"cuMemSetAccess", &Chunks::grant},
                           {"cuMemUnmap", &Chunks::unmap},
                           {"cuMemRelease", &Chunks::release}};

/// A call beside a kernel. `prepare` and `undo` come before it and after the kernel's end.
struct Call {
    const char* name;
    std::function<void()> call;
    std::function<void()> prepare = [] {};
    std::function<void()> undo = [] {};
};

class Waits {
  public:
    Waits(Session& session, Answer& answer, std::chrono::milliseconds kernel)
        : session_(session),
          answer_(answer),
          busy_(session, kernel),
          times_(answer.table("waits", "How long do calls take beside a kernel that runs?", "us")) {
    }

    void ask(const Call& call) {
        call.prepare();
        session_.synchronize();
        busy_.start();
        const double us = host_us(call.call);
        const bool runs = busy_.runs();
        busy_.finish();
        call.undo();
        times_.add(call.name, us);
        answer_.fact(call.name,
                     fmt::format("{} ({:.1f} us)", runs ? "does not wait" : "waits", us));
        if (!runs) waiting_ += fmt::format("{}{}", waiting_.empty() ? "" : ", ", call.name);
    }

    std::string waiting() const { return waiting_.empty() ? "none" : waiting_; }

  private:
    Session& session_;
    Answer& answer_;
    BusyKernel busy_;
    Table& times_;
    std::string waiting_;
};

void ask_chunk_calls(Session& session, Waits& waits, std::uint64_t bytes) {
    Chunks chunks(session, bytes, 1);
    for (const Step& step : kSteps) waits.ask({step.name, [&] { (chunks.*step.call)(0); }});
}

void ask_memory_calls(const Driver& driver, Waits& waits, std::uint64_t bytes) {
    CUdeviceptr device = 0;
    void* pinned = nullptr;
    const auto alloc = [&] { BENCH_CU(driver, cuMemAlloc(&device, bytes)); };
    const auto release = [&] { BENCH_CU(driver, cuMemFree(device)); };
    const auto pin = [&] { BENCH_CU(driver, cuMemHostAlloc(&pinned, bytes, 0)); };
    const auto unpin = [&] { BENCH_CU(driver, cuMemFreeHost(pinned)); };
    waits.ask({"cuMemAlloc", alloc, [] {}, release});
    waits.ask({"cuMemFree", release, alloc});
    waits.ask({"cuMemHostAlloc", pin, [] {}, unpin});
    waits.ask({"cuMemFreeHost", unpin, pin});
    const std::unique_ptr<void, decltype(&std::free)> plain(std::aligned_alloc(4096, bytes),
                                                            &std::free);
    const auto attach = [&] { BENCH_CU(driver, cuMemHostRegister(plain.get(), bytes, 0)); };
    const auto detach = [&] { BENCH_CU(driver, cuMemHostUnregister(plain.get())); };
    waits.ask({"cuMemHostRegister", attach, [] {}, detach});
    waits.ask({"cuMemHostUnregister", detach, attach});
}

/// Whether all bytes at `address` are `value`, by a copy to the host.
bool holds(const Driver& driver, CUdeviceptr address, std::uint64_t bytes, unsigned char value) {
    std::vector<unsigned char> host(bytes);
    BENCH_CU(driver, cuMemcpyDtoH(host.data(), address, bytes));
    return std::all_of(host.begin(), host.end(), [&](unsigned char b) { return b == value; });
}

}  // namespace

Answer ask_chunk_costs(Session& session, const AskOptions& options) {
    Answer answer;
    Table& table = answer.table("chunk_costs", "What do calls on chunks cost?", "us");
    std::vector<std::uint64_t> sizes{2 * kMib, 16 * kMib, 64 * kMib, 256 * kMib};
    if (options.quick) sizes = {2 * kMib, 16 * kMib};
    double fetch_us = 0;
    for (const std::uint64_t bytes : sizes) {
        const std::size_t count =
            std::min<std::size_t>(options.quick ? 3 : 8, session.free_bytes() / 2 / bytes);
        if (count == 0) break;
        Chunks chunks(session, bytes, count);
        fetch_us = 0;
        for (const Step& step : kSteps) {
            std::vector<double> us;
            for (std::size_t k = 0; k < count; ++k)
                us.push_back(session.time_us([&] { (chunks.*step.call)(k); }));
            table.add(fmt::format("{}, {}", step.name, size_name(static_cast<double>(bytes))), us);
            if (step.call != &Chunks::create && step.call != &Chunks::release)
                fetch_us += table.rows.back().value.median;
        }
        answer.in_short = fmt::format("unmap, map and set-access take {:.0f} us for {}", fetch_us,
                                      size_name(static_cast<double>(bytes)));
    }
    if (table.rows.empty()) throw CudaError(CUDA_ERROR_OUT_OF_MEMORY, "too little memory is free");
    return answer;
}

Answer ask_waits(Session& session, const AskOptions& options) {
    Answer answer;
    Waits waits(session, answer, std::chrono::milliseconds(options.quick ? 20 : 60));
    const std::uint64_t bytes = (options.quick ? 2 : 64) * kMib;
    ask_chunk_calls(session, waits, bytes);
    ask_memory_calls(session.driver(), waits, bytes);
    answer.in_short = fmt::format("of the calls below wait: {}", waits.waiting());
    return answer;
}

Answer ask_two_addresses(Session& session, const AskOptions&) {
    const Driver& driver = session.driver();
    constexpr std::uint64_t kBytes = 2 * kMib;
    Chunks first(session, kBytes, 1);
    first.make(0);
    CUdeviceptr second = 0;
    BENCH_CU(driver, cuMemAddressReserve(&second, kBytes, 0, 0, 0));
    Answer answer;
    const CUresult mapped = driver.cuMemMap(second, kBytes, 0, first.handle(0), 0);
    answer.fact("cuMemMap of a mapped handle at a second address", code_name(driver, mapped));
    answer.in_short = "no";
    if (mapped == CUDA_SUCCESS) {
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {session.device()}},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        BENCH_CU(driver, cuMemSetAccess(second, kBytes, &access, 1));
        BENCH_CU(driver, cuMemsetD8(first.at(0), 0x5a, kBytes));
        const bool seen = holds(driver, second, kBytes, 0x5a);
        BENCH_CU(driver, cuMemsetD8(second, 0xa5, kBytes));
        const bool seen_back = holds(driver, first.at(0), kBytes, 0xa5);
        first.unmap(0);
        const bool stays = holds(driver, second, kBytes, 0xa5);
        answer.fact("written at the first, read at the second", seen ? "the same" : "different");
        answer.fact("written at the second, read at the first",
                    seen_back ? "the same" : "different");
        answer.fact("the second after the first was unmapped", stays ? "the same" : "different");
        answer.in_short = seen && seen_back && stays ? "yes" : "it can be mapped, but not used";
        BENCH_CU(driver, cuMemUnmap(second, kBytes));
    }
    driver.cuMemAddressFree(second, kBytes);
    return answer;
}

}  // namespace libswap::bench
