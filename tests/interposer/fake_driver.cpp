// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "fake_driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

// FAKE_NEWEST is the CUDA version of the driver: newer functions do not exist in it.

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Api {
    const char* name;
    const char* base;
    int version;
    bool per_thread;
};

constexpr Api kApi[] = {
#define SIMGPU_API(name, base, version, per_thread) {#name, #base, version, per_thread},
#include "simgpu/driver/api.def"
#undef SIMGPU_API
};
constexpr std::size_t kApiCount = std::size(kApi);

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) constinit std::uint64_t fake_counts[kApiCount] = {};
__attribute__((visibility("hidden"))) constinit std::atomic<int> fake_result{0};
__attribute__((visibility("hidden"))) extern void* const fake_functions[kApiCount];
}

// Every function: count, then the special implementation if there is one (a weak symbol), else the
// set result.
__asm__(R"(
    .pushsection .text
    .set fake_index, 0
    .macro fake_function name, version
    .if \version <= )" FAKE_NEWEST_TEXT R"(
    .globl \name
    .type \name, @function
\name:
    lock incq fake_counts+8*fake_index(%rip)
    movq fake_specials+8*fake_index(%rip), %rax
    testq %rax, %rax
    jz 1f
    jmpq *%rax
1:  movl fake_result(%rip), %eax
    ret
    .size \name, . - \name
    .pushsection .data.rel.ro, "aw"
    .quad \name
    .popsection
    .else
    .pushsection .data.rel.ro, "aw"
    .quad 0
    .popsection
    .endif
    .weak fake_\name
    .hidden fake_\name
    .pushsection .data.rel.ro.specials, "aw"
    .quad fake_\name
    .popsection
    .set fake_index, fake_index + 1
    .endm
    .pushsection .data.rel.ro, "aw"
    .p2align 3
    .globl fake_functions
    .hidden fake_functions
fake_functions:
    .popsection
    .pushsection .data.rel.ro.specials, "aw"
    .p2align 3
fake_specials:
    .popsection
)");
#define SIMGPU_API(name, base, version, per_thread) \
    __asm__("    fake_function " #name ", " #version);
#include "simgpu/driver/api.def"
#undef SIMGPU_API
__asm__("    .popsection");

namespace {

std::size_t index_of(const char* name) {
    for (std::size_t i = 0; i < kApiCount; ++i)
        if (std::strcmp(kApi[i].name, name) == 0) return i;
    return kApiCount;
}

struct Answer {
    char symbol[64];
    void* address;
};
Answer g_answers[8];

struct Request {
    char text[96];
    const void* caller;
};
Request g_requests[4096];
std::atomic<unsigned long> g_request_count{0};

void note_request(const char* symbol, int version, std::uint64_t flags, const void* caller) {
    const unsigned long index = g_request_count.fetch_add(1);
    if (index >= std::size(g_requests)) return;
    std::snprintf(g_requests[index].text, sizeof g_requests[index].text, "%s ver=%d flags=%lu",
                  symbol, version, static_cast<unsigned long>(flags));
    g_requests[index].caller = caller;
}

constexpr int kNotFound = 500;
enum Status { kFound = 0, kSymbolNotFound = 1, kVersionNotSufficient = 2 };

/// As the vendor's documentation has it: the newest signature that `version` knows, of the stream
/// flavour asked for where that exists.
int look_up(const char* symbol, void** function, int version, std::uint64_t flags, int* status) {
    *function = nullptr;
    for (const Answer& answer : g_answers) {
        if (!answer.address || std::strcmp(answer.symbol, symbol) != 0) continue;
        *function = answer.address;
        if (status) *status = kFound;
        return 0;
    }
    std::size_t best = kApiCount;
    bool exists = false;
    for (std::size_t i = 0; i < kApiCount; ++i) {
        if (std::strcmp(kApi[i].base, symbol) != 0 || !fake_functions[i]) continue;
        exists = true;
        if (kApi[i].version > version || (kApi[i].per_thread && !(flags & 2))) continue;
        if (best == kApiCount || kApi[i].per_thread > kApi[best].per_thread ||
            (kApi[i].per_thread == kApi[best].per_thread && kApi[i].version > kApi[best].version))
            best = i;
    }
    if (status)
        *status = best != kApiCount ? kFound : exists ? kVersionNotSufficient : kSymbolNotFound;
    if (best == kApiCount) return kNotFound;
    *function = fake_functions[best];
    return 0;
}

std::atomic<std::uint64_t> g_next_address{0x700000000000};

void call_back() {
    using Version = int (*)(int*);
    using Ask = int (*)(const char*, void**, int, std::uint64_t, int*);
    void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int version = 0;
    void* function = nullptr;
    for (int i = 0; i < 1000; ++i) {
        const auto get = reinterpret_cast<Version>(dlsym(self, "cuDriverGetVersion"));
        const auto ask = reinterpret_cast<Ask>(dlsym(self, "cuGetProcAddress_v2"));
        if (!get || !ask || get(&version) != 0 ||
            ask("cuMemAlloc", &function, 12000, 0, nullptr) != 0)
            fake_result = 999;
    }
}

}  // namespace

extern "C" {

int fake_cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
    note_request(symbol, version, flags, __builtin_return_address(0));
    return look_up(symbol, function, version, flags, nullptr);
}

int fake_cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                             int* status) {
    note_request(symbol, version, flags, __builtin_return_address(0));
    return look_up(symbol, function, version, flags, status);
}

