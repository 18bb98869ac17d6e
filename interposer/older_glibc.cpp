// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>

// The static C++ runtime of Debian 12 asks libc for two functions that came after glibc 2.34. Own
// ones, hidden in the library, let it load into containers with an older libc: otherwise every
// program there, preloaded, would end with "version GLIBC_2.36 not found".

extern "C" {

/// For std::random_device, which nothing here uses.
[[gnu::visibility("hidden")]] std::uint32_t arc4random() {
    std::uint32_t value = 0;
    while (getrandom(&value, sizeof value, 0) != sizeof value) {
    }
    return value;
}

/// What struct dl_find_object of glibc 2.35 has; declared here, as older headers lack it.
struct LibswapFoundObject {
    unsigned long long flags;
    void* map_start;
    void* map_end;
    link_map* map;
    void* eh_frame;
    unsigned long long reserved[7];
};

/// For the unwinder: the object around `pc` and its table of frames.
[[gnu::visibility("hidden")]] int libswap_find_object(void* pc, LibswapFoundObject* result) asm(
    "_dl_find_object");

int libswap_find_object(void* pc, LibswapFoundObject* result) {
    struct Search {
        ElfW(Addr) pc;
        LibswapFoundObject* result;
    } search{reinterpret_cast<ElfW(Addr)>(pc), result};
    const int found = dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* context) {
            auto& state = *static_cast<Search*>(context);
            ElfW(Addr) start = ~ElfW(Addr){0}, end = 0, frames = 0;
            bool holds_pc = false;
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const ElfW(Phdr)& header = info->dlpi_phdr[i];
                const ElfW(Addr) first = info->dlpi_addr + header.p_vaddr;
                const ElfW(Addr) last = first + header.p_memsz;
                if (header.p_type == PT_GNU_EH_FRAME) frames = first;
                if (header.p_type != PT_LOAD) continue;
                start = first < start ? first : start;
                end = last > end ? last : end;
                holds_pc = holds_pc || (first <= state.pc && state.pc < last);
            }
            if (!holds_pc || !frames) return 0;
            *state.result = {0,       reinterpret_cast<void*>(start),  reinterpret_cast<void*>(end),
                             nullptr, reinterpret_cast<void*>(frames), {}};
            return 1;
        },
        &search);
    return found ? 0 : -1;
}
}
