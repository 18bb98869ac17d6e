// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/device/memory.hpp"

namespace simgpu {

/// How much of each device's memory the processes on it hold: a file that they all map. Each has a
/// place in it, and a record lock on that place, which ends with the process however that ends:
/// what a dead one held is free. Not synchronised within a process.
class SharedUsage {
  public:
    static constexpr int kMaxProcesses = 64;

    enum class As : std::uint8_t {
        User,     ///< Has a place.
        Watcher,  ///< Has none, and takes nothing. Must outlive a user of the same process.
    };
    /// nullptr with one line in `error` where the file cannot be used, or all places are taken.
    static std::shared_ptr<SharedUsage> open(const std::string& path, std::string* error,
                                             As as = As::User);
    ~SharedUsage();
    SharedUsage(const SharedUsage&) = delete;
    SharedUsage& operator=(const SharedUsage&) = delete;

    /// Bytes of device `number` that living other processes hold.
    std::uint64_t others(int number) const;
    struct Process {
        std::uint32_t pid = 0;
        std::uint64_t bytes = 0;
    };
    /// Each of them that holds some, a moment ago.
    std::vector<Process> processes(int number) const;
    /// Takes `bytes` of device `number`; false, and nothing taken, where all processes together
    /// would hold more than `capacity_bytes`.
    bool take(int number, std::uint64_t bytes, std::uint64_t capacity_bytes);
    void give_back(int number, std::uint64_t bytes);

  private:
    struct Table;
    SharedUsage(int fd, Table* table) : fd_(fd), table_(table) {}
    bool claim();
    /// The process that has a place, not this one; 0: none.
    std::uint32_t holder(int place) const;
    std::uint64_t sum_of_others(int number) const;

    int fd_;
    Table* table_;
    int own_ = -1;
};

}  // namespace simgpu
