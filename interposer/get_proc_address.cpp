// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/hook_call.hpp"

#include "interposer/get_proc_address.hpp"

#include "runtime/log.hpp"

#include <dlfcn.h>

namespace libswap {
namespace {

/// Among `candidate` and `best`, both of the wanted name: the one of the wanted stream flavour,
/// then the newest that the wanted version knows.
bool is_better(const HookInfo& candidate, const HookInfo* best, int version,
               bool per_thread) noexcept {
    if (candidate.version > version) return false;
    if (!best) return true;
    const bool candidate_fits = is_per_thread(candidate.name) == per_thread;
    const bool best_fits = is_per_thread(best->name) == per_thread;
    return candidate_fits != best_fits ? candidate_fits : candidate.version > best->version;
}

/// The hook of the family `symbol` that stands for a request; `only` restricts it to one driver
/// function. A version of 0 or below the first one is a request like any other that the driver
/// chose to answer.
Hook best_of_family(std::string_view symbol, int version, bool per_thread,
                    const void* only) noexcept {
    Hook best = Hook::kCount;
    for (const std::uint16_t index : find_family(symbol)) {
        const Hook hook = static_cast<Hook>(index);
        const HookInfo& info = hook_info(hook);
        if (only && driver_symbol(hook) != only) continue;
        if (is_better(info, best == Hook::kCount ? nullptr : &hook_info(best), version, per_thread))
            best = hook;
    }
    return best;
}

/// An address inside the driver that none of its exported names has.
bool is_unnamed(const void* function) noexcept {
    Dl_info info;
    return dladdr(function, &info) == 0 || info.dli_saddr != function;
}

/// A request of the program: the driver's answer, its function replaced by ours. One from inside a
/// hook is left alone.
template <class Real>
CUresult route_request(Hook hook, const Real& real, const char* symbol, void** function,
                       int version, std::uint64_t flags) noexcept {
    if (HookScope::is_active()) return real();
    count_call(hook);
    const CUresult result = real();
    if (result == CUDA_SUCCESS && function)
        *function = route_proc_address(symbol, *function, version, flags);
    return result;
}

}  // namespace

void* route_proc_address(const char* symbol, void* function, int version,
                         std::uint64_t flags) noexcept {
    if (!symbol || !function || find_family(symbol).empty()) return function;
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    // The driver's answer decides; names and versions only choose between functions that share an
    // address.
    Hook hook = best_of_family(symbol, version, per_thread, function);
    if (hook == Hook::kCount) hook = best_of_family(symbol, INT32_MAX, per_thread, function);
    if (hook != Hook::kCount) return hook_info(hook).address;

    const ElfImage image = image_of_address(function);
    if (image == own_image())
        return function;  // a driver that looked the name up in the global scope
    if (image == driver_image() && !is_unnamed(function)) return function;
    if (version > CUDA_VERSION) {
        LIBSWAP_LOG(Warning, "{} of CUDA {} is newer than this libswap, passing through", symbol,
                    version);
        return function;
    }
    hook = best_of_family(symbol, version, per_thread, nullptr);
    if (hook == Hook::kCount) return function;
    set_real_function(hook, function);
    return hook_info(hook).address;
}

}  // namespace libswap

// In both the driver answers first, and its result and status stay as they are.

extern "C" CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                     cuuint64_t flags) {
    using namespace libswap;
    const auto real = [=] {
        return real_function<decltype(&::cuGetProcAddress)>(Hook::cuGetProcAddress)(
            symbol, function, version, flags);
    };
    return route_request(Hook::cuGetProcAddress, real, symbol, function, version, flags);
}

extern "C" CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                        cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
    using namespace libswap;
    const auto real = [=] {
        return real_function<decltype(&::cuGetProcAddress_v2)>(Hook::cuGetProcAddress_v2)(
            symbol, function, version, flags, status);
    };
    return route_request(Hook::cuGetProcAddress_v2, real, symbol, function, version, flags);
}
