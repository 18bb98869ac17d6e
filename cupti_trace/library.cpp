// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "cupti_trace/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace libswap::cupti {
namespace {

constexpr std::string_view kRuntime = "libcudart.so.";
constexpr std::string_view kDriver = "libcuda.so.";
constexpr std::string_view kCupti = "libcupti.so";
/// The records' front was read in these versions' headers.
constexpr std::uint32_t kOldest = 20;  // CUPTI 12.2
constexpr std::uint32_t kEndOf13 = 140000;

/// Set by profilers and tools for the processes that they look into.
constexpr std::array<std::string_view, 6> kToolVariables = {
    "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=",   "NSYS_",
    "NV_COMPUTE_SANITIZER",   "NVIDIA_PROCESS_INJECTION", "KINETO_USE_DAEMON="};

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Where a dynamic section's string table lies: the loader writes the address into it, or leaves
/// the offset.
const char* strings_of(const dl_phdr_info& info, const ElfW(Dyn) * dynamic) {
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        if (dynamic->d_tag != DT_STRTAB) continue;
        const ElfW(Addr) address = dynamic->d_un.d_ptr;
        return reinterpret_cast<const char*>(address < info.dlpi_addr ? info.dlpi_addr + address
                                                                      : address);
    }
    return nullptr;
}

bool needs_cupti(const dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const auto* dynamic =
            reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
        const char* strings = strings_of(info, dynamic);
        for (; strings != nullptr && dynamic->d_tag != DT_NULL; ++dynamic)
            if (dynamic->d_tag == DT_NEEDED &&
                std::string_view(strings + dynamic->d_un.d_val).starts_with(kCupti))
                return true;
    }
    return false;
}

/// It is the object that this is in.
bool holds_this(const dl_phdr_info& info) {
    static const char here = 0;
    const auto address = reinterpret_cast<ElfW(Addr)>(&here);
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info.dlpi_phdr[i];
        if (part.p_type == PT_LOAD && address - info.dlpi_addr - part.p_vaddr < part.p_memsz)
            return true;
    }
    return false;
}

struct Loaded {
    std::string runtime;  ///< path of the CUDA runtime
    bool driver = false;
    std::string user;  ///< an object that needs libcupti
    std::vector<std::string> others;
};

/// Every profiler calls it.
constexpr const char* kOfCupti = "cuptiActivityRegisterCallbacks";

/// An object has CUPTI inside, as one does that was linked against the static library.
bool brings_cupti(const std::string& path) {
    void* const object = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (object == nullptr) return false;
    void* const function = dlsym(object, kOfCupti);
    dlclose(object);
    Dl_info info{};
    // What it needs counts as its own, libcupti too.
    return function != nullptr && dladdr(function, &info) != 0 && path == info.dli_fname;
}

Loaded look_at_loaded() {
    Loaded loaded;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            auto& found = *static_cast<Loaded*>(data);
            if (file_name(info->dlpi_name).starts_with(kRuntime)) found.runtime = info->dlpi_name;
            found.driver |= file_name(info->dlpi_name).starts_with(kDriver);
            if (!file_name(info->dlpi_name).empty() &&
                !file_name(info->dlpi_name).starts_with(kCupti) && !holds_this(*info))
                found.others.emplace_back(info->dlpi_name);
            if (found.user.empty() && needs_cupti(*info)) {
                found.user = file_name(info->dlpi_name);
                if (found.user.empty()) found.user = "the program";  // it has no name there
            }
            return 0;
        },
        &loaded);
    return loaded;
}

/// Paths to try, the nearest first.
std::vector<std::string> candidates(const std::string& runtime) {
    std::vector<std::string> paths;
    std::string_view major = "13";
    if (const auto at = runtime.rfind(kRuntime); at != std::string::npos) {
        major = std::string_view(runtime).substr(at + kRuntime.size());
        major = major.substr(0, major.find('.'));
        const std::string folder = runtime.substr(0, at);
        const std::string name = std::string(kCupti) + "." + std::string(major);
        for (const char* place : {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/"})
            paths.push_back(folder + place + name);
    }
    paths.push_back(std::string(kCupti) + "." + std::string(major));
    return paths;
}

template <typename Function>
bool look_up(void* library, const char* symbol, Function& out) {
    void* address = dlsym(library, symbol);
    if (address == nullptr) return false;
    std::memcpy(&out, &address, sizeof out);
    return true;
}

}  // namespace

std::string other_client() {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view variable(*entry);
        for (const std::string_view tool : kToolVariables)
            if (variable.starts_with(tool))
                return std::string(variable.substr(0, variable.find('='))) + " is set";
    }
    const Loaded loaded = look_at_loaded();
    if (!loaded.user.empty()) return loaded.user + " uses CUPTI";
    for (const std::string& path : loaded.others)
        if (brings_cupti(path)) return std::string(file_name(path)) + " brings CUPTI";
    return "";
}

std::optional<Functions> open_library(std::string* why) {
    const Loaded loaded = look_at_loaded();
    if (loaded.runtime.empty() && !loaded.driver) {
        *why = "no CUDA is loaded";
        return std::nullopt;
    }
    void* library = nullptr;
    for (const std::string& path : candidates(loaded.runtime)) {
        library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library != nullptr) break;
    }
    if (library == nullptr) {
        *why = "there is no libcupti";
        return std::nullopt;
    }
    Functions functions;
#define CUPTI_FUNCTION(member, symbol, parameters)      \
    if (!look_up(library, #symbol, functions.member)) { \
        *why = "libcupti has no " #symbol;              \
        return std::nullopt;                            \
    }
#include "cupti_trace/functions.def"
#undef CUPTI_FUNCTION
    std::uint32_t version = 0;
    if (functions.get_version(&version) != 0 || version < kOldest || version >= kEndOf13) {
        *why = "libcupti is of a version that is not known";
        return std::nullopt;
    }
    return functions;
}

}  // namespace libswap::cupti
