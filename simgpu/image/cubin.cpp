// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A cubin is an ELF file. Kernel NAME is section .text.NAME; .nv.info.NAME holds its attributes as
// records (u8 format, u8 attribute, u16 value; format 4: the value counts the bytes that follow),
// and .nv.info those that name a function by symbol. Variables are symbols in .nv.global (zero),
// .nv.global.init and .nv.constant3; pointers in their initial data are relocations.

#include "simgpu/image/cubin.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "simgpu/image/fatbin.hpp"

namespace libswap::simgpu::image {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kMostSections = 1 << 20;
constexpr std::uint8_t kFormatSized = 4;

// Attributes of .nv.info records.
constexpr std::uint8_t kMaxThreads = 0x05;
constexpr std::uint8_t kFrameSize = 0x11;
constexpr std::uint8_t kParameter = 0x17;
constexpr std::uint8_t kParameterBytes = 0x19;
constexpr std::uint8_t kRegisters = 0x2f;
constexpr std::uint8_t kWideParameter = 0x45;

// More than any device takes: 32,764 bytes of parameters is the limit since CUDA 12.1.
constexpr std::uint32_t kLargestParameterBlock = 1 << 16;

tl::unexpected<ImageError> invalid(std::string reason) {
    return tl::make_unexpected(ImageError{CUDA_ERROR_INVALID_IMAGE, std::move(reason)});
}

struct Section {
    std::string_view name;
    Elf64_Shdr header;
    ByteView bytes;
};

struct Symbol {
    std::string_view name;
    Elf64_Sym entry;
};

struct Record {
    std::uint8_t attribute;
    std::uint16_t value;
    ByteView payload;
};

struct Elf {
    std::vector<Section> sections;
    std::vector<Symbol> symbols;
};

std::string_view after_prefix(std::string_view name, std::string_view prefix) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string_view{};
}

tl::expected<Elf64_Ehdr, ImageError> elf_header(ByteView cubin) {
    const auto header = cubin.read<Elf64_Ehdr>(0);
    if (!header || cubin.read<std::uint32_t>(0) != kElfMagic) {
        return invalid("not a cubin");
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != kMachineCuda) {
        return invalid("ELF file is not for a CUDA device");
    }
    if (header->e_shnum == 0 || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_shnum > kMostSections) {
        return invalid("cubin has no usable section table");
    }
    return *header;
}

bool has_bytes(const Elf64_Shdr& section) {
    return section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
}

tl::expected<std::vector<Section>, ImageError> read_sections(ByteView cubin,
                                                             const Elf64_Ehdr& header) {
    std::vector<Section> sections(header.e_shnum);
    for (std::size_t i = 0; i < sections.size(); ++i) {
        const auto raw = cubin.read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
        if (!raw) {
            return invalid("cubin is truncated inside its section table");
        }
        sections[i].header = *raw;
        if (!has_bytes(*raw)) {
            continue;
        }
        const auto bytes = cubin.part(raw->sh_offset, raw->sh_size);
        if (!bytes) {
            return invalid(
                fmt::format("cubin section {} ends outside of its {} bytes", i, cubin.size()));
        }
        sections[i].bytes = *bytes;
    }
    if (header.e_shstrndx >= sections.size()) {
        return invalid("cubin has no section names");
    }
    const ByteView names = sections[header.e_shstrndx].bytes;
    for (Section& section : sections) {
        section.name = names.text(section.header.sh_name);
    }
    return sections;
}

std::vector<Symbol> read_symbols(const std::vector<Section>& sections) {
    std::vector<Symbol> symbols;
    const auto table = std::find_if(sections.begin(), sections.end(), [](const Section& section) {
        return section.header.sh_type == SHT_SYMTAB;
    });
    if (table == sections.end() || table->header.sh_link >= sections.size()) {
        return symbols;
    }
    const ByteView names = sections[table->header.sh_link].bytes;
    for (std::uint64_t at = 0; auto entry = table->bytes.read<Elf64_Sym>(at);
         at += sizeof(Elf64_Sym)) {
        symbols.push_back({names.text(entry->st_name), *entry});
    }
    return symbols;
}

/// Calls `visit` for each whole record; false if the section ends inside one.
template <typename Visit>
bool for_each_record(ByteView info, Visit visit) {
    std::uint64_t at = 0;
    while (at < info.size()) {
        const auto format = info.read<std::uint8_t>(at);
        const auto attribute = info.read<std::uint8_t>(at + 1);
        const auto value = info.read<std::uint16_t>(at + 2);
        if (!value) {
            return false;
        }
        at += 4;
        ByteView payload;
        if (*format == kFormatSized) {
            const auto bytes = info.part(at, *value);
            if (!bytes) {
                return false;
            }
            payload = *bytes;
            at += *value;
        }
        visit(Record{*attribute, *value, payload});
    }
    return true;
}

