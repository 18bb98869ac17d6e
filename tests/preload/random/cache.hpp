// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory as PyTorch's allocator gives it out: pieces of segments that stay until the end, each for
// the stream that last used it, and every change told to the profiler's function.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <cuda_runtime.h>

namespace random_programs {

class Cache {
  public:
    /// From here on no change is told, and segments are larger: as an arena of the program's own,
    /// parts of which are given out in ever other sizes.
    static void tell_nothing() { tells_ = false; }

    /// What is taken may still be in use by `stream`, and by no other one.
    cudaError_t take(char** at, std::size_t bytes, int stream);
    /// All that used it is ordered before what `stream` does next.
    void give_back(char* at, std::size_t bytes, int stream);
    /// Nothing uses any of it.
    cudaError_t release_all();

  private:
    using Pieces = std::map<char*, std::size_t>;  ///< bytes of each that is free

    static std::size_t rounded(std::size_t bytes);
    static void report(char* at, std::int64_t change);

    static inline bool tells_ = true;

    std::mutex mutex_;
    std::map<int, Pieces> free_;  ///< by stream
    std::vector<char*> segments_;
};

}  // namespace random_programs
