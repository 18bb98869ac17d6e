// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/torch_environment.hpp"

#include "interposer/elf_image.hpp"
#include "runtime/log.hpp"
#include "runtime/torch_allocator.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace libswap {
namespace {

using Getenv = char* (*)(const char*);

constinit std::atomic<const char*> g_told{nullptr};
constinit std::atomic<bool> g_is_expandable{false};

/// For a libc whose function is not found: a program must never lose its environment to us.
char* look_up_variable(const char* name) noexcept {
    const std::size_t length = std::strlen(name);
    for (char** entry = environ; entry && *entry; ++entry)
        if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return nullptr;
}

/// libc's. Not by a look-up of the loader's: programs ask from within their own allocators.
char* real_getenv(const char* name) noexcept {
    static constinit std::atomic<Getenv> known{nullptr};
    Getenv real = known.load(std::memory_order_relaxed);
    if (!real) {
        real = reinterpret_cast<Getenv>(libc_image().symbol("getenv"));
        known.store(real, std::memory_order_relaxed);
    }
    return real ? real(name) : look_up_variable(name);
}

char* answer_torch(const char* name, char* value) noexcept {
    if (value) {
        if (has_expandable_segments(value)) g_is_expandable.store(true, std::memory_order_relaxed);
        return value;
    }
    try {
        const char* answer = torch_answer(
            name, [](const char* variable, void*) -> const char* { return real_getenv(variable); },
            nullptr);
        if (answer) g_told.store(answer, std::memory_order_relaxed);
        return const_cast<char*>(answer);  // getenv's callers must not write to it either
    } catch (...) {
        return nullptr;  // no memory: as without us
    }
}

}  // namespace

void report_torch_environment() noexcept {
    if (const char* told = g_told.load(std::memory_order_relaxed))
        LIBSWAP_LOG(Info, "PyTorch's allocator was told {}", told);
    if (g_is_expandable.load(std::memory_order_relaxed))
        LIBSWAP_LOG(Warning,
                    "PyTorch's expandable_segments:True takes memory past libswap: "
                    "it counts against the budget, and is not swapped");
}

}  // namespace libswap

extern "C" [[gnu::visibility("default")]] char* getenv(const char* name) noexcept {
    using namespace libswap;
    char* const value = real_getenv(name);
    constexpr char kPrefix[] = "PYTORCH_";
    const bool may_be_torch = std::strncmp(name, kPrefix, sizeof kPrefix - 1) == 0;
    return may_be_torch && is_torch_variable(name) ? answer_torch(name, value) : value;
}