void set_parameter(KernelInfo& kernel, const Record& record) {
    const auto ordinal = record.payload.read<std::uint16_t>(4);
    const auto offset = record.payload.read<std::uint16_t>(6);
    const auto packed = record.payload.read<std::uint32_t>(8);
    if (!packed || *ordinal >= kLargestParameterBlock / 4) {
        return;
    }
    // The wide form has flags above the size since sm_120.
    const std::uint32_t bytes = record.attribute == kParameter ? *packed >> 18 : *packed & 0xFFFFFF;
    if (*offset + std::uint64_t{bytes} > kLargestParameterBlock) {
        return;
    }
    if (kernel.parameters.size() <= *ordinal) {
        kernel.parameters.resize(*ordinal + std::size_t{1});
    }
    kernel.parameters[*ordinal] = {*offset, bytes};
    kernel.parameter_bytes = std::max(kernel.parameter_bytes, *offset + bytes);
}

void apply_record(KernelInfo& kernel, const Record& record) {
    switch (record.attribute) {
        case kParameter:
        case kWideParameter:
            set_parameter(kernel, record);
            break;
        case kParameterBytes:
            kernel.parameter_bytes = std::max<std::uint32_t>(kernel.parameter_bytes, record.value);
            break;
        case kMaxThreads: {
            const auto x = record.payload.read<std::uint32_t>(0);
            const auto y = record.payload.read<std::uint32_t>(4);
            const auto z = record.payload.read<std::uint32_t>(8);
            if (z) {
                const std::uint64_t threads = std::uint64_t{*x} * *y * *z;
                kernel.max_threads =
                    static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 1024));
            }
            break;
        }
        default:
            break;
    }
}

/// Kernels by name while they are being put together.
class KernelTable {
  public:
    explicit KernelTable(std::vector<KernelInfo>& kernels) : kernels_(kernels) {}

    KernelInfo* find(std::string_view name) {
        const auto found = std::lower_bound(
            kernels_.begin(), kernels_.end(), name,
            [](const KernelInfo& kernel, std::string_view wanted) { return kernel.name < wanted; });
        return found != kernels_.end() && found->name == name ? &*found : nullptr;
    }

  private:
    std::vector<KernelInfo>& kernels_;
};

/// A function is a kernel if the compiler made it an entry: it then has parameters' constant bank.
std::vector<KernelInfo> list_kernels(const Elf& elf) {
    std::vector<KernelInfo> kernels;
    for (const Section& section : elf.sections) {
        const std::string_view name = after_prefix(section.name, ".nv.constant0.");
        if (!name.empty()) {
            kernels.push_back({});
            kernels.back().name = name;
        }
    }
    std::sort(kernels.begin(), kernels.end(),
              [](const KernelInfo& a, const KernelInfo& b) { return a.name < b.name; });
    return kernels;
}

void read_sizes(const Elf& elf, KernelTable& table) {
    for (const Section& section : elf.sections) {
        if (const auto name = after_prefix(section.name, ".nv.shared."); !name.empty()) {
            if (KernelInfo* kernel = table.find(name)) {
                kernel->static_shared_bytes = static_cast<std::uint32_t>(section.header.sh_size);
            }
        }
    }
}

bool read_kernel_records(const Elf& elf, KernelTable& table) {
    for (const Section& section : elf.sections) {
        const std::string_view name = after_prefix(section.name, ".nv.info.");
        KernelInfo* kernel = name.empty() ? nullptr : table.find(name);
        if (kernel == nullptr) {
            continue;
        }
        if (!for_each_record(section.bytes,
                             [kernel](const Record& record) { apply_record(*kernel, record); })) {
            return false;
        }
    }
    return true;
}

bool read_common_records(const Elf& elf, KernelTable& table) {
    const auto apply = [&](const Record& record) {
        const auto symbol = record.payload.read<std::uint32_t>(0);
        const auto value = record.payload.read<std::uint32_t>(4);
        if (!value || *symbol >= elf.symbols.size()) {
            return;
        }
        KernelInfo* kernel = table.find(elf.symbols[*symbol].name);
        if (kernel == nullptr) {
            return;
        }
        if (record.attribute == kRegisters) {
            kernel->registers = *value;
        } else if (record.attribute == kFrameSize) {
            kernel->local_bytes = *value;
        }
    };
    for (const Section& section : elf.sections) {
        if (section.name == ".nv.info" && !for_each_record(section.bytes, apply)) {
            return false;
        }
    }
    return true;
}

bool holds_variables(std::string_view section) {
    return section == ".nv.global" || section == ".nv.global.init" || section == ".nv.constant3";
}

/// The symbol as a variable with its initial bytes, or nothing if it lies outside of its section.
std::optional<VariableInfo> variable_of(const Symbol& symbol, const Section& section) {
    VariableInfo variable;
    variable.name = symbol.name;
    variable.bytes = symbol.entry.st_size;
    variable.alignment = std::max<std::uint64_t>(section.header.sh_addralign, 1);
    variable.constant = section.name == ".nv.constant3";
    if (!has_bytes(section.header)) {
        return symbol.entry.st_size <= kLargestImageBytes ? std::optional(variable) : std::nullopt;
    }
    const auto bytes = section.bytes.part(symbol.entry.st_value, symbol.entry.st_size);
    if (!bytes) {
        return std::nullopt;
    }
    variable.initial.assign(bytes->span().begin(), bytes->span().end());
    return variable;
}

