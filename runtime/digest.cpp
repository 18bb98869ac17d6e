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
    if (status) status = LIBSWAP_CU(driver_.cuMemAlloc(&device_results_, kSlots * sizeof(Digest)));
    void* pinned = nullptr;
    if (status)
        status = LIBSWAP_CU(
            driver_.cuMemHostAlloc(&pinned, kSlots * sizeof(Digest), CU_MEMHOSTALLOC_PORTABLE));
    host_results_ = static_cast<Digest*>(pinned);
    if (!status) stop(false);
    return status;
}

void Digester::stop(bool context_gone) noexcept {
    if (!context_gone) {
        if (device_results_) LIBSWAP_CU_IGNORE(driver_.cuMemFree(device_results_));
        if (module_) LIBSWAP_CU_IGNORE(driver_.cuModuleUnload(module_));
    }
    if (host_results_) LIBSWAP_CU_IGNORE(driver_.cuMemFreeHost(host_results_));
    module_ = nullptr;
    function_ = nullptr;
    device_results_ = 0;
    host_results_ = nullptr;
    taken_.fill(false);
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

Status Digester::clear(std::uint32_t slot, CUstream stream) noexcept {
    return LIBSWAP_CU(driver_.cuMemsetD8Async(device_results_ + slot * sizeof(Digest), 0,
                                              sizeof(Digest), stream));
}

Status Digester::add(std::uint32_t slot, CUdeviceptr base, std::uint64_t bytes,
                     std::uint64_t first_word, std::uint64_t window_low, std::uint64_t window_bytes,
                     CUstream stream) noexcept {
    std::uint64_t words = bytes / 8;
    CUdeviceptr out = device_results_ + slot * sizeof(Digest);
    void* params[] = {&base, &words, &first_word, &out, &window_low, &window_bytes};
    const auto blocks =
        static_cast<unsigned>(std::clamp<std::uint64_t>(words / (kThreads * 8), 1, kMaxBlocks));
    return LIBSWAP_CU(driver_.cuLaunchKernel(function_, blocks, 1, 1, kThreads, 1, 1, 0, stream,
                                             params, nullptr));
}

Status Digester::finish(std::uint32_t slot, CUstream stream) noexcept {
    return LIBSWAP_CU(driver_.cuMemcpyDtoHAsync(
        &host_results_[slot], device_results_ + slot * sizeof(Digest), sizeof(Digest), stream));
}

Digest Digester::result(std::uint32_t slot) const noexcept { return host_results_[slot]; }

}  // namespace libswap
