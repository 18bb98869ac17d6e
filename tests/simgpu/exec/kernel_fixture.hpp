// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include "tests/simgpu/exec/flat_memory.hpp"

namespace simgpu::exec {

/// The PTX that the build made of `stem`.cu for an architecture.
inline std::string read_ptx(const std::string& stem, const std::string& arch) {
    std::ifstream file(std::string(SIMGPU_TEST_PTX) + "/" + stem + "." + arch + ".ptx");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A module and memory to launch its kernels in. Parameterised by architecture.
class KernelTest : public testing::TestWithParam<const char*> {
  protected:
    void load(const std::string& stem) { load_text(read_ptx(stem, GetParam())); }

    void load_text(const std::string& text) {
        auto parsed = ptx::parse(text);
        ASSERT_TRUE(parsed.has_value()) << parsed.error().line << ": " << parsed.error().reason;
        module.emplace(std::move(*parsed));
        addresses = place_globals(*module, memory);
    }

    RunResult launch(const char* name, LaunchGeometry geometry, const Params& parameters) {
        const ptx::Kernel* kernel = module->find_kernel(name);
        if (kernel == nullptr) {
            RunResult missing;
            missing.status = RunStatus::InvalidLaunch;
            missing.detail = "no such kernel";
            return missing;
        }
        return run(*module, *kernel, geometry, parameters.bytes(), memory, addresses, options);
    }

    void launch_ok(const char* name, LaunchGeometry geometry, const Params& parameters) {
        const RunResult result = launch(name, geometry, parameters);
        ASSERT_EQ(result.status, RunStatus::Ok)
            << name << ": " << result.detail << " at " << std::hex << result.address;
    }

    std::vector<float> random_floats(std::size_t count, float low = -1.0F, float high = 1.0F) {
        std::uniform_real_distribution<float> draw(low, high);
        std::vector<float> values(count);
        for (float& value : values) value = draw(random);
        return values;
    }

    std::vector<int> random_ints(std::size_t count, int low, int high) {
        std::uniform_int_distribution<int> draw(low, high);
        std::vector<int> values(count);
        for (int& value : values) value = draw(random);
        return values;
    }

    std::optional<ptx::Module> module;
    FlatMemory memory;
    ptx::SymbolAddresses addresses;
    RunOptions options;
    std::mt19937 random{7};
};

}  // namespace simgpu::exec