/// Pointers inside the initial data of `variable`, which starts at `start` of section `index`.
void add_relocations(const Elf& elf, std::size_t index, std::uint64_t start,
                     VariableInfo& variable) {
    for (const Section& section : elf.sections) {
        if (section.header.sh_type != SHT_RELA || section.header.sh_info != index) {
            continue;
        }
        for (std::uint64_t at = 0; auto entry = section.bytes.read<Elf64_Rela>(at);
             at += sizeof(Elf64_Rela)) {
            const std::uint64_t symbol = ELF64_R_SYM(entry->r_info);
            if (entry->r_offset < start || entry->r_offset - start >= variable.bytes ||
                symbol >= elf.symbols.size()) {
                continue;
            }
            variable.relocations.push_back(
                {entry->r_offset - start, std::string(elf.symbols[symbol].name), entry->r_addend});
        }
    }
}

bool read_variables(const Elf& elf, std::vector<VariableInfo>& variables) {
    for (const Symbol& symbol : elf.symbols) {
        const std::size_t index = symbol.entry.st_shndx;
        if (ELF64_ST_TYPE(symbol.entry.st_info) != STT_OBJECT || index >= elf.sections.size() ||
            symbol.name.empty() || !holds_variables(elf.sections[index].name)) {
            continue;
        }
        auto variable = variable_of(symbol, elf.sections[index]);
        if (!variable) {
            return false;
        }
        add_relocations(elf, index, symbol.entry.st_value, *variable);
        variables.push_back(std::move(*variable));
    }
    return true;
}

}  // namespace

tl::expected<std::uint64_t, ImageError> cubin_table_end(ByteView header_bytes) {
    const auto header = elf_header(header_bytes);
    if (!header) {
        return tl::make_unexpected(header.error());
    }
    const std::uint64_t sections = std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr);
    const std::uint64_t segments = std::uint64_t{header->e_phnum} * header->e_phentsize;
    if (header->e_shoff > kLargestImageBytes || header->e_phoff > kLargestImageBytes) {
        return invalid("cubin header tables lie at an absurd offset");
    }
    return std::max(
        {header->e_shoff + sections, header->e_phoff + segments, std::uint64_t{kElfHeaderBytes}});
}

tl::expected<std::uint64_t, ImageError> cubin_extent(ByteView tables) {
    auto end = cubin_table_end(tables);
    if (!end) {
        return end;
    }
    const auto header = *tables.read<Elf64_Ehdr>(0);
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
        const auto raw = tables.read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
        if (!raw) {
            return invalid("cubin is truncated inside its section table");
        }
        if (!has_bytes(*raw)) {
            continue;
        }
        if (raw->sh_offset > kLargestImageBytes || raw->sh_size > kLargestImageBytes) {
            return invalid(fmt::format("cubin section {} claims {} bytes at {}", i, raw->sh_size,
                                       raw->sh_offset));
        }
        *end = std::max(*end, raw->sh_offset + raw->sh_size);
    }
    return end;
}

std::uint32_t cubin_architecture(ByteView cubin) {
    const auto header = cubin.read<Elf64_Ehdr>(0);
    if (!header) {
        return 0;
    }
    // ABI 8 (CUDA 13) moved the architecture up by a byte.
    return header->e_ident[EI_ABIVERSION] >= 8 ? (header->e_flags >> 8) & 0xFF
                                               : header->e_flags & 0xFF;
}

tl::expected<Contents, ImageError> read_cubin(ByteView cubin) {
    const auto header = elf_header(cubin);
    if (!header) {
        return tl::make_unexpected(header.error());
    }
    try {
        auto sections = read_sections(cubin, *header);
        if (!sections) {
            return tl::make_unexpected(std::move(sections.error()));
        }
        Elf elf{std::move(*sections), {}};
        elf.symbols = read_symbols(elf.sections);
        Contents contents;
        contents.form = Form::Cubin;
        contents.architecture = cubin_architecture(cubin);
        contents.kernels = list_kernels(elf);
        KernelTable table(contents.kernels);
        read_sizes(elf, table);
        if (!read_kernel_records(elf, table) || !read_common_records(elf, table)) {
            return invalid("cubin attributes end inside a record");
        }
        if (!read_variables(elf, contents.variables)) {
            return invalid("cubin variable lies outside of its section");
        }
        return contents;
    } catch (const std::bad_alloc&) {
        return tl::make_unexpected(
            ImageError{CUDA_ERROR_OUT_OF_MEMORY, "no host memory to read a cubin"});
    }
}

}  // namespace libswap::simgpu::image
