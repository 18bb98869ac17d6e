// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace train_cnn {

/// What a run found out, printed the same way by the program on the device and by the one on the
/// CPU.
struct Results {
    std::vector<float> losses;
    double accuracy = 0;
    std::uint64_t digest = 0;
    /// Device memory asked for at the worst moment; 0 on the CPU.
    std::uint64_t peak_bytes = 0;
    /// Size of the device's memory as it says; 0 on the CPU.
    std::uint64_t device_bytes = 0;
    /// Median over the iterations.
    double iteration_ms = 0;
    std::vector<float> iterations_ms;  ///< one by one, in order
    /// Where the iterations' times come from.
    std::string clock;
};

void print_loss(int iteration, float loss);
void print_summary(const Results& results);
/// False, having said why, if the file cannot be written.
bool write_json(const Results& results, const std::string& path);
double median(std::vector<float> values);

}  // namespace train_cnn
