// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/statistics.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "simgpu/driver/calls.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/log.hpp"

namespace simgpu::driver {

void write_statistics() noexcept {
    const char* target = std::getenv("SIMGPU_STATS");
    if (target == nullptr || *target == '\0') return;
    try {
        std::string text = fmt::format("{{\"machine\": {}, \"calls\": {{{}}}}}\n",
                                       machine().statistics_json(), describe_counts());
        std::FILE* file = std::string_view(target) == "stderr" ? stderr : std::fopen(target, "w");
        if (file == nullptr) {
            say("SIMGPU_STATS: cannot write {}", target);
            return;
        }
        std::fwrite(text.data(), 1, text.size(), file);
        if (file != stderr) std::fclose(file);
    } catch (...) {
        say("SIMGPU_STATS: out of memory");
    }
}

}  // namespace simgpu::driver
