// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/torch_lives.hpp"

#include "interposer/elf_image.hpp"
#include "interposer/hook_time.hpp"
#include "interposer/process.hpp"
#include "runtime/engine.hpp"

#include <atomic>
#include <cstring>

namespace libswap {
namespace {

constexpr std::int8_t kCudaDevice = 1;
constexpr char kReportName[] = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

using MemoryReport = decltype(&c10::reportMemoryUsageToProfiler);

bool is_c10(const ElfImage& image) { return std::strcmp(image.soname(), "libc10.so") == 0; }

/// PyTorch's own. It is loaded, or nobody would call.
MemoryReport real_report() noexcept {
    static constinit std::atomic<MemoryReport> known{nullptr};
    MemoryReport real = known.load(std::memory_order_relaxed);
    if (real) return real;
    if (const ElfImage image = find_image(is_c10))
        real = reinterpret_cast<MemoryReport>(image.symbol(kReportName));
    known.store(real, std::memory_order_relaxed);
    return real;
}

void note_change(std::uint64_t address, std::int64_t change) noexcept {
    Engine* const engine = active_engine();
    if (!engine) return;
    const HookTimer timer;
    if (change > 0)
        engine->content_begins(address, static_cast<std::size_t>(change));
    else if (change < 0)
        engine->content_ends(address, static_cast<std::size_t>(-change));
}

}  // namespace
}  // namespace libswap

[[gnu::visibility("default")]] void c10::reportMemoryUsageToProfiler(void* address,
                                                                     std::int64_t change,
                                                                     std::size_t allocated,
                                                                     std::size_t reserved,
                                                                     c10::Device device) {
    if (device.type == libswap::kCudaDevice)
        libswap::note_change(reinterpret_cast<std::uintptr_t>(address), change);
    if (const libswap::MemoryReport real = libswap::real_report())
        real(address, change, allocated, reserved, device);
}
