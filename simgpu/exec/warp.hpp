// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/exec/program.hpp"
#include "simgpu/exec/run.hpp"

/// State of kernels being executed.
///
/// A warp's lanes are held in splits: sets of lanes at the same place of the same call. The split
/// that is deepest in calls, then lowest in its function, goes first, until it reaches the place of
/// another one and both become one again. So lanes that part at a branch meet where its paths meet,
/// lanes of either path can wait for the other's (barriers, locks), and while all lanes agree a
/// branch costs nothing.
namespace simgpu::exec {

inline constexpr int kLanes = 32;
inline constexpr std::uint32_t kAllLanes = 0xffffffffU;

struct Cta;

/// Memory of a launch as one executing thread sees it.
struct Launch {
    const ptx::Kernel* kernel = nullptr;
    const Program* program = nullptr;
    const SharedLayout* layout = nullptr;
    Memory* memory = nullptr;
    const RunOptions* options = nullptr;
    LaunchGeometry geometry;
    std::vector<std::byte> params;
    std::vector<std::uint64_t> global_addresses;
    RunCounters counters;
    /// Instructions done by any warp: the time of %clock.
    std::uint64_t warp_instructions = 0;
    RunStatus status = RunStatus::Ok;
    std::uint64_t fault_address = 0;
    std::string detail;

    struct CachedPage {
        std::uint64_t tag = ~std::uint64_t{0};
        std::byte* bytes = nullptr;
    };
    static constexpr std::size_t kCachedPages = 64;
    /// One set for loads, one for stores.
    std::array<std::array<CachedPage, kCachedPages>, 2> pages;

    /// Host address of `va` in device or host memory, or nullptr.
    std::byte* host(std::uint64_t va, bool write) {
        const std::uint64_t tag = va / kPageBytes;
        CachedPage& page = pages[write ? 1 : 0][tag % kCachedPages];
        if (page.tag != tag && !fill(page, va, write)) return nullptr;
        return page.bytes + va % kPageBytes;
    }

    bool fill(CachedPage& page, std::uint64_t va, bool write);

    /// The objects that were used last.
    template <class Object>
    struct LastUsed {
        std::uint64_t handle = 0;
        const Object* object = nullptr;
    };
    LastUsed<Texture> texture;
    LastUsed<Surface> surface;

    /// What lies at kGridWorkspace, once it has been touched.
    std::unique_ptr<std::byte[]> grid_workspace;
};

/// One call of a function by some lanes of a warp.
struct Frame {
    const Function* function = nullptr;
    Frame* parent = nullptr;
    const CallSite* site = nullptr;
    std::byte* regs = nullptr;
    std::size_t regs_capacity = 0;
    std::unique_ptr<std::byte[]> storage;
    std::uint32_t return_pc = 0;
    std::uint32_t depth = 0;
    /// First byte of its variables in the thread's local memory.
    std::uint32_t local_base = 0;
    /// Lanes that have not returned from it.
    std::uint32_t lanes = 0;
};

enum class SplitState : std::uint8_t { Ready, AtWarpBarrier, AtCtaBarrier };

struct Split {
    Frame* frame = nullptr;
    std::uint32_t pc = 0;
    std::uint32_t mask = 0;
    SplitState state = SplitState::Ready;
    std::uint8_t barrier = 0;
    /// The barrier.red that waits for its result.
    const Inst* reduction = nullptr;
};

/// 32 threads. What handlers touch comes first.
struct Warp {
    std::byte* regs = nullptr;
    std::uint32_t exec = 0;
    std::uint32_t active = 0;
    std::uint32_t pc = 0;
    /// Instructions from here on need a look at the other splits; 0 to leave the loop at once.
    std::uint32_t stop = 0;
    /// Carry flags.
    std::uint32_t carry = 0;
    /// Lanes that exist and have not exited.
    std::uint32_t live = 0;
    Launch* launch = nullptr;
    Cta* cta = nullptr;
    Frame* frame = nullptr;
    std::byte* shared = nullptr;
    std::uint32_t shared_bytes = 0;
    std::uint32_t local_bytes = 0;
    /// Words of local memory, lane by lane: word w of lane l is at 32 * w + l.
    std::vector<std::uint32_t> local;
    std::uint32_t index = 0;
    std::uint64_t pending_instructions = 0;
    std::uint64_t pending_flops = 0;
    std::int64_t budget = 0;
    bool forced = false;
    alignas(64) std::uint32_t tid[3][kLanes];
    alignas(64) std::byte scratch[kLanes * 8];

    std::vector<Split> splits;
    std::vector<std::unique_ptr<Frame>> frames;
    std::vector<std::unique_ptr<Frame>> free_frames;
    std::uint32_t patience = 0;
    bool impatient = false;
    /// Some split waits for lanes, so that a jump back may reach it.
    bool has_waiting = false;

    void fault(RunStatus status, std::uint64_t address = 0, std::string detail = {});
    /// The lanes in `members` are not all here: wait for them (unless they cannot come).
    bool wait_for_lanes(std::uint32_t members);
};

struct CtaBarrier {
    std::uint32_t arrived = 0;
    /// As given with the barrier; 0 for all threads of the CTA.
    std::uint32_t expected = 0;
    /// Threads whose predicate was true, and all that brought one.
    std::uint32_t predicates_true = 0;
    std::uint32_t predicates = 0;
};

/// A block of threads.
struct Cta {
    std::array<std::uint32_t, 3> id{};
    std::uint64_t linear_id = 0;
    std::vector<std::byte> shared;
    std::vector<std::unique_ptr<Warp>> warps;
    std::uint32_t live_threads = 0;
    std::array<CtaBarrier, 16> barriers;
};

/// What became of a warp that was let run.
enum class WarpOutcome : std::uint8_t { Blocked, Finished, OutOfBudget, Faulted };

/// Runs until the warp's lanes have exited or wait, or `budget` backward branches were taken, or
/// `instructions` were executed.
WarpOutcome run_warp(Warp& warp, std::int64_t budget,
                     std::uint64_t instructions = std::numeric_limits<std::uint64_t>::max());

/// Puts the lanes in `mask` of a warp that has none at the start of the kernel.
void start_warp(Warp& warp, const Function& kernel, std::uint32_t mask);

/// A new call of `function`, its constants in place; nullptr (and a fault) if the stack is full.
Frame* enter_function(Warp& warp, const Function& function, Frame* parent, std::uint32_t lanes);

/// Lets go of `frame`, and of its callers', as far as no lane is left in them.
void release_frame(Warp& warp, Frame* frame);

/// A thread's local memory, `bytes` at `offset`, copied out or in.
void read_local(const Warp& warp, int lane, std::uint64_t offset, void* into, std::size_t bytes);
void write_local(Warp& warp, int lane, std::uint64_t offset, const void* from, std::size_t bytes);

/// Calls to functions that the device has built in. False if `site` is not one.
bool call_builtin(Warp& warp, const CallSite& site);

/// Device-side printf of one lane: format and arguments at generic addresses.
bool print_formatted(Warp& warp, int lane, std::uint64_t format, std::uint64_t arguments);

/// Copies `bytes` at a generic address as `lane` sees it; false if it may not.
bool read_generic(Warp& warp, int lane, std::uint64_t address, void* into, std::size_t bytes);

/// Control-flow handlers, the same for every CPU.
Handler find_control_handler(const OpKey& key);

/// Those of textures and surfaces, likewise.
Handler find_texture_handler(const OpKey& key);

}  // namespace simgpu::exec
