// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/digest.hpp"

#include <algorithm>

namespace libswap {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint64_t kMaxBlocks = 512;

}  // namespace

Status Digester::start() noexcept {
    LIBSWAP_TRY(LIBSWAP_CU(driver_.cuModuleLoadData(&module_, kDigestPtx)));
    Status status = LIBSWAP_CU(driver_.cuModuleGetFunction(&function_, module_, kKernelName));
    if (status)
        status = LIBSWAP_CU(driver_.cuMemAlloc(&accumulators_, kSlots * sizeof(Accumulator)));
    if (status)
        status = LIBSWAP_CU(driver_.cuMemsetD8(accumulators_, 0, kSlots * sizeof(Accumulator)));
    void* pinned = nullptr;
    if (status)
        status = LIBSWAP_CU(
            driver_.cuMemHostAlloc(&pinned, kSlots * sizeof(Digest),
                                   CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    host_results_ = static_cast<Digest*>(pinned);
    // With unified addressing, which all devices with virtual memory management have, the device
    // knows pinned memory by the host's address.
    results_address_ = reinterpret_cast<CUdeviceptr>(pinned);
    if (!status) stop(false);
    return status;
}

void Digester::stop(bool context_gone) noexcept {
    if (!context_gone) {
        if (accumulators_) LIBSWAP_CU_IGNORE(driver_.cuMemFree(accumulators_));
        if (module_) LIBSWAP_CU_IGNORE(driver_.cuModuleUnload(module_));
    }
    if (host_results_) LIBSWAP_CU_IGNORE(driver_.cuMemFreeHost(host_results_));
    module_ = nullptr;
    function_ = nullptr;
    accumulators_ = 0;
    host_results_ = nullptr;
    taken_.fill(false);
    spoilt_.fill(false);
}

std::uint32_t Digester::take_slot() noexcept {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
        const std::uint32_t slot = (next_ + i) % kSlots;
        if (taken_[slot]) continue;
        taken_[slot] = true;
        next_ = slot + 1;
        return slot;
    }
    return kNoSlot;
}

void Digester::give_slot(std::uint32_t slot) noexcept {
    if (slot != kNoSlot) taken_[slot] = false;
}

Status Digester::add(std::uint32_t slot, CUdeviceptr base, std::uint64_t bytes,
                     std::uint64_t first_word, std::uint64_t window_low, std::uint64_t window_bytes,
                     bool last, CUstream stream) noexcept {
    std::uint64_t words = bytes / 8;
    CUdeviceptr out = accumulators_ + slot * sizeof(Accumulator);
    CUdeviceptr result = last ? results_address_ + slot * sizeof(Digest) : 0;
    if (first_word == 0) {
        host_results_[slot] = {0, 0, UINT64_MAX};
        // A digest that was submitted in part left something behind.
        if (spoilt_[slot])
            LIBSWAP_TRY(LIBSWAP_CU(driver_.cuMemsetD8Async(out, 0, sizeof(Accumulator), stream)));
        spoilt_[slot] = true;
    }
    void* params[] = {&base, &words, &first_word, &out, &window_low, &window_bytes, &result};
    const auto blocks =
        static_cast<unsigned>(std::clamp<std::uint64_t>(words / (kThreads * 8), 1, kMaxBlocks));
    LIBSWAP_TRY(LIBSWAP_CU(driver_.cuLaunchKernel(function_, blocks, 1, 1, kThreads, 1, 1, 0,
                                                  stream, params, nullptr)));
    if (last) spoilt_[slot] = false;
    return {};
}

Digest Digester::result(std::uint32_t slot) const noexcept { return host_results_[slot]; }

}  // namespace libswap
