// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>

namespace train_cnn {

/// What the command line says; printed by --help. The defaults are what scripts/demo runs.
struct Options {
    int batch = 240;
    int iterations = 10;
    int channels = 128;
    /// Convolutions; the last two come after the pooling.
    int layers = 8;
    /// Side of the filters, 3 or 5.
    int filter = 5;
    std::uint64_t seed = 1;
    float lr = 0.002f;
    float momentum = 0.9f;
    /// Activations and their gradients: allocated once, or when needed and freed when done with.
    bool alloc_each_iteration = false;
    /// All of them are parts of one allocation.
    bool alloc_arena = false;
    /// Steps from the second on are one launch of a captured graph.
    bool graph = false;
    /// Convolutions by cuDNN, not by products of matrices.
    bool cudnn = false;
    /// Device memory to leave to the training when it begins, the rest is taken; 0: all.
    std::uint64_t leave_bytes = 0;
    std::string data;
    /// Where to write the results as JSON, or empty.
    std::string json;
};

/// Fills `options`. Returns -1 to go on, else the exit status, having said why.
int parse_options(int argc, char** argv, Options& options);

}  // namespace train_cnn
