// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "simgpu/exec/warp.hpp"

namespace simgpu::exec {

namespace {

constexpr std::size_t kMaxString = 4096;

std::string read_string(Warp& warp, int lane, std::uint64_t address) {
    std::string text;
    char c = 0;
    while (text.size() < kMaxString && read_generic(warp, lane, address + text.size(), &c, 1) &&
           c != 0)
        text += c;
    return text;
}

/// Takes printf's arguments one after another, each at its natural alignment.
class Arguments {
  public:
    Arguments(Warp& warp, int lane, std::uint64_t address)
        : warp_(warp), lane_(lane), address_(address) {}

    template <class T>
    T next() {
        address_ = (address_ + sizeof(T) - 1) & ~(std::uint64_t{sizeof(T)} - 1);
        T value{};
        read_generic(warp_, lane_, address_, &value, sizeof(T));
        address_ += sizeof(T);
        return value;
    }

  private:
    Warp& warp_;
    int lane_;
    std::uint64_t address_;
};

template <class T>
void append(std::string& out, const std::string& spec, T value) {
    char buffer[512];
    const int length = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
    if (length > 0)
        out.append(buffer,
                   std::min<std::size_t>(static_cast<std::size_t>(length), sizeof buffer - 1));
}

/// One conversion: `flags` is what stands between '%' and its letter, without length modifiers.
void convert(std::string& out, Warp& warp, int lane, Arguments& arguments, const std::string& flags,
             bool wide, char letter) {
    const std::string start = "%" + flags;
    switch (letter) {
        case 'd':
        case 'i':
            if (wide) return append(out, start + PRId64, arguments.next<std::int64_t>());
            return append(out, start + "d", arguments.next<std::int32_t>());
        case 'u':
        case 'x':
        case 'X':
        case 'o':
            if (wide)
                return append(out, start + "ll" + letter,
                              static_cast<unsigned long long>(arguments.next<std::uint64_t>()));
            return append(out, start + letter, arguments.next<std::uint32_t>());
        case 'c':
            return append(out, start + "c", arguments.next<std::int32_t>());
        case 'p':
            return append(out, start + "p",
                          reinterpret_cast<void*>(arguments.next<std::uint64_t>()));
        case 's':
            return append(out, start + "s",
                          read_string(warp, lane, arguments.next<std::uint64_t>()).c_str());
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            return append(out, start + letter, arguments.next<double>());
        default:
            out += start + letter;
    }
}

std::string format_text(Warp& warp, int lane, const std::string& format, Arguments arguments) {
    std::string out;
    for (std::size_t at = 0; at < format.size(); ++at) {
        if (format[at] != '%') {
            out += format[at];
            continue;
        }
        std::string flags;
        bool wide = false;
        for (++at; at < format.size(); ++at) {
            const char c = format[at];
            if (c == 'l' || c == 'j' || c == 'z' || c == 't')
                wide = true;
            else if (c == '*')
                flags += std::to_string(arguments.next<std::int32_t>());
            else if ((c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == ' ' ||
                     c == '#')
                flags += c;
            else if (c != 'h')
                break;
            if (flags.size() > 32) break;
        }
        if (at >= format.size()) break;
        if (format[at] == '%')
            out += '%';
        else
            convert(out, warp, lane, arguments, flags, wide, format[at]);
    }
    return out;
}

template <class T>
T argument(const Warp& warp, const CallSite& site, int lane, std::size_t index) {
    T value{};
    if (index < site.arguments.size())
        read_local(warp, lane, warp.frame->local_base + site.arguments[index].offset_bytes, &value,
                   sizeof value);
    return value;
}

void assert_failed(Warp& warp, const CallSite& site, int lane) {
    const std::string message =
        read_string(warp, lane, argument<std::uint64_t>(warp, site, lane, 0));
    const std::string file = read_string(warp, lane, argument<std::uint64_t>(warp, site, lane, 1));
    const auto line = argument<std::uint32_t>(warp, site, lane, 2);
    const std::string function =
        read_string(warp, lane, argument<std::uint64_t>(warp, site, lane, 3));
    const auto triple = [](auto a, auto b, auto c) {
        return "[" + std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c) + "]";
    };
    const auto& id = warp.cta->id;
    warp.fault(RunStatus::Assert, 0,
               file + ":" + std::to_string(line) + ": " + function +
                   ": block: " + triple(id[0], id[1], id[2]) +
                   ", thread: " + triple(warp.tid[0][lane], warp.tid[1][lane], warp.tid[2][lane]) +
                   " Assertion `" + message + "` failed.");
}

/// A condition's handle is the address of its word: whoever hands it out sees to that.
void set_conditional(Warp& warp, const CallSite& site, int lane) {
    const auto handle = argument<std::uint64_t>(warp, site, lane, 0);
    const auto value = argument<std::uint32_t>(warp, site, lane, 1);
    std::byte* word = warp.launch->host(handle, true);
    if (word == nullptr) {
        warp.fault(RunStatus::IllegalAddress, handle);
        return;
    }
    std::memcpy(word, &value, sizeof value);
}

}  // namespace

bool read_generic(Warp& warp, int lane, std::uint64_t address, void* into, std::size_t bytes) {
    const std::uint64_t window = address & kWindowMask;
    if (window == kLocalWindow) {
        read_local(warp, lane, address - window, into, bytes);
        return true;
    }
    auto* to = static_cast<std::byte*>(into);
    for (std::size_t k = 0; k < bytes; ++k) {
        const std::uint64_t at = address + k;
        const std::byte* from = nullptr;
        if (window == kSharedWindow)
            from = at - window < warp.shared_bytes ? warp.shared + (at - window) : nullptr;
        else if (window == 0)
            from = warp.launch->host(at, false);
        if (from == nullptr) return false;
        to[k] = *from;
    }
    return true;
}

bool print_formatted(Warp& warp, int lane, std::uint64_t format, std::uint64_t arguments) {
    const std::string text =
        format_text(warp, lane, read_string(warp, lane, format), Arguments(warp, lane, arguments));
    if (warp.launch->options->print) {
        warp.launch->options->print(text);
    } else {
        std::fwrite(text.data(), 1, text.size(), stdout);
    }
    return true;
}

bool call_builtin(Warp& warp, const CallSite& site) {
    const bool sets_conditional =
        warp.launch->program->functions[site.function].name == "cudaGraphSetConditional";
    for (std::uint32_t left = warp.exec; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        if (site.callee == Callee::AssertFail) {
            assert_failed(warp, site, lane);
            return true;
        }
        if (sets_conditional) {
            set_conditional(warp, site, lane);
            continue;
        }
        print_formatted(warp, lane, argument<std::uint64_t>(warp, site, lane, 0),
                        argument<std::uint64_t>(warp, site, lane, 1));
        const std::int32_t printed = 0;
        if (!site.results.empty())
            write_local(warp, lane, warp.frame->local_base + site.results[0].offset_bytes, &printed,
                        sizeof printed);
    }
    return true;
}

}  // namespace simgpu::exec
