// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/torch_allocator.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace libswap {
namespace {

// Versions before 2.9 know only the second. Later ones read what concerns CUDA there first, and the
// rest in the first: a script that sets either after the start is heard in both.
constexpr const char* kVariables[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                                      "PYTORCH_NO_CUDA_MEMORY_CACHING"};

struct Answer {
    TorchAllocator allocator;
    const char* name;
    const char* value;
};

// More than 20 MiB is the least limit that PyTorch takes: every buffer above it has a segment of
// its own.
constexpr Answer kAnswers[] = {
    {TorchAllocator::Split, "PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:21"},
    {TorchAllocator::Async, "PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"},
    {TorchAllocator::Uncached, "PYTORCH_NO_CUDA_MEMORY_CACHING", "1"},
};

}  // namespace

bool is_torch_variable(const char* name) noexcept {
    return std::any_of(std::begin(kVariables), std::end(kVariables),
                       [name](const char* known) { return std::strcmp(name, known) == 0; });
}

const char* torch_answer(const char* name, SettingSource source, void* context) {
    const auto is_set = [&](const char* variable) { return source(variable, context) != nullptr; };
    if (std::any_of(std::begin(kVariables), std::end(kVariables), is_set)) return nullptr;
    std::vector<std::string> complaints;  // said when the engine starts
    const Config settings = parse_config(source, context, &complaints);
    if (settings.mode == Mode::Off || settings.ipc) return nullptr;
    for (const Answer& answer : kAnswers)
        if (answer.allocator == settings.torch && std::strcmp(answer.name, name) == 0)
            return answer.value;
    return nullptr;
}

bool has_expandable_segments(const char* value) noexcept {
    return std::strstr(value, "expandable_segments:True") != nullptr;
}

}  // namespace libswap
