// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/driver.hpp"

#include "runtime/log.hpp"

#include <atomic>
#include <cstring>

namespace libswap {
namespace {

enum class Need { Required, Optional };

struct Entry {
    const char* symbol;
    const char* older;
    Need need;
    std::size_t offset;
};

constexpr Entry kEntries[] = {
#define DRIVER_FUNCTION(symbol, need, older) {#symbol, older, Need::need, offsetof(Driver, symbol)},
#include "runtime/driver.def"
#undef DRIVER_FUNCTION
};
static_assert(sizeof(Driver) == std::size(kEntries) * sizeof(void*));

constinit Driver g_driver{};
constinit std::atomic<bool> g_exiting{false};

}  // namespace

Status load_driver(SymbolLookup lookup, void* context, Driver* out) noexcept {
    for (const Entry& entry : kEntries) {
        void* address = lookup(entry.symbol, context);
        if (!address && *entry.older) address = lookup(entry.older, context);
        if (!address && entry.need == Need::Required)
            return fail(CUDA_ERROR_NOT_FOUND, entry.symbol);
        std::memcpy(reinterpret_cast<char*>(out) + entry.offset, &address, sizeof address);
    }
    return {};
}

const Driver& driver() noexcept { return g_driver; }
void set_driver(const Driver& table) noexcept { g_driver = table; }

bool process_is_exiting() noexcept { return g_exiting.load(std::memory_order_relaxed); }
void note_process_exit() noexcept { g_exiting.store(true, std::memory_order_relaxed); }

const char* error_name(CUresult code) noexcept {
    if (code == CUDA_SUCCESS) return "CUDA_SUCCESS";
    const char* name = nullptr;
    // The names are constants of the driver: asking is safe even when it has shut down.
    if (g_driver.cuGetErrorName && g_driver.cuGetErrorName(code, &name) == CUDA_SUCCESS && name)
        return name;
    switch (code) {
        case CUDA_ERROR_INVALID_VALUE:
            return "CUDA_ERROR_INVALID_VALUE";
        case CUDA_ERROR_OUT_OF_MEMORY:
            return "CUDA_ERROR_OUT_OF_MEMORY";
        case CUDA_ERROR_NOT_INITIALIZED:
            return "CUDA_ERROR_NOT_INITIALIZED";
        case CUDA_ERROR_DEINITIALIZED:
            return "CUDA_ERROR_DEINITIALIZED";
        case CUDA_ERROR_NOT_FOUND:
            return "CUDA_ERROR_NOT_FOUND";
        case CUDA_ERROR_ILLEGAL_ADDRESS:
            return "CUDA_ERROR_ILLEGAL_ADDRESS";
        case CUDA_ERROR_NOT_SUPPORTED:
            return "CUDA_ERROR_NOT_SUPPORTED";
        default:
            return "an unnamed CUDA error";
    }
}

std::string_view call_name(std::string_view expression) noexcept {
    const std::size_t open = expression.find('(');
    if (open == std::string_view::npos) return expression;
    const std::string_view callee = expression.substr(0, open);
    const std::size_t last = callee.find_last_of(".>");
    return last == std::string_view::npos ? callee : callee.substr(last + 1);
}

namespace detail {
namespace {
void log_failure(CUresult code, const char* expression,
                 const std::source_location& where) noexcept {
    const char* slash = std::strrchr(where.file_name(), '/');
    LIBSWAP_LOG(Debug, "{} ({}) from {} ({}:{})", error_name(code), static_cast<int>(code),
                expression, slash ? slash + 1 : where.file_name(), where.line());
}
}  // namespace

Status check_driver_call(CUresult code, const char* expression,
                         std::source_location where) noexcept {
    if (code == CUDA_SUCCESS) return {};
    log_failure(code, expression, where);
    return fail(code, expression, where);
}

void ignore_driver_call(CUresult code, const char* expression,
                        std::source_location where) noexcept {
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_DEINITIALIZED)
        log_failure(code, expression, where);
}

}  // namespace detail
}  // namespace libswap
