// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/real_driver.hpp"

#include "interposer/dlsym_route.hpp"

#include <dlfcn.h>

#include <atomic>

namespace libswap {
namespace {

// No lock: threads that fill the table at the same time write the same values, and a program that
// looks names up in two drivers at the same time settles it by the one on which it calls cuInit.
constinit std::atomic<const ElfW(Dyn)*> g_driver_dynamic{nullptr};
constinit std::atomic<ElfW(Addr)> g_driver_base{0};
constinit std::atomic<bool> g_settled{false};
constinit std::atomic<void*> g_driver_symbols[kHookCount] = {};

/// Interposers export some of a driver's names; only a driver exports these.
bool is_driver(const ElfImage& image) noexcept {
    return image && image.symbol("cuInit") && image.symbol("cuDriverGetVersion") &&
           image.symbol("cuMemAlloc_v2") && image.symbol("cuGetExportTable") &&
           !(image == own_image());
}

/// Whether the tables are those of `image`: another library may lie where a closed driver was.
bool has_tables_of(const ElfImage& image) noexcept {
    for (const Hook hook : {Hook::cuInit, Hook::cuMemAlloc_v2, Hook::cuLaunchKernel})
        if (image.symbol(hook_info(hook).name) != driver_symbol(hook)) return false;
    return true;
}

void store_real(Hook hook, void* function) noexcept {
    std::atomic_ref(libswap_real_functions[static_cast<std::size_t>(hook)])
        .store(function, std::memory_order_release);
}

void fill_tables(const ElfImage& driver) noexcept {
    // Where the driver is in the global scope, libraries interposed between us and it keep their
    // place.
    void* in_scope = real_dlsym(RTLD_NEXT, "cuDriverGetVersion");
    const bool is_global = in_scope && image_of_address(in_scope) == driver;
    for (unsigned i = 0; i < kHookCount; ++i) {
        const Hook hook = static_cast<Hook>(i);
        void* symbol = driver.symbol(hook_info(hook).name);
        void* next = symbol && is_global ? real_dlsym(RTLD_NEXT, hook_info(hook).name) : nullptr;
        g_driver_symbols[i].store(symbol, std::memory_order_relaxed);
        store_real(hook, next ? next : symbol);
    }
}

void adopt(const ElfImage& driver) noexcept {
    fill_tables(driver);
    g_driver_base.store(driver.base, std::memory_order_relaxed);
    g_driver_dynamic.store(driver.dynamic, std::memory_order_release);
}

}  // namespace

ElfImage driver_image() noexcept {
    const ElfW(Dyn)* dynamic = g_driver_dynamic.load(std::memory_order_acquire);
    return {g_driver_base.load(std::memory_order_relaxed), dynamic};
}

bool follow_driver(const ElfImage& image) noexcept {
    const bool settled = g_settled.load(std::memory_order_acquire);
    if (image == driver_image() && (settled || has_tables_of(image))) return true;
    if (settled || !is_driver(image)) return false;
    adopt(image);
    return true;
}

void adopt_driver_in_scope(const char* name) noexcept {
    if (driver_image()) return;
    if (void* symbol = real_dlsym(RTLD_NEXT, name)) follow_driver(image_of_address(symbol));
    if (driver_image()) return;
    // The next definition is another interposer's, or the driver is in the scope of the caller
    // alone.
    if (void* symbol = real_dlsym(RTLD_NEXT, "cuDriverGetVersion"))
        follow_driver(image_of_address(symbol));
    if (!driver_image()) follow_driver(find_image(is_driver));
}

void drop_closed_driver() noexcept {
    const ElfImage driver = driver_image();
    if (!driver || g_settled.load(std::memory_order_acquire)) return;
    const ElfImage there = image_of_address(driver.dynamic);  // what is mapped now, if anything
    if (there == driver && has_tables_of(there)) return;
    g_driver_dynamic.store(nullptr, std::memory_order_release);
    for (unsigned i = 0; i < kHookCount; ++i) {
        g_driver_symbols[i].store(nullptr, std::memory_order_relaxed);
        store_real(static_cast<Hook>(i), nullptr);
    }
}

void settle_driver() noexcept { g_settled.store(true, std::memory_order_release); }

void* driver_symbol(Hook hook) noexcept {
    return g_driver_symbols[static_cast<std::size_t>(hook)].load(std::memory_order_relaxed);
}

void set_real_function(Hook hook, void* function) noexcept { store_real(hook, function); }

void* real_function_or_null(Hook hook) noexcept {
    const unsigned index = static_cast<unsigned>(hook);
    void* function = std::atomic_ref(libswap_real_functions[index]).load(std::memory_order_acquire);
    return function ? function : libswap_resolve_real(index);
}

}  // namespace libswap

void* libswap_resolve_real(unsigned hook) {
    using namespace libswap;
    if (!driver_image()) adopt_driver_in_scope(hook_info(static_cast<Hook>(hook)).name);
    return std::atomic_ref(libswap_real_functions[hook]).load(std::memory_order_acquire);
}
