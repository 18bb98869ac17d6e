// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/workload_output.hpp"

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/files.hpp"

namespace libswap::tools {

int put_out(const cost::Workload& workload, const WorkloadMeta& meta, const std::string& file) {
    const std::string json = format_workload(workload, meta);
    if (file.empty()) {
        fmt::print("{}", json);
        return 0;
    }
    const auto written = write_file(file, json);
    if (!written) return fail(written.error());
    fmt::print("{}: {} operations, {} tensors, peak {}, {:.3f} ms\n", file, workload.op_count(),
               workload.tensors().size(), format_bytes(static_cast<double>(workload.peak_bytes())),
               workload.compute_us() / 1e3);
    return 0;
}

}  // namespace libswap::tools