/// With FAKE_DEINIT set, everything returns CUDA_ERROR_DEINITIALIZED once the driver's exit handler
/// has run.
/// With FAKE_CALLS_BACK set, it looks its own functions up and calls them, from a thread of its own
/// that it waits for, and from this one.
int fake_cuInit(unsigned) {
    if (std::getenv("FAKE_CALLS_BACK")) {
        std::thread(&call_back).join();
        call_back();
    }
    if (std::getenv("FAKE_DEINIT")) std::atexit([] { fake_result = 4; });
    return fake_result;
}

int fake_cuDriverGetVersion(int* version) {
    *version = FAKE_NEWEST;
    return 0;
}

int fake_cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
    if (fake_result != 0) return fake_result;
    *address = g_next_address.fetch_add((bytes + 511) & ~std::size_t{511});
    return 0;
}

int fake_cuDeviceGetCount(int* count) {
    *count = 0;
    return 0;
}

/// The vendor's own runtime asks for private tables, which a test has no use for.
int fake_cuGetExportTable(const void** table, const void*) {
    *table = nullptr;
    return kNotFound;
}
}

FAKE_EXPORT unsigned long fake_calls(const char* name) {
    const std::size_t index = index_of(name);
    return index == kApiCount ? 0 : std::atomic_ref(fake_counts[index]).load();
}

FAKE_EXPORT void* fake_address(const char* name) {
    const std::size_t index = index_of(name);
    return index == kApiCount ? nullptr : fake_functions[index];
}

FAKE_EXPORT void fake_set_result(int result) { fake_result = result; }

FAKE_EXPORT void fake_answer(const char* symbol, void* address) {
    for (Answer& answer : g_answers) {
        if (answer.address && std::strcmp(answer.symbol, symbol) != 0) continue;
        std::snprintf(answer.symbol, sizeof answer.symbol, "%s", symbol);
        answer.address = address;
        return;
    }
}

FAKE_EXPORT unsigned long fake_request_count() { return g_request_count; }
FAKE_EXPORT const char* fake_request(unsigned long index) { return g_requests[index].text; }
FAKE_EXPORT int fake_request_came_from(unsigned long index, const char* part) {
    Dl_info info;
    return dladdr(g_requests[index].caller, &info) != 0 &&
           std::strstr(info.dli_fname, part) != nullptr;
}
