// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <dlfcn.h>

#include "examples/play/kernels.hpp"
#include "simgpu/driver/host_kernel.h"

namespace play {
namespace {

/// Where there is no data the operand's memory is only named, all of it.
const std::uint64_t* words_of(const SimgpuHostLaunch* launch, std::uint64_t address,
                              std::uint32_t words, bool write) {
    const std::size_t bytes = (words - 1) * kStepBytes + sizeof(std::uint64_t);
    return static_cast<const std::uint64_t*>(launch->span(launch, address, bytes, write ? 1 : 0));
}

constexpr std::size_t kStepWords = kStepBytes / sizeof(std::uint64_t);

/// As kernels.cu has it.
template <typename P>
void run(const SimgpuHostLaunch* launch) {
    const P& parameters = *static_cast<const P*>(launch->params);
    *launch->duration_ns = static_cast<double>(parameters.duration_ns);
    std::uint64_t sum = 0;
    for (int k = 0; k < P::kMostWritten + P::kMostRead; ++k) {
        if (parameters.addresses[k] == 0) continue;
        if (k < P::kMostWritten && parameters.read[k] == 0) continue;
        const auto* words = words_of(launch, parameters.addresses[k], parameters.words[k], false);
        for (std::uint32_t i = 0; words != nullptr && i < parameters.words[k]; ++i)
            sum += mix(words[i * kStepWords], std::uint64_t(k) << 32 | i);
    }
    for (int k = 0; k < P::kMostWritten; ++k) {
        if (parameters.addresses[k] == 0) continue;
        auto* words = const_cast<std::uint64_t*>(
            words_of(launch, parameters.addresses[k], parameters.words[k], true));
        for (std::uint32_t i = 0; words != nullptr && i < parameters.words[k]; ++i)
            words[i * kStepWords] = mix(sum, std::uint64_t(k) << 32 | i);
    }
}

}  // namespace

void register_simulated_kernels() {
    const auto add = reinterpret_cast<decltype(&::simgpuHostKernelRegisterWithoutData)>(
        ::dlsym(RTLD_DEFAULT, "simgpuHostKernelRegisterWithoutData"));
    if (add == nullptr) return;
    add(kFewName, &run<FewParameters>);
    add(kManyName, &run<ManyParameters>);
}

}  // namespace play
