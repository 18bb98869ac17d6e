// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "simgpu/device/status.hpp"

namespace simgpu {

class AccessSet;

/// What a kernel's work did, for the time model and for faults.
struct KernelOutcome {
    Status status =
        CUDA_SUCCESS;  ///< Anything else is the context's sticky error from the kernel's end on.
    std::uint64_t fault_va = 0;      ///< Of an illegal address.
    std::string detail;              ///< One line for people, may be empty.
    double flops = 0;                ///< Floating-point operations, all threads.
    double bytes = 0;                ///< Global bytes loaded and stored.
    double thread_instructions = 0;  ///< 0 where unknown (native kernels).
    double duration_ns = 0;  ///< Where it is known beforehand, in place of what the others say.
};

/// Memory as a running kernel may use it. Safe to call from the threads that share the kernel's
/// work.
class KernelMemory {
  public:
    /// Host address of the first byte of the 2 MiB page that holds `va`, or nullptr: not mapped or
    /// not granted. Pinned and registered host memory is checked per 2 MiB page only: one byte in
    /// reach opens the page.
    std::byte* page(std::uint64_t va, bool write);
    /// Contiguous host address of `bytes` at `va`, or nullptr, and then fault_va() tells where.
    /// Without data nullptr for all device memory: only a fault_va() other than 0 is a fault then.
    std::byte* span(std::uint64_t va, std::uint64_t bytes, bool write);
    std::uint64_t fault_va() const;
    /// No bytes exist: the work only reports what it would have done.
    bool without_data() const;
    /// How often writes touched the 2 MiB chunk that `va` lies in: without data, its content.
    std::uint64_t write_count(std::uint64_t va) const;

    explicit KernelMemory(AccessSet& set) : set_(set) {}

  private:
    AccessSet& set_;
};

/// The work of one launch. Called once, on a simgpu thread, when simulated time reaches its start.
/// Must not call into streams.
using KernelWork = std::function<KernelOutcome(KernelMemory&)>;

struct KernelLaunch {
    std::string name;
    KernelWork work;
    std::uint64_t ctas = 1;
};

/// A rectangle of bytes copied from `src` to `dst`, each an address of the unified address space.
/// Kind and engine follow from where the addresses lie when the copy starts.
struct CopyRequest {
    std::uint64_t dst = 0, src = 0;
    std::uint64_t width = 0;  ///< Bytes per row.
    std::uint64_t height = 1, depth = 1;
    std::uint64_t dst_pitch = 0, src_pitch = 0;              ///< Bytes from row to row.
    std::uint64_t dst_slice_pitch = 0, src_slice_pitch = 0;  ///< Bytes from slice to slice.

    std::uint64_t bytes() const { return width * height * depth; }
};

struct MemsetRequest {
    std::uint64_t dst = 0;
    std::uint32_t value = 0;
    unsigned element_bytes = 1;  ///< 1, 2 or 4.
    std::uint64_t width = 0;     ///< Elements per row.
    std::uint64_t height = 1;
    std::uint64_t pitch = 0;  ///< Bytes from row to row.
};

enum class WaitCompare : std::uint8_t { GreaterEqual, Equal, And, Nor };

}  // namespace simgpu
