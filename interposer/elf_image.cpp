// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/elf_image.hpp"

#include <dlfcn.h>

#include <cstdint>

// Compiled without sanitizers and free of library calls on the way to libc_image(): the first dlsym
// of a process may come from a sanitizer's runtime that has not set itself up.

namespace libswap {
namespace {

bool equal(const char* a, const char* b) noexcept {
    while (*a && *a == *b) ++a, ++b;
    return *a == *b;
}

/// What the dynamic section says, with addresses of this process.
struct DynamicTables {
    const ElfW(Sym) * symbols = nullptr;
    const char* strings = nullptr;
    const ElfW(Versym) * versions = nullptr;
    const std::uint32_t* gnu_hash = nullptr;
    const std::uint32_t* sysv_hash = nullptr;
    std::uint64_t soname = ~std::uint64_t{0};
};

DynamicTables read_dynamic(const ElfImage& image) noexcept {
    DynamicTables tables;
    // glibc writes absolute addresses into the section on most architectures; where it is read-only
    // they are offsets.
    const auto at = [&](ElfW(Addr) value) {
        return value < image.base ? value + image.base : value;
    };
    for (const ElfW(Dyn)* entry = image.dynamic; entry->d_tag != DT_NULL; ++entry) {
        const ElfW(Addr) value = entry->d_un.d_ptr;
        switch (entry->d_tag) {
            case DT_SYMTAB:
                tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at(value));
                break;
            case DT_STRTAB:
                tables.strings = reinterpret_cast<const char*>(at(value));
                break;
            case DT_VERSYM:
                tables.versions = reinterpret_cast<const ElfW(Versym)*>(at(value));
                break;
            case DT_GNU_HASH:
                tables.gnu_hash = reinterpret_cast<const std::uint32_t*>(at(value));
                break;
            case DT_HASH:
                tables.sysv_hash = reinterpret_cast<const std::uint32_t*>(at(value));
                break;
            case DT_SONAME:
                tables.soname = entry->d_un.d_val;
                break;
            default:
                break;
        }
    }
    return tables;
}

bool matches(const DynamicTables& tables, std::uint32_t index, const char* name) noexcept {
    constexpr ElfW(Versym) kHiddenVersion = 0x8000;
    const ElfW(Sym)& symbol = tables.symbols[index];
    const int type = ELF64_ST_TYPE(symbol.st_info);
    return symbol.st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE) &&
           (!tables.versions || !(tables.versions[index] & kHiddenVersion)) &&
           equal(tables.strings + symbol.st_name, name);
}

const ElfW(Sym) * find_by_gnu_hash(const DynamicTables& tables, const char* name) noexcept {
    std::uint32_t hash = 5381;
    for (const char* c = name; *c; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    const std::uint32_t bucket_count = tables.gnu_hash[0];
    const std::uint32_t first_symbol = tables.gnu_hash[1];
    const std::uint32_t bloom_words = tables.gnu_hash[2];
    const std::uint32_t bloom_shift = tables.gnu_hash[3];
    if (bucket_count == 0 || bloom_words == 0) return nullptr;
    const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4);
    const auto* buckets = reinterpret_cast<const std::uint32_t*>(bloom + bloom_words);
    const std::uint32_t* chain = buckets + bucket_count;
    constexpr std::uint32_t kWordBits = sizeof(ElfW(Addr)) * 8;
    const ElfW(Addr) word = bloom[(hash / kWordBits) % bloom_words];
    const ElfW(Addr) mask = (ElfW(Addr){1} << (hash % kWordBits)) |
                            (ElfW(Addr){1} << ((hash >> bloom_shift) % kWordBits));
    if ((word & mask) != mask) return nullptr;
    std::uint32_t index = buckets[hash % bucket_count];
    if (index < first_symbol) return nullptr;
    for (;; ++index) {
        const std::uint32_t entry = chain[index - first_symbol];
        if (((entry ^ hash) & ~1U) == 0 && matches(tables, index, name))
            return &tables.symbols[index];
        if (entry & 1U) return nullptr;
    }
}

const ElfW(Sym) * find_by_sysv_hash(const DynamicTables& tables, const char* name) noexcept {
    std::uint32_t hash = 0;
    for (const char* c = name; *c; ++c) {
        hash = (hash << 4) + static_cast<unsigned char>(*c);
        const std::uint32_t high = hash & 0xf0000000U;
        hash = (hash ^ (high >> 24)) & ~high;
    }
    const std::uint32_t bucket_count = tables.sysv_hash[0];
    const std::uint32_t* buckets = tables.sysv_hash + 2;
    const std::uint32_t* chain = buckets + bucket_count;
    if (bucket_count == 0) return nullptr;
    for (std::uint32_t index = buckets[hash % bucket_count]; index != STN_UNDEF;
         index = chain[index])
        if (matches(tables, index, name)) return &tables.symbols[index];
    return nullptr;
}

ElfImage image_of(const link_map* map) noexcept { return {map->l_addr, map->l_ld}; }

}  // namespace

void* ElfImage::symbol(const char* name) const noexcept {
    if (!dynamic) return nullptr;
    const DynamicTables tables = read_dynamic(*this);
    if (!tables.symbols || !tables.strings) return nullptr;
    const ElfW(Sym)* found = tables.gnu_hash    ? find_by_gnu_hash(tables, name)
                             : tables.sysv_hash ? find_by_sysv_hash(tables, name)
                                                : nullptr;
    return found ? reinterpret_cast<void*>(base + found->st_value) : nullptr;
}

const char* ElfImage::soname() const noexcept {
    if (!dynamic) return "";
    const DynamicTables tables = read_dynamic(*this);
    return tables.strings && tables.soname != ~std::uint64_t{0} ? tables.strings + tables.soname
                                                                : "";
}

ElfImage image_of_address(const void* address) noexcept {
    Dl_info info;
    void* map = nullptr;
    if (!dladdr1(address, &info, &map, RTLD_DL_LINKMAP) || !map) return {};
    return image_of(static_cast<const link_map*>(map));
}

ElfImage own_image() noexcept {
    // The linker's own symbols for this object: no look-up at all.
    extern const ElfW(Dyn) dynamic_section[] __asm__("_DYNAMIC")
        __attribute__((visibility("hidden")));
    extern const char object_start[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
    return {reinterpret_cast<ElfW(Addr)>(object_start), dynamic_section};
}

ElfImage libc_image() noexcept {
    for (const link_map* map = _r_debug.r_map; map; map = map->l_next)
        if (map->l_ld && equal(image_of(map).soname(), "libc.so.6")) return image_of(map);
    return {};
}

ElfImage find_image(bool (*accept)(const ElfImage&)) noexcept {
    struct Search {
        bool (*accept)(const ElfImage&);
        ElfImage own;
        ElfImage found;
    } search{accept, own_image(), {}};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* context) {
            auto& state = *static_cast<Search*>(context);
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
                const ElfImage image{info->dlpi_addr,
                                     reinterpret_cast<const ElfW(Dyn)*>(
                                         info->dlpi_addr + info->dlpi_phdr[i].p_vaddr)};
                if (image == state.own || !state.accept(image)) continue;
                state.found = image;
                return 1;
            }
            return 0;
        },
        &search);
    return search.found;
}

}  // namespace libswap
