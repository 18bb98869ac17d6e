// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Stands before simgpu's libcupti, by its name: passes every call on, and counts those that switch
// something, and those of them that come while the program has a capture open (its variable
// `capture_is_open`). Says the two numbers at exit.

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// Found in the library's own table: by dlsym() a program would ask for it, and libswap would make
/// way for that program's profiler.
void* real(const char* name) {
    static void* const library = dlopen(std::getenv("REAL_CUPTI"), RTLD_NOW | RTLD_LOCAL);
    link_map* map = nullptr;
    if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) std::abort();
    const ElfW(Sym)* symbols = nullptr;
    const char* names = nullptr;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    }
    // The names follow the symbols.
    for (const ElfW(Sym)* symbol = symbols; reinterpret_cast<const char*>(symbol) < names; ++symbol)
        if (symbol->st_value != 0 && std::strcmp(names + symbol->st_name, name) == 0)
            return reinterpret_cast<void*>(map->l_addr + symbol->st_value);
    std::abort();
}

struct Counts {
    std::atomic<int> switches{0};
    std::atomic<int> in_captures{0};
    ~Counts() {
        std::fprintf(stderr, "watched: %d switched, %d in captures\n", switches.load(),
                     in_captures.load());
    }
};
Counts counts;

void note_switch() {
    ++counts.switches;
    const auto* open = static_cast<const int*>(dlsym(RTLD_DEFAULT, "capture_is_open"));
    if (open != nullptr && *open != 0) ++counts.in_captures;
}

}  // namespace

#define PASS(name, parameters, arguments)                                   \
    extern "C" __attribute__((visibility("default"))) int name parameters { \
        using Function = int(*) parameters;                                 \
        return reinterpret_cast<Function>(real(#name)) arguments;           \
    }
#define SWITCH(name, parameters, arguments)                                 \
    extern "C" __attribute__((visibility("default"))) int name parameters { \
        using Function = int(*) parameters;                                 \
        note_switch();                                                      \
        return reinterpret_cast<Function>(real(#name)) arguments;           \
    }

PASS(cuptiGetVersion, (std::uint32_t * version), (version))
SWITCH(cuptiSubscribe, (void** subscriber, void* callback, void* data),
       (subscriber, callback, data))
SWITCH(cuptiUnsubscribe, (void* subscriber), (subscriber))
SWITCH(cuptiActivityEnable, (std::uint32_t kind), (kind))
SWITCH(cuptiActivityDisable, (std::uint32_t kind), (kind))
SWITCH(cuptiActivityEnableDriverApi, (std::uint32_t call, std::uint8_t enable), (call, enable))
SWITCH(cuptiFinalize, (), ())
PASS(cuptiActivityRegisterCallbacks, (void* request, void* complete), (request, complete))
PASS(cuptiActivityFlushAll, (std::uint32_t flag), (flag))
PASS(cuptiActivityGetNextRecord, (std::uint8_t * buffer, std::size_t bytes, void** record),
     (buffer, bytes, record))
PASS(cuptiActivityPushExternalCorrelationId, (std::uint32_t kind, std::uint64_t id), (kind, id))
PASS(cuptiActivityPopExternalCorrelationId, (std::uint32_t kind, std::uint64_t* id), (kind, id))
