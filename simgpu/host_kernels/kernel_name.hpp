// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace simgpu {

/// A kernel's name taken apart. C++ says of a template's instance also what its parameters are.
struct KernelName {
    /// Demangled; the name itself where it is none of C++'s.
    std::string full;
    /// Without namespaces, template arguments and parameters: "reduce_kernel".
    std::string base;
    std::vector<std::string> template_arguments;
    /// Types of the parameters, empty where the name does not say them.
    std::vector<std::string> parameters;

    bool mentions(std::string_view text) const { return full.find(text) != std::string::npos; }
};

/// What stands between the bracket at `open` and the one that closes it; empty where there is none.
std::string_view inside_bracket(std::string_view text, std::size_t open);
/// A list cut at its outermost commas, without the blanks around its parts.
std::vector<std::string_view> split_list(std::string_view list);

/// @thread any
KernelName parse_kernel_name(const std::string& mangled);

}  // namespace simgpu
