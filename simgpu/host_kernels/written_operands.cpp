// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/written_operands.hpp"

#include <array>
#include <cstring>
#include <string_view>

namespace simgpu {
namespace {

enum class Writes : std::uint8_t {
    First,  ///< The first pointer.
    AllButFirst,
    ByType,  ///< Those whose parameter is a pointer to what is not const; in structs all.
};

struct Rule {
    std::string_view base;
    Writes writes;
    bool reads_written;
    /// The first parameter is an int that counts the elements.
    bool counts;
};

// TensorIterator's kernels have their output first; a reduction's struct its input.
constexpr std::array kRules{
    Rule{"vectorized_elementwise_kernel", Writes::First, false, true},
    Rule{"unrolled_elementwise_kernel", Writes::First, false, true},
    Rule{"elementwise_kernel", Writes::First, false, true},
    Rule{"elementwise_kernel_with_index", Writes::First, false, true},
    Rule{"index_elementwise_kernel", Writes::First, false, true},
    Rule{"reduce_kernel", Writes::AllButFirst, true, false},
    Rule{"CatArrayBatchedCopy", Writes::First, false, false},
    Rule{"CatArrayBatchedCopy_contig", Writes::First, false, false},
    Rule{"CatArrayBatchedCopy_aligned16_contig", Writes::First, false, false},
    Rule{"CatArrayBatchedCopy_alignedK_contig", Writes::First, false, false},
    Rule{"CatArrayBatchedCopy_vectorized", Writes::First, false, false},
};

const Rule* find_rule(const KernelName& name) {
    for (const Rule& rule : kRules) {
        if (rule.base == name.base) return &rule;
    }
    return nullptr;
}

FillType fill_type(const KernelName& name) {
    // In a name with several types the narrowest wins: filling too little spares the neighbours.
    if (name.mentions("<bool") || name.mentions("unsigned char") || name.mentions("signed char"))
        return FillType::Byte;
    if (name.mentions("c10::Half") || name.mentions("__half") || name.mentions("half_t"))
        return FillType::Half;
    if (name.mentions("c10::BFloat16") || name.mentions("bfloat16")) return FillType::BFloat;
    if (name.mentions("float")) return FillType::Float;
    if (name.mentions("double")) return FillType::Double;
    if (name.mentions("long>") || name.mentions("long*") || name.mentions("<long"))
        return FillType::Long;
    return name.mentions("int*") ? FillType::Integer : FillType::Float;
}

std::uint32_t widest_bytes(const KernelName& name) {
    if (name.mentions("complex<double>")) return 16;
    if (name.mentions("double") || name.mentions("long") || name.mentions("complex<")) return 8;
    // Numbers of elements are int, in every name.
    if (name.mentions("float") || bytes_of(fill_type(name)) == 4) return 4;
    return name.mentions("Half") || name.mentions("BFloat16") || name.mentions("short") ? 2 : 1;
}

bool may_write(std::string_view type) {
    const std::size_t star = type.rfind('*');
    if (star == std::string_view::npos) {
        // TensorInfo<float const, int>: a tensor that is only read.
        const auto arguments = split_list(inside_bracket(type, type.find('<')));
        return arguments.empty() || !arguments[0].ends_with(" const");
    }
    return type.substr(0, star).rfind("const") == std::string_view::npos;
}

}  // namespace

std::uint32_t bytes_of(FillType type) {
    switch (type) {
        case FillType::Byte:
            return 1;
        case FillType::Half:
        case FillType::BFloat:
            return 2;
        case FillType::Double:
        case FillType::Long:
            return 8;
        case FillType::Float:
        case FillType::Integer:
            break;
    }
    return 4;
}

WrittenOperands written_operands(const KernelName& name, std::span<const PointerWord> pointers,
                                 std::span<const std::span<const std::byte>> parameters) {
    WrittenOperands result;
    result.type = fill_type(name);
    result.widest_bytes = widest_bytes(name);
    const Rule* rule = find_rule(name);
    const Writes writes = rule != nullptr ? rule->writes : Writes::ByType;
    result.reads_written = rule == nullptr || rule->reads_written;
    for (std::size_t i = 0; i < pointers.size(); ++i) {
        const std::uint32_t parameter = pointers[i].parameter;
        const bool typed = parameter < name.parameters.size();
        bool written = true;
        if (writes == Writes::First) written = i == 0;
        if (writes == Writes::AllButFirst) written = i != 0;
        if (writes == Writes::ByType && typed) written = may_write(name.parameters[parameter]);
        result.written.push_back(written);
    }
    if (rule != nullptr && rule->counts && !parameters.empty() && parameters[0].size() == 4) {
        std::uint32_t elements = 0;
        std::memcpy(&elements, parameters[0].data(), sizeof(elements));
        result.elements = elements;
    }
    return result;
}

}  // namespace simgpu
