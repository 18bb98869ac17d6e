// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/device.hpp"
#include "runtime/engine.hpp"
#include "runtime/engine_parts.hpp"
#include "runtime/graph_table.hpp"
#include "runtime/host_limit.hpp"
#include "runtime/pointer_edges.hpp"
#include "runtime/pool_table.hpp"
#include "runtime/program_memory.hpp"
#include "runtime/tensor_maps.hpp"

namespace libswap {

struct GraphRun;

struct Engine::Impl {
    static constexpr std::size_t kMaxDevices = 64;

    Impl(const Driver& driver, const Config& config)
        : driver(driver), config(config), pools(driver), graphs(driver) {}

    const Driver& driver;
    const Config& config;
    std::unique_ptr<EventLog> log;
    PassedThroughSource passed_through = nullptr;
    HookTimeSource hook_time = nullptr;

    /// A device is looked at once, by the first allocation or question about its memory.
    std::array<std::atomic<Device*>, kMaxDevices> devices{};
    std::atomic<std::size_t> device_end{0};  ///< behind the last of them
    std::array<std::atomic<bool>, kMaxDevices> passes_through{};
    std::mutex open_mutex;
    /// More than one is swapped: memory of one may be used by another.
    std::atomic<bool> many_devices{false};
    std::atomic<std::uint32_t> context_epoch{1};
    std::atomic<bool> ended{false};

    PoolTable pools;
    GraphTable graphs;
    TensorMaps tensor_maps;
    PointerEdges edges;

    ProgramMemory program_memory;
    /// Made when the first device is looked at.
    std::atomic<HostLimit*> host_limit{nullptr};

    std::mutex pitch_mutex;
    std::map<std::pair<std::size_t, unsigned>, std::size_t> pitches;

    /// What a copy does to tables of pointers.
    void follow_copy(const CopyRequest& request);
    void follow_payload(const Rows& dst, const Rows& src);
    /// The bytes are being written to `dst`: what of them are addresses of ours is noted.
    void note_pointers(std::uint64_t dst, const void* payload, std::size_t bytes);
    /// Calls `visit(offset, address)` for each address of ours among bytes that are written to
    /// `dst`: where words and descriptors of tensors lie aligned there.
    template <typename Visit>
    void for_each_pointer(const void* payload, std::size_t bytes, std::uint64_t dst,
                          Visit&& visit) {
        for (std::size_t offset = (8 - dst % 8) % 8; offset + 8 <= bytes; offset += 8) {
            std::uint64_t word;
            __builtin_memcpy(&word, static_cast<const char*>(payload) + offset, 8);
            if (owner(word)) visit(offset, word);
        }
        if (tensor_maps.any()) tensor_maps.for_each(payload, bytes, dst, visit);
    }
    bool name_parameters(Device& device, OperationParts& parts, const LaunchRequest& request);
    void name_word(OperationParts& parts, const Device* apart_from, std::uint64_t word);
    /// Counts memory of the program that came or went.
    void account(const ProgramAllocation& allocation, bool came) noexcept;
    /// A call that makes the driver allocate `bytes` of the device (0: some amount). Where it is
    /// out of memory and we have some, that is given away and the call made again.
    CUresult with_room(Device* device, std::uint64_t bytes, RealCall real);
    /// Device memory that the driver has left, 0 where it does not tell.
    std::uint64_t driver_free() noexcept;
    /// This thread's calls invalidate no capture.
    bool thread_is_relaxed() noexcept;
    /// What the driver says to a call that a capture may forbid.
    CUresult ask_unsafe() noexcept;
    GraphReader graph_reader(Device& device);
    void name_graph(Device& device, OperationParts& parts, const GraphExec& exec, GraphRun* run);
    void name_writes(OperationParts& parts, const GraphRun& run);
    void note_writes(const GraphRun& run);
    void read_graph(Device& device, CUgraphExec exec, CUgraph graph);
    std::size_t pitch_of(std::size_t width, unsigned element_bytes);

    /// The device of the current context, if it is swapped; looks at it the first time where
    /// `look`. Gives the context too.
    Device* current(CUcontext* context, bool look) noexcept;
    /// The device that an address of ours belongs to, or null.
    Device* owner(std::uint64_t address) noexcept;

    /// A device that is swapped, or null.
    Device* device(int ordinal) noexcept {
        const bool known = ordinal >= 0 && static_cast<std::size_t>(ordinal) < kMaxDevices;
        return known ? devices[ordinal].load(std::memory_order_acquire) : nullptr;
    }

    /// Around a call that may end a device's primary context (`always`: that does).
    CUresult end_primary(CUdevice ordinal, bool always, RealCall real);

    template <typename Visit>
    void for_each_device(Visit&& visit) {
        const std::size_t end = device_end.load(std::memory_order_acquire);
        for (std::size_t i = 0; i < end; ++i)
            if (Device* device = devices[i].load(std::memory_order_acquire)) visit(*device);
    }

  private:
    Device* open(CUdevice ordinal, CUcontext context) noexcept;
};

std::uint64_t mix_signature(std::uint64_t hash, std::uint64_t value) noexcept;

/// Runs a hook's body: no exception gets out of it.
template <typename Body>
CUresult guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

}  // namespace libswap
