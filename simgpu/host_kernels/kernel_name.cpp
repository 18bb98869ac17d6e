// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/kernel_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace simgpu {
namespace {

std::string demangle(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

bool opens(char c) { return c == '<' || c == '(' || c == '{' || c == '['; }
bool closes(char c) { return c == '>' || c == ')' || c == '}' || c == ']'; }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

/// Where the bracket that opens at `at` is closed.
std::size_t closing(std::string_view text, std::size_t at) {
    int depth = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
        if (opens(text[i])) ++depth;
        // An arrow's head closes nothing.
        if (closes(text[i]) && !(text[i] == '>' && i > 0 && text[i - 1] == '-') && --depth == 0)
            return i;
    }
    return text.size();
}

std::vector<std::string> split(std::string_view list) {
    const auto parts = split_list(list);
    return {parts.begin(), parts.end()};
}

bool starts_anonymous(std::string_view text, std::size_t at) {
    constexpr std::string_view kAnonymous = "(anonymous namespace)";
    return text.substr(at, kAnonymous.size()) == kAnonymous;
}

}  // namespace

std::string_view inside_bracket(std::string_view text, std::size_t open) {
    if (open >= text.size()) return {};
    return text.substr(open + 1, closing(text, open) - open - 1);
}

std::vector<std::string_view> split_list(std::string_view list) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= list.size(); ++i) {
        if (i < list.size() && opens(list[i])) {
            i = closing(list, i);
        } else if (i == list.size() || list[i] == ',') {
            const std::string_view part = trimmed(list.substr(begin, i - begin));
            if (!part.empty()) parts.push_back(part);
            begin = i + 1;
        }
    }
    return parts;
}

KernelName parse_kernel_name(const std::string& mangled) {
    KernelName name;
    name.full = demangle(mangled);
    const std::string_view text = name.full;
    std::size_t word = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '<' || text[i] == '{' || starts_anonymous(text, i)) {
            const std::size_t end = closing(text, i);
            if (text[i] == '<') {
                name.base = std::string(trimmed(text.substr(word, i - word)));
                name.template_arguments = split(text.substr(i + 1, end - i - 1));
            }
            i = end;
        } else if (text[i] == '(') {
            if (name.template_arguments.empty())
                name.base = std::string(trimmed(text.substr(word, i - word)));
            name.parameters = split(text.substr(i + 1, closing(text, i) - i - 1));
            return name;
        } else if (text[i] == ' ' || text.substr(i, 2) == "::") {
            word = text[i] == ' ' ? i + 1 : i + 2;
            if (text[i] == ':') ++i;
            name.base.clear();
            name.template_arguments.clear();
        }
    }
    if (name.base.empty()) name.base = std::string(trimmed(text.substr(word)));
    return name;
}

}  // namespace simgpu
