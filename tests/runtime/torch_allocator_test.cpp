// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/torch_allocator.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace libswap {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr const char* kConf = "PYTORCH_ALLOC_CONF";
constexpr const char* kCudaConf = "PYTORCH_CUDA_ALLOC_CONF";
constexpr const char* kNoCaching = "PYTORCH_NO_CUDA_MEMORY_CACHING";

const char* from_map(const char* name, void* context) {
    const auto& environment = *static_cast<const Environment*>(context);
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
}

std::string answer(const char* name, Environment environment) {
    const char* text = torch_answer(name, &from_map, &environment);
    return text ? text : "(none)";
}

/// What all three variables come to, in the order above.
std::string answers(const Environment& environment) {
    return answer(kConf, environment) + " " + answer(kCudaConf, environment) + " " +
           answer(kNoCaching, environment);
}

TEST(TorchAllocator, EachSettingIsOneVariable) {
    EXPECT_EQ(answers({{"LIBSWAP_TORCH", "split"}}), "(none) max_split_size_mb:21 (none)");
    EXPECT_EQ(answers({{"LIBSWAP_TORCH", "async"}}), "(none) backend:cudaMallocAsync (none)");
    EXPECT_EQ(answers({{"LIBSWAP_TORCH", "uncached"}}), "(none) (none) 1");
    EXPECT_EQ(answers({{"LIBSWAP_TORCH", "leave"}}), "(none) (none) (none)");
}

TEST(TorchAllocator, OtherVariablesHaveNoAnswer) {
    EXPECT_EQ(answer("PYTORCH_NVML_BASED_CUDA_CHECK", {{"LIBSWAP_TORCH", "split"}}), "(none)");
    EXPECT_FALSE(is_torch_variable("PYTORCH_CUDA_ALLOC_CONF2"));
    EXPECT_TRUE(is_torch_variable(kNoCaching));
}

TEST(TorchAllocator, ItsUsersSettingWinsWhicheverVariableItIsIn) {
    for (const char* variable : {kConf, kCudaConf, kNoCaching})
        for (const char* value : {"expandable_segments:True", "1", "0", ""})
            EXPECT_EQ(answers({{"LIBSWAP_TORCH", "split"}, {variable, value}}),
                      "(none) (none) (none)")
                << variable << '=' << value;
}

TEST(TorchAllocator, IsLeftAloneWhereNothingIsSwapped) {
    EXPECT_EQ(answers({{"LIBSWAP_TORCH", "split"}, {"LIBSWAP_MODE", "off"}}),
              "(none) (none) (none)");
    EXPECT_EQ(answers({{"LIBSWAP_TORCH", "split"}, {"LIBSWAP_IPC", "1"}}), "(none) (none) (none)");
    EXPECT_NE(answers({{"LIBSWAP_TORCH", "split"}, {"LIBSWAP_MODE", "observe"}}),
              "(none) (none) (none)");
}

TEST(TorchAllocator, NonsenseIsAsTheDefault) {
    EXPECT_EQ(answers({{"LIBSWAP_TORCH", "nonsense"}}), answers({}));
}

}  // namespace
}  // namespace libswap
